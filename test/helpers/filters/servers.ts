import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { stream } from 'hono/streaming'
import Koa from 'koa'
import { diana as expressFilter, rateLimit as expressRoute } from '../../../packages/limiter/src/filters/express.ts'
import { diana as fastifyFilter, rateLimit as fastifyRoute } from '../../../packages/limiter/src/filters/fastify.ts'
import { diana as fetchFilter, rateLimit as fetchRoute } from '../../../packages/limiter/src/filters/fetch.ts'
import { diana as honoFilter, rateLimit as honoRoute } from '../../../packages/limiter/src/filters/hono.ts'
import { guard, diana as httpFilter, rateLimit as httpRoute } from '../../../packages/limiter/src/filters/http.ts'
import { diana as koaFilter, rateLimit as koaRoute } from '../../../packages/limiter/src/filters/koa.ts'
import type { Limiter } from '../../../packages/limiter/src/limiter.ts'
import type { FilterService } from '../../../packages/limiter/src/testing/filters/service.ts'
import {
  type FilterSuiteOptions,
  login,
  type ServerUnderTest,
} from '../../../packages/limiter/src/testing/filters/suite.ts'
import { serveOnExpress } from './express-app.ts'
import { listen } from './listen.ts'
import { startNest } from './nest-server.ts'
import { nodeListener } from './node-listener.ts'
import { oneLimitServers } from './one-limit-servers.ts'

// it has the types of Express 5 as far as these servers need them
const express4 = createRequire(import.meta.url)('express4') as typeof express5

const starts: Readonly<Record<string, FilterSuiteOptions>> = {
  'node:http': { start: (limiter, service) => listen(createServer(httpFilter(limiter, withLogin(limiter, service)))) },
  'node:http, guarded': {
    start: (limiter, service) => listen(guard(createServer(withLogin(limiter, service)), limiter)),
  },
  'node:http2': {
    start: (limiter, service) => {
      return listen(createHttp2Server(httpFilter(limiter, withLogin(limiter, service) as never)))
    },
    speaks: 'h2',
  },
  'node:http2, guarded': {
    start: (limiter, service) => listen(guard(createHttp2Server(withLogin(limiter, service) as never), limiter)),
    speaks: 'h2',
  },
  'Express 5': {
    start: (limiter, service) => {
      const app = express5().use(expressFilter(limiter))
      return listen(createServer(serveOnExpress(app, service, expressRoute(limiter, { rule: login }))))
    },
  },
  'Express 4': {
    start: (limiter, service) => {
      const app = express4().use(expressFilter(limiter))
      return listen(createServer(serveOnExpress(app, service, expressRoute(limiter, { rule: login }))))
    },
  },
  'Fastify 5': { start: startFastify },
  'Koa 3': {
    start: (limiter, service) => {
      const app = new Koa().use(koaFilter(limiter)).use(serveOnKoa(limiter, service))
      app.silent = true
      return listen(createServer(app.callback()))
    },
  },
  'Hono 4': {
    start: (limiter, service) => {
      const app = new Hono()
      app.use(honoFilter(limiter))
      return listen(createServer(getRequestListener(serveOnHono(app, limiter, service).fetch)))
    },
  },
  'fetch on Node': {
    start: (limiter, service) => {
      const handle = fetchFilter(limiter).wrap(serveOnFetch(limiter, service))
      return listen(createServer(getRequestListener(handle as never)))
    },
  },
  // guards meet what a controller serves, and nothing else
  'Nest 11': { start: startNest, seesUnknownPaths: false },
}

const lacks: Readonly<Record<string, Partial<FilterSuiteOptions>>> = {
  'node:http': { forwardsErrors: false },
  'node:http2': { forwardsErrors: false },
  'fetch on Node': { setsHeadersBefore: false },
}

/** The service of the filter suite behind every filter. */
export const servers: Readonly<Record<string, FilterSuiteOptions>> = Object.fromEntries(
  Object.entries(starts).map(([name, server]) => {
    const startOne = oneLimitServers[name]
    return [name, { ...server, limitsRoutes: true, ...(startOne && { startOne }), ...lacks[name] }]
  }),
)

async function startFastify(limiter: Limiter, service: FilterService): Promise<ServerUnderTest> {
  const app = fastify({ forceCloseConnections: true })
  app.register(fastifyFilter(limiter))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, body, done) => done(null, body))
  app.get('/hello', async () => service.hello())
  app.get('/login', { onRequest: fastifyRoute(limiter, { rule: login }) }, async () => service.login())
  app.get('/slow', () => service.slow())
  app.get<{ Params: { id: string } }>('/users/:id', async ({ params }) => service.user(params.id))
  app.get('/stream', (_request, reply) => reply.send(Readable.from(service.stream())))
  app.get('/broken', async () => service.broken())
  app.post('/echo', (request, reply) => reply.send(request.body))
  await app.listen({ port: 0, host: '127.0.0.1', backlog: 1024 })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

/** Node's own server has no routes: the filter of a route stands around the listener that serves it. */
function withLogin(limiter: Limiter, service: FilterService): ReturnType<typeof nodeListener> {
  const others = nodeListener(service)
  const route = httpRoute(limiter, (_request, response) => response.end(service.login()), { rule: login })
  return (request, response) => (request.url === '/login' ? route : others)(request, response)
}

function serveOnKoa(limiter: Limiter, service: FilterService): Koa.Middleware {
  const route = koaRoute(limiter, { rule: login })
  return async (context, next) => {
    const { path } = context
    const method = context.method === 'HEAD' ? 'GET' : context.method
    if (method !== (path === '/echo' ? 'POST' : 'GET')) context.status = 404
    else if (path === '/hello') context.body = service.hello()
    else if (path === '/login')
      await route(context, async () => {
        context.body = service.login()
        await next()
      })
    else if (path === '/slow') context.body = await service.slow()
    else if (path === '/stream') context.body = Readable.from(service.stream())
    else if (path === '/broken') service.broken()
    else if (path === '/echo') context.body = context.req
    else if (path.startsWith('/users/')) context.body = service.user(path.slice(7))
  }
}

function serveOnFetch(limiter: Limiter, service: FilterService): (request: Request, info: object) => Promise<Response> {
  const route = fetchRoute(limiter, { rule: login })
  const stream = () => ReadableStream.from(service.stream()).pipeThrough(new TextEncoderStream())
  return async (request, info) => {
    const { pathname } = new URL(request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    if (method !== (pathname === '/echo' ? 'POST' : 'GET')) return new Response(null, { status: 404 })
    if (pathname === '/hello') return new Response(service.hello())
    if (pathname === '/login')
      return await route.wrap((_request, _info: object) => new Response(service.login()))(request, info)
    if (pathname === '/slow') return new Response(await service.slow())
    if (pathname === '/stream') return new Response(stream())
    if (pathname === '/broken') return await Promise.resolve(service.broken())
    if (pathname === '/echo') return new Response(request.body)
    if (pathname.startsWith('/users/')) return new Response(service.user(pathname.slice(7)))
    return new Response(null, { status: 404 })
  }
}

function serveOnHono(app: Hono, limiter: Limiter, service: FilterService): Hono {
  app.get('/login', honoRoute(limiter, { rule: login }), context => context.text(service.login()))
  app.get('/hello', context => context.text(service.hello()))
  app.get('/slow', async context => context.text(await service.slow()))
  app.get('/users/:id', context => context.text(service.user(context.req.param('id'))))
  app.get('/stream', context =>
    stream(context, out => out.pipe(ReadableStream.from(service.stream()).pipeThrough(new TextEncoderStream()))),
  )
  app.get('/broken', () => service.broken())
  app.post('/echo', context => new Response(context.req.raw.body))
  app.onError((_error, context) => context.text('broken', 500))
  return app
}
