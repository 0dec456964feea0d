import 'reflect-metadata'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Catch, Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express5, { type Express, type Response as ExpressResponse } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { LimitedError } from '../../../packages/limiter/src/answers/limited-error.ts'
import { rateLimit as express } from '../../../packages/limiter/src/filters/express.ts'
import { rateLimit as fastifyFilter } from '../../../packages/limiter/src/filters/fastify.ts'
import { rateLimit as fetchFilter } from '../../../packages/limiter/src/filters/fetch.ts'
import { rateLimit as hono } from '../../../packages/limiter/src/filters/hono.ts'
import { rateLimit as http } from '../../../packages/limiter/src/filters/http.ts'
import { rateLimit as koa } from '../../../packages/limiter/src/filters/koa.ts'
import { DianaModule } from '../../../packages/limiter/src/filters/nest.ts'
import type { OwnLimiter } from '../../../packages/limiter/src/filters/one-line/own-limiter.ts'
import type { AnyRateLimitOptions } from '../../../packages/limiter/src/testing/filters/scene.ts'
import type { FilterService } from '../../../packages/limiter/src/testing/filters/service.ts'
import type { ServerUnderTest } from '../../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from './listen.ts'

type Start = (options: AnyRateLimitOptions, service: FilterService) => Promise<ServerUnderTest>

// it has the types of Express 5 as far as these servers need them
const express4 = createRequire(import.meta.url)('express4') as typeof express5

/** What a middleware sets before the filter, as that of CORS does. */
const before = { 'Access-Control-Allow-Origin': 'https://a.example', Vary: 'Origin' } as const

const handled = (error: unknown): string => `handled ${(error as Partial<LimitedError>).code}`
const statusOf = (error: unknown): number => (error as Partial<LimitedError>).statusCode ?? 500

/** /hello of the service behind a filter of one limit, for each framework; errors are answered with their code. */
export const oneLimitServers: Readonly<Record<string, Start>> = {
  'node:http': async (options, service) => {
    const filter = http(options as never, (_request: IncomingMessage, response: ServerResponse) => {
      response.end(service.hello())
    })
    const server = createServer((request, response) => {
      for (const [name, value] of Object.entries(before)) response.setHeader(name, value)
      filter(request as never, response as never)
    })
    return closing(filter, await listen(server))
  },
  'node:http2': async (options, service) => {
    const filter = http(options as never, (_request: never, response: never) => {
      ;(response as ServerResponse).end(service.hello())
    })
    const server = createHttp2Server((request, response) => {
      for (const [name, value] of Object.entries(before)) response.setHeader(name, value)
      filter(request as never, response as never)
    })
    return closing(filter, await listen(server))
  },
  Connect: async (options, service) => {
    const filter = http(options as never)
    const server = createServer((request, response) => {
      for (const [name, value] of Object.entries(before)) response.setHeader(name, value)
      filter(request, response, error => {
        if (error === undefined) response.end(service.hello())
        else response.writeHead(statusOf(error)).end(handled(error))
      })
    })
    return closing(filter, await listen(server))
  },
  'Express 5': (options, service) => onExpress(express5(), options, service),
  'Express 4': (options, service) => onExpress(express4(), options, service),
  'Fastify 5': async (options, service) => {
    const app = fastify({ forceCloseConnections: true })
    app.addHook('onRequest', async (_request, reply) => void reply.headers(before))
    app.register(fastifyFilter(options as never))
    app.setErrorHandler((error, _request, reply) => reply.code(statusOf(error)).send(handled(error)))
    app.get('/hello', async () => service.hello())
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  'Koa 3': async (options, service) => {
    const filter = koa(options as never)
    const app = new Koa()
    app.silent = true
    app.use(async (context, next) => {
      context.set(before)
      try {
        await next()
      } catch (error) {
        context.status = statusOf(error)
        context.body = handled(error)
      }
    })
    app.use(filter).use(context => {
      context.body = service.hello()
    })
    return closing(filter, await listen(createServer(app.callback())))
  },
  'Hono 4': async (options, service) => {
    const filter = hono(options as never)
    const app = new Hono()
    app.use(async (context, next) => {
      for (const [name, value] of Object.entries(before)) context.res.headers.set(name, value)
      await next()
    })
    app.use(filter)
    app.get('/hello', context => context.text(service.hello()))
    app.onError((error, context) => context.text(handled(error), statusOf(error) as 500))
    return closing(filter, await listen(createServer(getRequestListener(app.fetch))))
  },
  'fetch on Node': async (options, service) => {
    const filter = fetchFilter(options as never)
    const handle = filter.wrap((_request: Request, _info: object) => new Response(service.hello()))
    const serve = async (request: Request, info: object): Promise<Response> => {
      try {
        return await handle(request, info)
      } catch (error) {
        return new Response(handled(error), { status: statusOf(error) })
      }
    }
    return closing(filter, await listen(createServer(getRequestListener(serve as never))))
  },
  'Nest 11': async (options, service) => {
    class Calls {
      hello(): string {
        return service.hello()
      }
    }
    Get('hello')(Calls.prototype, 'hello', Object.getOwnPropertyDescriptor(Calls.prototype, 'hello')!)
    Controller()(Calls)
    class Handler {
      catch(error: LimitedError, host: { switchToHttp(): { getResponse(): ExpressResponse } }): void {
        host.switchToHttp().getResponse().status(error.statusCode).send(handled(error))
      }
    }
    Catch(LimitedError)(Handler)
    class Application {}
    Module({ imports: [DianaModule.forRoot(options as never)], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    app.use((_request: unknown, response: ExpressResponse, next: () => void) => {
      response.set(before)
      next()
    })
    app.useGlobalFilters(new Handler())
    await app.init()
    const server = await listen(app.getHttpServer())
    return { port: server.port, close: () => Promise.all([server.close(), app.close()]) }
  },
}

async function onExpress(app: Express, options: AnyRateLimitOptions, service: FilterService): Promise<ServerUnderTest> {
  const filter = express(options as never)
  app.use((_request, response, next) => {
    response.set(before)
    next()
  })
  app.use(filter)
  app.get('/hello', (_request, response) => void response.send(service.hello()))
  app.use((error: unknown, _request: unknown, response: ExpressResponse, _next: unknown) => {
    response.status(statusOf(error)).send(handled(error))
  })
  return closing(filter, await listen(createServer(app)))
}

function closing(filter: OwnLimiter, server: ServerUnderTest): ServerUnderTest {
  return { port: server.port, close: () => Promise.all([server.close(), filter.close()]) }
}
