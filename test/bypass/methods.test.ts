import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import { getRequestListener } from '@hono/node-server'
import { randomRuns } from '@test/random-runs'
import express, { type Request as ExpressRequest, type NextFunction } from 'express'
import fc from 'fast-check'
import fastify from 'fastify'
import { Hono } from 'hono'
import { methodOverride } from 'hono/method-override'
import Koa from 'koa'
import { afterAll, expect, test } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { diana as expressFilter } from '../../packages/limiter/src/filters/express.ts'
import { diana as fastifyFilter } from '../../packages/limiter/src/filters/fastify.ts'
import { diana as fetchFilter } from '../../packages/limiter/src/filters/fetch.ts'
import { diana as honoFilter } from '../../packages/limiter/src/filters/hono.ts'
import { diana as httpFilter } from '../../packages/limiter/src/filters/http.ts'
import { diana as koaFilter } from '../../packages/limiter/src/filters/koa.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { ServerUnderTest } from '../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from '../helpers/filters/listen.ts'
import { gatewayBefore } from './subjects.ts'

// Middleware such as method-override lets a POST be a DELETE, before or behind the filter: the handler that runs is compared with the
// rules that have counted the call.

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const served = (method: string): string => `served ${method === 'HEAD' ? 'GET' : method}`

type Overridable = Pick<IncomingMessage, 'method' | 'headers' | 'url'>

/** The method that a request means, as the package method-override finds it: the first item, of a POST, if it is a method. */
function overridden({ method, headers, url = '' }: Overridable, by: string, isForAll = false): string {
  if (method !== 'POST' && !isForAll) return method ?? 'GET'
  const given = by.startsWith('x-')
    ? String(headers[by] ?? '').split(/ *, */)
    : [parseQuery(url.split('?')[1] ?? '')[by] ?? ''].flat()
  const meant = (given[0] ?? '').toUpperCase()
  return (methods as readonly string[]).includes(meant) ? meant : (method ?? 'GET')
}

type Start = (limiter: Limiter, by: string) => Promise<ServerUnderTest>

function expressWith(list: (by: string, limiter: Limiter) => express.RequestHandler[]): Start {
  return (limiter, by) => {
    const app = express()
    for (const one of list(by, limiter)) app.use(one)
    for (const method of methods) {
      app[method.toLowerCase() as 'get']('/item', (_request, response) => void response.end(served(method)))
    }
    return listen(createServer(app))
  }
}

const overriding =
  (by: string, isForAll = false): express.RequestHandler =>
  (incoming: ExpressRequest, _response: unknown, next: NextFunction) => {
    incoming.method = overridden(incoming, by, isForAll)
    next()
  }

const starts: Readonly<Record<string, Start>> = {
  'Express, overridden before the filter': expressWith((by, limiter) => [overriding(by), expressFilter(limiter)]),
  'Express, overridden behind the filter': expressWith((by, limiter) => [expressFilter(limiter), overriding(by)]),
  'Express, overridden between two filters': expressWith((by, limiter) => [
    expressFilter(limiter),
    overriding(by),
    expressFilter(limiter),
  ]),
  'Express, every method overridden': expressWith((by, limiter) => [expressFilter(limiter), overriding(by, true)]),
  'Express, overridden by a form before the filter': expressWith((_by, limiter) => [
    express.urlencoded(),
    (incoming, _response, next) => {
      const meant = String(incoming.body?._method ?? '').toUpperCase()
      if (incoming.method === 'POST' && (methods as readonly string[]).includes(meant)) incoming.method = meant
      next()
    },
    expressFilter(limiter),
  ]),
  'Koa, overridden behind the filter': (limiter, by) => {
    const app = new Koa().use(koaFilter(limiter))
    app.use(context => {
      context.method = overridden(context.req, by)
      context.body = served(context.method)
    })
    return listen(createServer(app.callback()))
  },
  'Fastify, overridden before its router': async (limiter, by) => {
    const app = fastify({
      forceCloseConnections: true,
      serverFactory: handle =>
        createServer((incoming, response) => {
          incoming.method = overridden(incoming, by)
          handle(incoming, response)
        }),
    })
    app.register(fastifyFilter(limiter))
    app.addContentTypeParser('*', (_request, _body, done) => done(null))
    for (const method of methods) app.route({ method, url: '/item', handler: async () => served(method) })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: Number(new URL(app.listeningOrigin).port), close: () => app.close() }
  },
  'Hono with its methodOverride': (limiter, by) => {
    const app = new Hono()
    app.use(honoFilter(limiter))
    app.use('/item', methodOverride(by.startsWith('x-') ? { app, header: by } : { app, query: by }))
    for (const method of methods) app.on(method, '/item', context => context.text(served(method)))
    app.onError((_error, context) => context.body(null, 400))
    return listen(createServer(getRequestListener(app.fetch)))
  },
  'Hono with its methodOverride by a form': limiter => {
    const app = new Hono()
    app.use(honoFilter(limiter))
    app.use('/item', methodOverride({ app }))
    for (const method of methods) app.on(method, '/item', context => context.text(served(method)))
    app.onError((_error, context) => context.body(null, 400))
    return listen(createServer(getRequestListener(app.fetch)))
  },
  'a handler of fetch that overrides': (limiter, by) => {
    const handle = fetchFilter(limiter).wrap((incoming: Request, _info: object) => {
      const { method, url, headers } = incoming
      return new Response(served(overridden({ method, url, headers: Object.fromEntries(headers) }, by)))
    })
    return listen(createServer(getRequestListener(handle as never)))
  },
  'a listener of node:http that overrides': (limiter, by) =>
    listen(createServer(httpFilter(limiter, (incoming, response) => response.end(served(overridden(incoming, by)))))),
  'a service behind the gateway that overrides': async (limiter, by) => {
    const service = await listen(
      createServer((incoming, response) => response.end(served(overridden(incoming, by, true)))),
    )
    return await gatewayBefore(service, limiter)
  },
}

interface Sent {
  readonly method: string
  readonly query: string
  readonly lines: readonly string[]
  readonly body: string
}

const value = fc.constantFrom(
  'DELETE',
  'delete',
  ' Delete ',
  'PUT',
  'DELETE, POST',
  'PUT,DELETE',
  'GET',
  'HEAD',
  'X',
  '',
)
const spelled = (name: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    name,
    name.toUpperCase(),
    name.replaceAll(/\b\w/g, letter => letter.toUpperCase()),
  )
const requestBy = (by: string): fc.Arbitrary<Sent> => {
  const lines = fc.array(fc.tuple(spelled(by.startsWith('x-') ? by : 'x-other'), value), { maxLength: 2 })
  const names = by.startsWith('x-') ? ['a'] : [by, by.replace('_', '%5F'), by.toUpperCase(), `${by}[]`]
  const query = fc.array(fc.tuple(fc.constantFrom(...names), value.map(encodeURIComponent)), { maxLength: 2 })
  return fc.record({
    method: fc.constantFrom('POST', 'POST', 'POST', ...methods, 'HEAD'),
    lines: lines.map(all => all.flat()),
    query: query.map(all => all.map(pair => pair.join('=')).join('&')),
    body: value.map(text => (text === '' ? '' : `_method=${encodeURIComponent(text.trim())}`)),
  })
}

function send(port: number, { method, query, lines, body }: Sent): Promise<{ policies: string; text: string }> {
  return new Promise(resolve => {
    const hasBody = method === 'POST' && body !== ''
    const form = hasBody
      ? ['Content-Type', 'application/x-www-form-urlencoded', 'Content-Length', `${body.length}`]
      : []
    const headers = ['Host', 'a', ...form, ...lines]
    const outgoing = request({ port, host: '127.0.0.1', agent, method, path: `/item?${query}`, headers }, answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', piece => {
        text += piece
      })
      answer.on('end', () => resolve({ policies: String(answer.headers['ratelimit-policy'] ?? ''), text }))
    })
    outgoing.on('error', () => resolve({ policies: '', text: '' })).end(hasBody ? body : undefined)
  })
}

const agent = new Agent({ keepAlive: true })

afterAll(() => agent.destroy())

const names = ['x-http-method-override', 'x-http-method', 'x-method-override', '_method']

test.each(Object.entries(starts))(
  '%s: the rules about the method that is served have counted the call',
  async (_name, start) => {
    const rules = methods.map(method => ({ id: method, match: { path: '/item', method }, limit: '60000000/s' }))
    for (const [place, by] of names.entries()) {
      const limiter = await createLimiter({ rules })
      const server = await start(limiter, by)
      try {
        let count = 0
        for (const sent of fc.sample(requestBy(by), { numRuns: randomRuns(20), seed: place + 1 })) {
          const { policies, text } = await send(server.port, sent)
          const [, method] = /^served (\w+)$/.exec(text) ?? []
          if (method === undefined) continue
          count++
          expect([sent, method, policies]).toEqual([sent, method, expect.stringContaining(`"${method}"`)])
        }
        expect(count).toBeGreaterThan(3)
      } finally {
        await server.close()
        await limiter.close()
      }
    }
  },
)

test('a call without an override is counted by the rules about its own method alone', async () => {
  const rules = methods.map(method => ({ id: method, match: { path: '/item', method }, limit: '60000000/s' }))
  const limiter = await createLimiter({ rules })
  for (const method of methods) {
    const call = { method, path: '/item', query: 'method=DELETE&x_method=PUT', headers: { 'x-method': 'PUT' } }
    expect((await limiter.check(call)).decisions.map(({ rule }) => rule)).toEqual([method])
  }
  await limiter.close()
})
