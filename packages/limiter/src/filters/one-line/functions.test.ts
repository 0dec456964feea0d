import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { engineOf } from '../../engine/engine-of.ts'
import { admit } from '../admit.ts'
import { rateLimit as onExpress } from '../express.ts'
import { rateLimit as onFastify } from '../fastify.ts'
import { rateLimit as onFetch } from '../fetch.ts'
import type { Framework } from '../frameworks/framework.ts'
import { httpFramework } from '../frameworks/http.ts'
import type { NodeRequest, NodeResponse } from '../frameworks/node.ts'
import { rateLimit as onHono } from '../hono.ts'
import { rateLimit as onHttp } from '../http.ts'
import { MOST_ANSWER_MS } from '../in-time.ts'
import { rateLimit as onKoa } from '../koa.ts'
import type { RateLimitOptions } from './options.ts'
import { createOwnFilter } from './own-limiter.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
}

/** A filter of one limit on a framework of this test: what becomes of each request. */
async function filterOf(options: object) {
  const errors: unknown[] = []
  const framework = {
    ...httpFramework,
    identity: (request: object) => request,
    peer: () => '203.0.113.1',
    isAnswered: () => false,
    setHeader: () => {},
    refuse: (_request: object, reply: { status?: number }, { status }: { status: number }) => {
      reply.status = status
    },
    watch: () => {},
  } as unknown as Framework<object, object>
  const given = { onError: (error: unknown) => void errors.push(error), ...options } as unknown
  const own = createOwnFilter(given as RateLimitOptions<object>, framework)
  closing.push(own.close)
  const limiter = await own.limiter
  await own.filter.pending
  const call = async (asked: Asked = {}): Promise<number> => {
    const reply: { status?: number } = {}
    const passes = await admit(own.filter, { method: 'GET', url: '/', headers: {}, ...asked }, reply)
    return passes ? 200 : reply.status!
  }
  return { call, errors, limiter }
}

const never = (): Promise<never> => new Promise(() => {})

describe('a function that never settles', () => {
  it.each([
    ['limit', { limit: never }, 503],
    ['by', { limit: '1/h', by: never }, 200],
    ['skip', { limit: '1/h', skip: never }, 200],
    ['by with whenFailed: refuse', { limit: '1/h', by: never, whenFailed: 'refuse' }, 503],
  ])('a function that never settles is given up after five seconds: %s', async (name, options, status) => {
    const { call, errors } = await filterOf(options)
    vi.useFakeTimers()
    const first = call()
    await vi.advanceTimersByTimeAsync(MOST_ANSWER_MS)
    expect(await first).toBe(status)
    const timers = vi.getTimerCount()
    const second = call()
    await vi.advanceTimersByTimeAsync(MOST_ANSWER_MS)
    expect([await second, vi.getTimerCount()]).toEqual([503, timers])
    expect(errors.map(String)).toContain(`Error: ${name.split(' ')[0]} gave no answer within ${MOST_ANSWER_MS} ms`)
  })
})

describe('a function that returns another limit for each request', () => {
  it('a function that returns another limit for each request is counted by at most a thousand limits at a time', async () => {
    let calls = 0
    const { call, limiter } = await filterOf({ limit: () => `${++calls}/h`, by: () => `caller ${calls}` })
    const statuses = new Map<number, number>()
    for (let i = 0; i < 3000; i++) {
      const status = await call()
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect(Object.fromEntries(statuses)).toEqual({ 200: 1000, 503: 2000 })
    const [state] = engineOf(limiter).decider.rules
    expect([...state!.plans!.others].length).toBeLessThanOrEqual(1000)
  })

  it('calls of a caller are counted by all limits that a function has returned', async () => {
    const limits = ['3/h', '4/h', '5/h', '3/h', '4/h', '5/h', '6/h', '5/h']
    const { call } = await filterOf({ limit: () => limits.shift()! })
    const statuses: number[] = []
    while (limits.length > 0) statuses.push(await call())
    expect(statuses).toEqual([200, 200, 200, 503, 200, 200, 200, 503])
  })
})

it('the limit of a request that is not made by a filter is not known, so it is refused', async () => {
  const { limiter } = await filterOf({ limit: () => '5/h' })
  expect((await limiter.check({ method: 'GET', path: '/', ip: '203.0.113.1' })).allowed).toBe(false)
})

it('a limit counted at one time is a number', async () => {
  const { call, errors } = await filterOf({ algorithm: 'concurrency', limit: async () => 2 })
  expect([await call(), await call(), await call(), errors]).toEqual([200, 200, 503, []])
})

it('a limit by calendar needs an algorithm that counts it', async () => {
  const { call, errors } = await filterOf({ limit: () => '5/month' })
  expect([await call(), String(errors[0])]).toEqual([
    503,
    expect.stringMatching(/^DianaError: rateLimit: limit returned per month is a calendar period/),
  ])
  const fixed = await filterOf({ algorithm: 'fixed-window', limit: () => '1/month' })
  expect([await fixed.call(), await fixed.call()]).toEqual([200, 503])
})

it('a rule in shadow lets requests pass whose limit fails', async () => {
  const { call } = await filterOf({ whenFull: 'shadow', limit: () => Promise.reject(new Error('no database')) })
  expect([await call(), await call()]).toEqual([200, 200])
})

it('the burst of the options is that of limits that a function returns without one', async () => {
  const { call } = await filterOf({ algorithm: 'token-bucket', burst: 3, limit: () => '1/h' })
  expect([await call(), await call(), await call(), await call()]).toEqual([200, 200, 200, 503])
})

it.each<[object, number[]]>([
  [{ algorithm: 'fixed-window' }, [200, 200, 503]],
  [{ algorithm: 'sliding-log' }, [200, 200, 503]],
  [{ algorithm: 'leaky-bucket', burst: 1 }, [200, 200, 503]],
  [{ algorithm: 'warm-up', warmUp: '30s', limit: { by: () => '2/h', default: '9/s' } }, [200, 503, 503]],
  [{ algorithm: 'adaptive', limit: () => 2 }, [200, 200, 503]],
])('a function gives limits of %o', async (options, statuses) => {
  const { call } = await filterOf({ limit: () => '2/h', ...options })
  expect([await call(), await call(), await call()]).toEqual(statuses)
})

it('a queue needs a limit that is written, since it is made before the first request', () => {
  const waits = { algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait' } as const
  const remedy = "write limit: { by: request => …, default: '5/s' }"
  expect(() => onExpress({ ...waits, limit: () => '5/s' })).toThrow(remedy)
  expect(() => onExpress({ algorithm: 'warm-up', warmUp: '9s', limit: () => '5/s' })).toThrow(remedy)
})

it('plans, limits and nothing may be returned by one function', async () => {
  const plans = { values: { pro: '3/h' }, default: '1/h' } as const
  const by = (request: Asked) => request.headers?.plan
  const { call } = await filterOf({ limit: { by, ...plans }, by: (request: Asked) => request.headers?.plan ?? 'none' })
  const times = async (count: number, plan?: string) => {
    const statuses: number[] = []
    for (let i = 0; i < count; i++) statuses.push(await call(plan === undefined ? {} : { headers: { plan } }))
    return statuses.filter(status => status === 200).length
  }
  expect([await times(5), await times(5, 'pro'), await times(5, '2/h'), await times(5, 'gold')]).toEqual([1, 3, 2, 1])
})

const refused = { limit: '0/h', onError: () => {} } as const

/** How an application answers by its framework's own means, and passes on, in each framework. */
const answering: Readonly<Record<string, readonly [own: () => Promise<Served>, next?: () => Promise<Served>]>> = {
  Connect: [
    () => connect({ onRefused: (_verdict, _request, response) => void response.writeHead(429).end('own') }),
    () => connect({ onRefused: (_verdict, _request, _response, next) => next() }),
  ],
  Express: [
    () => expressApp({ onRefused: (_verdict, _request, response) => void response.status(429).send('own') }),
    () => expressApp({ onRefused: async (_verdict, _request, _response, next) => next() }),
  ],
  Fastify: [() => fastifyApp({ onRefused: (_verdict, _request, reply) => void reply.code(429).send('own') })],
  'Fastify, returned': [
    () => fastifyApp({ onRefused: (_verdict, _request, reply) => reply.code(429).send('own') as never }),
  ],
  Koa: [
    () =>
      koaApp({
        onRefused: (_verdict, context) => {
          context.status = 429
          context.body = 'own'
        },
      }),
    () => koaApp({ onRefused: async (_verdict, _context, _same, next) => await next() }),
  ],
  Hono: [
    () => honoApp({ onRefused: (_verdict, context) => context.text('own', 429) }),
    () => honoApp({ onRefused: async (_verdict, _context, _same, next) => await next() }),
  ],
  fetch: [() => fetchApp({ onRefused: () => new Response('own', { status: 429 }) })],
}

interface Served {
  readonly port: number
  close(): Promise<unknown>
}

type ConnectOptions = RateLimitOptions<NodeRequest, NodeResponse, (error?: unknown) => void>

async function connect(more: Partial<ConnectOptions>): Promise<Served> {
  const own = onHttp({ ...refused, ...more } as ConnectOptions)
  closing.push(own.close)
  return listen(createServer((request, response) => own(request, response, () => response.end('passed'))))
}

async function expressApp(more: Partial<Parameters<typeof onExpress>[0]>): Promise<Served> {
  const own = onExpress({ ...refused, ...more } as never)
  closing.push((own as unknown as { close(): unknown }).close)
  return listen(createServer(express().use(own, (_request, response) => void response.send('passed'))))
}

async function fastifyApp(more: Partial<Parameters<typeof onFastify>[0]>): Promise<Served> {
  const app = fastify({ forceCloseConnections: true })
  // with a slow hook, what was sent is not on its way yet when `send` returns
  app.addHook(
    'onSend',
    async (_request, _reply, payload) =>
      await new Promise<typeof payload>(resolve => setImmediate(() => resolve(payload))),
  )
  app.register(onFastify({ ...refused, ...more } as never) as never)
  app.get('/', async () => 'passed')
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

async function koaApp(more: Partial<Parameters<typeof onKoa>[0]>): Promise<Served> {
  const own = onKoa({ ...refused, ...more } as never)
  closing.push((own as unknown as { close(): unknown }).close)
  const app = new Koa().use(own).use(context => {
    context.body = 'passed'
  })
  return listen(createServer(app.callback()))
}

async function honoApp(more: Partial<Parameters<typeof onHono>[0]>): Promise<Served> {
  const own = onHono({ ...refused, ...more } as never)
  closing.push((own as unknown as { close(): unknown }).close)
  const app = new Hono().use(own).get('/', context => context.text('passed'))
  return listen(createServer(getRequestListener(app.fetch)))
}

async function fetchApp(more: Partial<Parameters<typeof onFetch>[0]>): Promise<Served> {
  const own = onFetch({ ...refused, ...more } as never)
  closing.push((own as unknown as { close(): unknown }).close)
  return listen(createServer(getRequestListener(own.wrap(() => new Response('passed')) as never)))
}

it.each(Object.entries(answering))('%s: onRefused answers by the response itself', async (_name, [own]) => {
  const { port, close } = await own()
  closing.push(close)
  const response = await fetch(`http://127.0.0.1:${port}/`)
  expect([response.status, await response.text()]).toEqual([429, 'own'])
  expect(response.headers.get('ratelimit')).toBe('"rate-limit";r=0')
  expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
})

const passing = Object.entries(answering).flatMap(([name, [, next]]) =>
  next === undefined ? [] : [[name, next] as const],
)

it.each(passing)('%s: onRefused passes the request on by next', async (_name, next) => {
  const { port, close } = await next()
  closing.push(close)
  const response = await fetch(`http://127.0.0.1:${port}/`)
  expect([response.status, await response.text()]).toEqual([200, 'passed'])
})

it('a Response that a framework cannot send is reported, and Diana answers', async () => {
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const { port, close } = await expressApp({ onError, onRefused: () => new Response('own') })
  closing.push(close)
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(503)
  expect(String(errors)).toContain('onRefused returned a Response: return { status, body, headers } here')
})

it('a plain server has no handler of errors to forward to', () => {
  expect(() => onHttp({ limit: '1/s', forwardErrors: true }, () => {})).toThrow('forwardErrors needs a framework')
})
