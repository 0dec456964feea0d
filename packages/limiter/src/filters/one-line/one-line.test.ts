import 'reflect-metadata'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ask, http2Client, httpClient, type Reply } from '../../testing/filters/client.ts'
import type { ServerUnderTest } from '../../testing/filters/suite.ts'
import { rateLimit as onExpress } from '../express.ts'
import { rateLimit as onFastify } from '../fastify.ts'
import { rateLimit as onFetch } from '../fetch.ts'
import { rateLimit as onHono } from '../hono.ts'
import { rateLimit as onHttp } from '../http.ts'
import { rateLimit as onKoa } from '../koa.ts'
import { DianaModule } from '../nest.ts'
import type { RateLimitOptions } from './options.ts'
import type { OwnLimiter } from './own-limiter.ts'

type Options = RateLimitOptions<never>

interface Started extends ServerUnderTest {
  /** The middleware, where it has a way to be closed. */
  readonly own?: OwnLimiter
}

const clock = () => 1_700_000_000_000
const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.restoreAllMocks()
})

/** One line in each framework, in front of a handler that answers `served`. */
const frameworks: Readonly<Record<string, (options: never) => Promise<Started>>> = {
  'node:http': async options => {
    const own = onHttp(options, (_request, response) => response.end('served'))
    return { ...(await listen(createServer(own))), own }
  },
  'node:http2': async options => {
    const own = onHttp(options, (_request, response) => response.end('served'))
    return { ...(await listen(createHttp2Server(own as never))), own }
  },
  'a middleware of Connect': async options => {
    const own = onHttp(options)
    return { ...(await listen(createServer((one, two) => own(one, two, () => two.end('served'))))), own }
  },
  Express: async options => {
    const own = onExpress(options)
    const app = express()
      .use(own)
      .get('/', (_request, response) => void response.send('served'))
    return { ...(await listen(createServer(app))), own }
  },
  Fastify: async options => {
    const own = onFastify(options)
    const app = fastify({ forceCloseConnections: true }).register(own)
    app.get('/', async () => 'served')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close(), own }
  },
  'a hook of one route of Fastify': async options => {
    const own = onFastify(options)
    const app = fastify({ forceCloseConnections: true })
    app.get('/', { onRequest: own }, async () => 'served')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close(), own }
  },
  Koa: async options => {
    const own = onKoa(options)
    const app = new Koa().use(own).use(context => {
      context.body = 'served'
    })
    return { ...(await listen(createServer(app.callback()))), own }
  },
  Hono: async options => {
    const own = onHono(options)
    const app = new Hono().use(own).get('/', context => context.text('served'))
    return { ...(await listen(createServer(getRequestListener(app.fetch)))), own }
  },
  fetch: async options => {
    const own = onFetch(options)
    const handle = own.wrap(() => new Response('served'))
    return { ...(await listen(createServer(getRequestListener(handle as never)))), own }
  },
  Nest: async options => {
    class Calls {
      one(): string {
        return 'served'
      }
    }
    Get()(Calls.prototype, 'one', Object.getOwnPropertyDescriptor(Calls.prototype, 'one')!)
    Controller()(Calls)
    class Application {}
    Module({ imports: [DianaModule.forRoot(options)], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    closing.push(() => app.close())
    await app.init()
    return await listen(app.getHttpServer())
  },
}

async function start(name: string, options: Options): Promise<(headers?: Record<string, string>) => Promise<Reply>> {
  const { port, close, own } = await frameworks[name]!({ clock, ...options } as never)
  const client = name === 'node:http2' ? http2Client(port) : httpClient(port, false)
  closing.push(
    () => own?.close(),
    close,
    () => client.close(),
  )
  return headers => ask(client, { path: '/', headers })
}

describe.each(Object.keys(frameworks))('one line in %s', name => {
  it('rateLimit({ limit }) limits each address, from the first request on', async () => {
    const call = await start(name, { limit: '2/h' })
    const replies = await Promise.all([call(), call(), call()])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 503])
    const { status, headers } = await call()
    expect([status, headers['ratelimit-policy']]).toEqual([503, '"rate-limit";q=2;w=3600'])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  })

  it('status, message, headers, id, algorithm and its options are those of the rule', async () => {
    const options = { id: 'mine', limit: '1/h', algorithm: 'token-bucket', burst: 2 } as const
    const call = await start(name, { ...options, status: 429, message: { error: 'slow down' }, headers: 'legacy' })
    const { headers } = await call()
    expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['2', '1'])
    await call()
    const { status, body, headers: late } = await call()
    expect([status, JSON.parse(body)]).toEqual([429, { error: 'slow down' }])
    expect(late['content-type']).toMatch(/^application\/json/)
  })

  it('by, skip, cost and onRefused take functions of the request', async () => {
    // requests of Hono and the web have methods to read headers
    const header = (request: never, key: string): string | undefined => {
      const { req, headers = req, header: read } = request as never as { headers?: never; req?: never; header?: never }
      const all = headers as never as { get?: (key: string) => string | null; headers?: object; header?: object }
      if (typeof all.get === 'function' && read === undefined) return all.get(key) ?? undefined
      if (typeof all.header === 'function') return all.header(key) as string
      return ((all.headers ?? all) as Record<string, string>)[key]
    }
    const call = await start(name, {
      limit: '4/h',
      by: request => header(request, 'x-user'),
      skip: request => header(request, 'x-free') === 'yes',
      cost: (_call, request) => Number(header(request, 'x-cost') ?? 1),
      onRefused: (_verdict, request) => ({ status: 418, body: `enough, ${header(request, 'x-user') ?? 'stranger'}` }),
    })
    const statuses = async (...all: Record<string, string>[]) => {
      const list: number[] = []
      for (const headers of all) list.push((await call(headers)).status)
      return list
    }
    const ann = { 'x-user': 'ann' }
    expect(await statuses({ ...ann, 'x-cost': '3' }, ann, ann, { ...ann, 'x-free': 'yes' })).toEqual([
      200, 200, 418, 200,
    ])
    expect((await call(ann)).body).toContain('enough, ann')
    expect(await statuses({ 'x-user': 'bob' }, {}, { 'x-cost': '4' })).toEqual([200, 200, 418])
  })
})

describe('rateLimit({ limit })', () => {
  it('once the engine is loaded, a request is decided before the middleware returns', async () => {
    const own = onExpress({ limit: '1/h', clock })
    closing.push(own.close)
    await own.limiter
    const seen: boolean[] = []
    const app = express().use((request, response, next) => {
      let isDecided = false
      own(request, response, () => {
        isDecided = true
        next()
      })
      seen.push(isDecided)
    })
    const { port, close } = await listen(createServer(app))
    closing.push(close)
    await fetch(`http://127.0.0.1:${port}/`)
    expect(seen).toEqual([true])
  })

  it('two limits on one request are decided together: a call that one refuses is not charged by the other', async () => {
    const [wide, narrow] = [
      onExpress({ id: 'wide', limit: '9/h', clock }),
      onExpress({ id: 'narrow', limit: '1/h', clock }),
    ]
    closing.push(wide.close, narrow.close)
    const app = express().use(wide, narrow, (_request, response) => void response.send('served'))
    const { port, close } = await listen(createServer(app))
    closing.push(close)
    for (let i = 0; i < 3; i++) await fetch(`http://127.0.0.1:${port}/`)
    const { decisions } = await (await wide.limiter).peek('127.0.0.1', { rule: 'wide' })
    expect(decisions[0]!.remaining).toBe(8)
  })

  it('after close() requests pass, and the error is given to onError', async () => {
    const errors: unknown[] = []
    const own = onExpress({ limit: '1/h', onError: error => void errors.push(error) })
    await own.close()
    const { port, close } = await listen(
      createServer(express().use(own, (_request, response) => void response.send(''))),
    )
    closing.push(close)
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    expect(errors).toMatchObject([{ code: 'CLOSED' }])
  })

  it('a limit that only the engine rejects ends the process with the error and the line of the program', async () => {
    const later = vi.spyOn(globalThis, 'setImmediate').mockImplementation((() => {}) as never)
    const errors: unknown[] = []
    const options = { limit: '5/m', algorithm: 'leaky-bucket', whenFull: 'wait' } as const
    const own = onExpress({ ...options, onError: error => void errors.push(error) })
    const error = await own.limiter.catch((one: Error) => one)
    await vi.waitFor(() => expect(later).toHaveBeenCalled())
    expect(later.mock.calls[0]![0]).toThrow('rateLimit: burst is missing: say how many may wait, as in burst: 20')
    later.mockRestore()
    expect((error as Error).stack?.split('\n')[1]).toContain('one-line.test.ts')
    const { port, close } = await listen(
      createServer(express().use(own, (_request, response) => void response.send(''))),
    )
    closing.push(close, own.close)
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(503)
    expect(errors).toEqual([error])
  })

  const limit = '100/m'
  const named = (): string => 'x'
  const empty =
    'store is empty, as when an environment variable is not set: give the URL of Redis, or leave store out to count in this process'
  it.each([
    [{}, "needs a limit, a count and its period: write rateLimit({ limit: '100/m' })"],
    [{ limt: '100/m' }, 'unknown option limt; did you mean limit?'],
    [{ limit, skipp: () => true }, 'unknown option skipp; did you mean skip?'],
    [{ limit, windowMs: 60_000 }, 'unknown option windowMs; write limit: 100/m'],
    [{ max: 5, timeWindow: 60_000 }, "unknown option max; write limit: '5/m'"],
    [{ windowMs: 900_000, limit: 100 }, "unknown option windowMs; write limit: '100/15m'"],
    [{ points: 6, duration: 1 }, "unknown option points; write limit: '6/s'"],
    [{ max: 5, timeWindow: '1 minute' }, 'unknown option max; write limit: 100/m'],
    [
      { limit, keyGenerator: () => 'x' },
      'unknown option keyGenerator; write by: request => …, a function that returns the name of the caller',
    ],
    [{ limit, statusCode: 429 }, 'unknown option statusCode; write status: 429'],
    [{ limit, skipSuccessfulRequests: true }, 'unknown option skipSuccessfulRequests; write countWhen: failed'],
    [{ limit, skip: 'yes' }, 'skip must be a function, not "yes"'],
    [{ limit, attributes: async () => ({}) }, 'attributes must not be async: return the value itself'],
    [{ limit, cost: -1 }, 'cost must be a whole number of 0 or more, or a function, not -1'],
    [{ limit, store: '' }, empty],
    [{ limit, store: process.env.DIANA_TEST_UNSET }, empty],
    [{ limit, store: { redis: process.env.DIANA_TEST_UNSET } }, empty.replace('store', 'store.redis')],
    [
      { limit, store: 'env:DIANA_TEST_UNSET' },
      'store is in the environment variable "DIANA_TEST_UNSET", which is not set',
    ],
    [{ limit: '2 per min' }, 'limit "2 per min" is not a limit: did you mean 2/m?'],
    [{ limit: '1k/s' }, 'limit "1k/s" is not a limit: did you mean 1000/s?'],
    [
      { limit: { by: named } },
      'limit.default is missing: write the limit of callers without a value of their own, such as default: 100/h',
    ],
    [
      { limit, trustProxy: true },
      'trustProxy must be a number of hops from 0 to 32, or a list of networks such as 10.0.0.0/8, not true: write trustProxy: 1',
    ],
    [
      { limit, headers: 'draft-8' },
      'headers must be draft-11, draft-7, draft-6, legacy or none, not "draft-8": draft-11 has its form',
    ],
    [{ limit, nothing: 1 }, 'unknown option nothing; write id, limit, by,'],
    [{ limit, by: 'ipp' }, 'by "ipp" is not a dimension: did you mean ip?'],
    [{ limit, algorithm: 'token-buket' }, 'algorithm must be sliding-window, fixed-window,'],
    [{ limit, status: 99 }, 'status must be a whole number from 200 to 599, not 99'],
    [{ limit: ['1/s', () => limit] }, 'limit[1] must not be a function: write one function for limit'],
    [{ limit: { by: named, from: 'https://a.example/{ip}', default: limit } }, 'limit.from is not for a function'],
    [{ limit: { by: named, refresh: '1m', default: limit } }, 'limit.refresh is not for a function'],
    [{ limit: { by: named, default: () => limit } }, 'limit.default must be <count>/<period>, not a function'],
    [{ limit, identify: { account: async () => 'x' } }, 'identify.account must not be async'],
    [
      { limit, forwardErrors: true, onRefused: () => undefined },
      'forwardErrors and onRefused both say what a refused caller gets: leave one out',
    ],
    [{ limit, forwardErrors: 'yes' }, 'forwardErrors must be true or false, not "yes"'],
    [{ limit, countPreflights: 1 }, 'countPreflights must be true or false'],
    [{ limit, store: 5 }, 'store must be the URL of Redis, such as redis://127.0.0.1:6379, or a client, not 5'],
    [{ limit, burst: 5 }, 'burst belongs to token-bucket, leaky-bucket: set algorithm: token-bucket or leaky-bucket'],
    [
      { limit, queue: { timeout: '5 sec' }, whenFull: 'wait' },
      'queue.timeout "5 sec" is not a duration: did you mean 5s?',
    ],
    [{ limit, queue: { size: 5 } }, 'queue is only for rules that wait: add whenFull: wait, or leave queue out'],
    [{ limit, peer: () => '::1' }, 'unknown option peer'],
  ])('the options %o are an error where they are given', (options, message) => {
    expect(() => onExpress(options as never)).toThrow(`rateLimit: ${message}`)
  })

  it('a promise of a limiter, and what is no limiter, are errors that name the remedy', async () => {
    expect(() => onExpress(Promise.resolve() as never)).toThrow('was given a promise of a limiter: await it first')
    expect(() => onExpress({ rules: [] } as never)).toThrow('was given options instead of a limiter')
    const remedy = "write rateLimit({ limit: '100/m' })"
    expect(() => (onExpress as never as () => void)()).toThrow(`rateLimit: it takes options, not nothing: ${remedy}`)
    expect(() => onExpress('5/m' as never)).toThrow('rateLimit: it takes options: write rateLimit({ limit: "5/m" })')
    expect(() => onExpress((() => {}) as never)).toThrow(`rateLimit: it takes options, not a function: ${remedy}`)
  })

  it('two limits without names in one store are an error; after close() the name is free', async () => {
    const store = async () => 'OK'
    const first = onExpress({ limit, store })
    expect(() => onExpress({ limit, store })).toThrow('two limits in one store need names')
    await first.close()
    await onExpress({ limit, store }).close()
  })
})

it('the compiler knows the options, and the request of each framework', () => {
  const compiled = () => {
    onExpress({ limit: '1/s', by: request => request.get('x-key'), skip: ({ originalUrl }) => originalUrl === '/' })
    onFastify({ limit: '1/s', by: ['ip', request => request.routeOptions.url] })
    onKoa({ limit: '1/s', by: context => context.get('x-key') })
    onHono({ limit: '1/s', by: context => context.req.header('x-key'), peer: () => '::1' })
    onFetch({ limit: '1/s', by: request => request.headers.get('x-key') ?? undefined, store: 'redis://127.0.0.1' })
    onExpress({ limit: 5, algorithm: 'concurrency', whenFull: 'wait', queue: { size: 5 } })
    // @ts-expect-error a name that is no option
    onExpress({ limit: '1/s', windowMs: 1000 })
    // @ts-expect-error no limit
    onExpress({ by: 'ip' })
    // @ts-expect-error burst is not an option of the default algorithm
    onExpress({ limit: '1/s', burst: 5 })
    onExpress({ limit: async request => request.get('x-limit'), by: async () => 'x', skip: async () => false })
    onExpress({ limit: { by: () => 'pro', values: { pro: '9/s' }, default: '1/s' } })
    onExpress({
      limit: '1/s',
      onRefused: (_verdict, _request, response, next) => void (response.headersSent || next()),
    })
    // @ts-expect-error a limit that is no text
    onExpress({ limit: () => ({ count: 5 }) })
  }
  expect(compiled).toBeTypeOf('function')
})
