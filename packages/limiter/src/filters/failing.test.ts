import 'reflect-metadata'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { listen } from '@test/filters/listen'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import { dimensions } from '../dimensions/index.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { Limiter } from '../limiter.ts'
import type { ServerUnderTest } from '../testing/filters/suite.ts'
import { admit } from './admit.ts'
import { diana as expressFilter } from './express.ts'
import { diana as fastifyFilter } from './fastify.ts'
import { diana as fetchFilter } from './fetch.ts'
import { createFilter, type FilterOptions } from './filter.ts'
import type { Framework } from './frameworks/framework.ts'
import { httpFramework } from './frameworks/http.ts'
import { diana as honoFilter } from './hono.ts'
import { guard, diana as httpFilter } from './http.ts'
import { MOST_ANSWER_MS } from './in-time.ts'
import { diana as koaFilter } from './koa.ts'
import { DianaModule } from './nest.ts'

// What the application's functions, and Diana's own parts, may do wrong while a call is decided, in every filter.

const express4 = createRequire(import.meta.url)('express4') as typeof express5

type Mount = (limiter: Limiter, options: FilterOptions<unknown>, serve: () => string) => Promise<ServerUnderTest>

const onExpress =
  (express: typeof express5): Mount =>
  (limiter, options, serve) =>
    listen(
      createServer(express().use(expressFilter(limiter, options), (_request, response) => void response.end(serve()))),
    )

const mounts: Readonly<Record<string, Mount>> = {
  'node:http': (limiter, options, serve) =>
    listen(createServer(httpFilter(limiter, (_request, response) => response.end(serve()), options))),
  'node:http, guarded': (limiter, options, serve) =>
    listen(
      guard(
        createServer((_request, response) => response.end(serve())),
        limiter,
        options,
      ),
    ),
  'Express 5': onExpress(express5),
  'Express 4': onExpress(express4),
  Fastify: async (limiter, options, serve) => {
    const app = fastify({ forceCloseConnections: true })
    app.register(fastifyFilter(limiter, options))
    app.get('/', async () => serve())
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  Koa: (limiter, options, serve) => {
    const app = new Koa().use(koaFilter(limiter, options)).use(context => {
      context.body = serve()
    })
    return listen(createServer(app.callback()))
  },
  Hono: (limiter, options, serve) => {
    const app = new Hono()
    app.use(honoFilter(limiter, options))
    app.get('/', context => context.text(serve()))
    return listen(createServer(getRequestListener(app.fetch)))
  },
  fetch: (limiter, options, serve) => {
    const handle = fetchFilter(limiter, options).wrap((_request: Request, _info: object) => new Response(serve()))
    return listen(createServer(getRequestListener(handle as never)))
  },
  Nest: async (limiter, options, serve) => {
    class Calls {
      get(): string {
        return serve()
      }
    }
    Get()(Calls.prototype, 'get', Object.getOwnPropertyDescriptor(Calls.prototype, 'get')!)
    Controller()(Calls)
    class Application {}
    Module({ imports: [DianaModule.forRoot(limiter, options)], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    await app.init()
    return listen(app.getHttpServer())
  },
}

const closing: (() => unknown)[] = []
const unhandled: unknown[] = []
const remember = (error: unknown): void => void unhandled.push(error)

afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
  process.off('unhandledRejection', remember)
  unhandled.length = 0
})

/** The statuses of calls, how many were served, and what was reported and never caught. */
async function callsTo(mount: Mount, words: LimiterOptions, options: FilterOptions<unknown>, count = 3) {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  process.on('unhandledRejection', remember)
  const limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...words })
  closing.push(() => limiter.close())
  let served = 0
  const server = await mount(limiter, options, () => {
    served++
    return 'in'
  })
  closing.push(() => server.close())
  const statuses: number[] = []
  for (let at = 0; at < count; at++) statuses.push((await fetch(`http://127.0.0.1:${server.port}/`)).status)
  // rejections are reported after the microtasks of their turn
  await new Promise(setImmediate)
  return { statuses, served, unhandled: [...unhandled], stats: engineOf(limiter).stats(), limiter }
}

const fail = (): never => {
  throw new Error('no attribute')
}

/** A promise of another library. */
const foreignRejection = (): object => {
  const then = (_resolve: unknown, reject: (error: unknown) => void): void => reject(new Error('no answer'))
  return Object.defineProperty({}, 'then', { value: then })
}

class Session {
  get account(): string {
    return fail()
  }
}

/** Attributes that cannot be read, in every way in which an object can refuse it. */
const attributes: Readonly<Record<string, () => unknown>> = {
  'a getter that throws': () => ({
    get account() {
      return fail()
    },
  }),
  'a getter of a class that throws': () => new Session(),
  'a proxy that throws': () => new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail }),
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  },
  'an object whose text throws': () => ({ account: { toString: fail, [Symbol.toPrimitive]: fail } }),
  'a promise that rejects': () => Promise.reject(new Error('no session')),
  'an object with a then that throws': () => Object.defineProperty({}, 'then', { get: fail }),
  'no object': () => 7,
  null: () => null,
}

const byAccount = { rules: [{ id: 'account', by: 'account', limit: '1/h' }] }

describe.each(Object.entries(mounts))('%s', (_name, mount) => {
  test.each(Object.entries(attributes))('a call is counted although its attributes are %s', async (_kind, given) => {
    const found = await callsTo(mount, byAccount, { attributes: given as never, onError: () => {} })
    expect(found).toMatchObject({ statuses: [200, 503, 503], served: 1, unhandled: [] })
    expect(found.stats.unjudged).toEqual({ passed: 0, refused: 0 })
  })

  test.each<[string, () => unknown]>([
    ['throws', fail],
    ['is async and throws', async () => fail()],
    ['returns a promise of another library that rejects', foreignRejection],
  ])('an onError that %s has no effect', async (_kind, onError) => {
    const found = await callsTo(mount, byAccount, { attributes: fail, cost: fail, onError: onError as never })
    expect(found).toMatchObject({ statuses: [200, 503, 503], served: 1, unhandled: [] })
  })

  test.each<[string, () => unknown]>([
    ['throws', fail],
    ['is async and throws', async () => fail()],
    ['gives a status that cannot be sent', () => ({ status: 99 })],
    ['gives a header that cannot be sent', () => ({ headers: { 'x-a': 'a\nb' } })],
    ['gives an answer that cannot be read', () => new Proxy({}, { get: fail })],
    ['returns a promise of another library that rejects', foreignRejection],
  ])('an onRefused that %s leaves the answer to Diana', async (_kind, onRefused) => {
    const found = await callsTo(mount, byAccount, { onRefused: onRefused as never, onError: () => {} })
    expect(found).toMatchObject({ statuses: [200, 503, 503], served: 1, unhandled: [] })
  })

  const failing = [...dimensions, { name: 'broken', argument: 'none' as const, read: fail }]
  const broken = { rules: [{ id: 'broken', by: 'broken', limit: '1/h' }], dimensions: failing }

  test('a call that cannot be judged passes, and is counted as such', async () => {
    const found = await callsTo(mount, broken, { onError: () => {} })
    expect(found).toMatchObject({ statuses: [200, 200, 200], served: 3, unhandled: [] })
    expect(found.stats.unjudged).toEqual({ passed: 3, refused: 0 })
  })

  test('a call that cannot be judged is refused with whenFailed: refuse, and is counted as such', async () => {
    const found = await callsTo(mount, { ...broken, whenFailed: 'refuse' }, { onError: () => {} })
    expect(found).toMatchObject({ statuses: [503, 503, 503], served: 0, unhandled: [] })
    expect(found.stats.unjudged).toEqual({ passed: 0, refused: 3 })
  })

  test('calls that can be judged are not refused by whenFailed: refuse', async () => {
    const found = await callsTo(mount, { ...byAccount, whenFailed: 'refuse' }, { attributes: fail, onError: () => {} })
    expect(found).toMatchObject({ statuses: [200, 503, 503], served: 1, unhandled: [] })
    expect(found.stats).toMatchObject({ unjudged: { passed: 0, refused: 0 }, total: { allowed: 1, refused: 2 } })
  })
})

test.each<[string, () => unknown]>([
  ['throws', fail],
  ['returns a promise that rejects', () => Promise.reject(new Error('no address'))],
  ['returns no text', () => ({ address: '192.0.2.1' })],
])('a call is counted although peer %s, in Hono and with fetch', async (_kind, peer) => {
  const byAddress = { rules: [{ id: 'address', by: 'ip', limit: '1/h' }] }
  for (const name of ['Hono', 'fetch']) {
    const found = await callsTo(mounts[name]!, byAddress, { peer, onError: () => {} } as FilterOptions<unknown>)
    expect(found).toMatchObject({ statuses: [200, 503, 503], served: 1, unhandled: [] })
  }
})

describe.each(['pass', 'refuse'] as const)('whenFailed: %s', whenFailed => {
  test('a filter whose limiter was closed does as it says', async () => {
    const limiter = await createLimiter({ ...byAccount, whenFailed })
    await limiter.close()
    const { port, close } = await mounts['Express 5']!(limiter, { onError: () => {} }, () => 'in')
    closing.push(close)
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(whenFailed === 'pass' ? 200 : 503)
  })
})

/** A filter on a framework of this test, and what became of one refused request. */
async function refusedBy(framework: Partial<Framework<object, object>>, options: FilterOptions<object>) {
  const limiter = await createLimiter({ rules: [{ id: 'none', limit: '0/s' }] })
  closing.push(() => limiter.close())
  const sent: number[] = []
  const errors: unknown[] = []
  const own = {
    ...httpFramework,
    identity: (request: object) => request,
    isAnswered: () => false,
    setHeader: () => {},
    refuse: (_request: object, _reply: object, { status }: { status: number }) => void sent.push(status),
    ...framework,
  } as unknown as Framework<object, object>
  const filter = createFilter(limiter, own, { onError: error => void errors.push(error), ...options })
  return { passes: admit(filter, { method: 'GET', url: '/', headers: {} }, {}), sent, errors }
}

test('an onRefused that never settles is given up after five seconds, and Diana answers', async () => {
  vi.useFakeTimers()
  const { passes, sent, errors } = await refusedBy({}, { onRefused: () => new Promise(() => {}) })
  await vi.advanceTimersByTimeAsync(MOST_ANSWER_MS - 1)
  expect(sent).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect([await passes, sent, errors.length]).toEqual([false, [503], 1])
})

test('an onRefused that settles in time leaves no timer behind', async () => {
  vi.useFakeTimers()
  let settle: (answer: { status: number }) => void = () => {}
  const answered = new Promise<{ status: number }>(resolve => {
    settle = resolve
  })
  const { passes, sent, errors } = await refusedBy({}, { onRefused: () => answered })
  const timers = vi.getTimerCount()
  settle({ status: 429 })
  expect([await passes, sent, errors]).toEqual([false, [429], []])
  expect(vi.getTimerCount()).toBe(timers - 1)
})

test.each<[string, FilterOptions<object>['onRefused']]>([
  ['at once', undefined],
  ['by a function', () => ({ status: 429 })],
  ['by an async function', async () => ({ status: 429 })],
])('a refused request that cannot be answered %s does not go on', async (_kind, onRefused) => {
  const broken = { refuse: fail }
  const { passes, errors } = await refusedBy(broken, onRefused === undefined ? {} : { onRefused })
  expect(await passes).toBe(false)
  expect(errors.length).toBeGreaterThan(0)
})
