import 'reflect-metadata'
import { createServer } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { SkipThrottle, Throttle, ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { createLimiter } from 'diana-limiter'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { listen } from '../helpers/filters/listen.ts'
import { expressRateLimit as expressRows, fastifyRateLimit as fastifyRows, throttler } from './filters.ts'
import { callOf } from './play.ts'
import { bottleneck, flexible, pLimit, pQueue } from './programs.ts'

// The rows of other limiters, run by the limiters themselves: what migrating.test.ts expects of Diana is what they do.

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 15), toFake: ['Date', 'setInterval', 'clearInterval'] })
})
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.useRealTimers()
})

const pass = async (work: Promise<unknown>): Promise<boolean> => {
  try {
    await work
    return true
  } catch (error) {
    if (error instanceof Error) throw error
    return false
  }
}

describe.each([bottleneck, pLimit, pQueue])('$from', ({ rows }) => {
  it('every row of jobs runs the other limiter itself beside Diana', () => {
    const withJobs = rows.filter(row => row.as === 'jobs' || row.jobs)
    expect(withJobs.length).toBeGreaterThan(0)
    expect(withJobs.filter(({ peer, jobs }) => !peer || !jobs)).toEqual([])
  })
})

/** Programs of rate-limiter-flexible with 3 points a minute, and what Diana gives instead, by the option that the row has. */
const programs: Readonly<Record<string, readonly [peer: string, ours: string]>> = {
  'new RateLimiterMemory({ points: 3, duration: 60 })': [
    "[await pass(peer.consume('ann')), await pass(peer.consume('ann', 2)), await pass(peer.consume('ann'))]",
    '[await take(), await take(2), await take()]',
  ],
  'await limiter.consume(key)': ["await pass(peer.consume('ann'))", 'await take()'],
  'await limiter.consume(key, 2)': ["(await peer.consume('ann', 2)).remainingPoints", '(await take(2), await left())'],
  'rejected.msBeforeNext': [
    "(await peer.consume('ann', 3), await peer.consume('ann').catch(rejected => rejected.msBeforeNext))",
    "(await take(3), (await limiter.consume('login', 'ann')).retryAfterMs)",
  ],
  '(await limiter.get(key)).remainingPoints': [
    "(await peer.consume('ann'), (await peer.get('ann')).remainingPoints)",
    '(await take(), await left())',
  ],
  'await limiter.delete(key)': [
    "(await peer.consume('ann'), await peer.delete('ann'), (await peer.consume('ann')).remainingPoints)",
    "(await take(), await limiter.reset('login', 'ann'), await take(), await left())",
  ],
  'await limiter.block(key, 60)': [
    "(await peer.block('ann', 60), await pass(peer.consume('ann')))",
    "(await limiter.block('login', 'ann', '60s'), await take())",
  ],
  'await limiter.penalty(key, 2)': [
    "(await peer.consume('ann', 2), await peer.penalty('ann', 2), [(await peer.get('ann')).remainingPoints, await pass(peer.consume('ann'))])",
    '(await take(2), await ROW, [await left(), await take()])',
  ],
  'await limiter.reward(key, 1)': [
    "(await peer.consume('ann'), await peer.reward('ann', 1), (await peer.get('ann')).remainingPoints)",
    "(await limiter.consume('login', 'ann'), await ROW, await left())",
  ],
}

describe('rate-limiter-flexible', () => {
  it.each(Object.entries(programs))(
    '%s of rate-limiter-flexible gives what Diana gives',
    async (theirs, [peer, ours]) => {
      const row = flexible.rows.find(one => one.theirs === theirs)!
      const rule = { id: 'login', by: 'account', match: 'none', limit: '3/m', block: 'manual' } as const
      const limiter = await createLimiter({
        clock: () => Date.now(),
        rules: [{ ...rule, algorithm: 'fixed-window', align: 'first-call' }],
      })
      closing.push(() => limiter.close())
      const take = async (cost = 1) => (await limiter.consume('login', 'ann', { cost })).allowed
      const left = async () => (await limiter.get('login', 'ann')).decisions[0]!.remaining
      const values = { peer: new RateLimiterMemory({ points: 3, duration: 60 }), pass, limiter, take, left }
      const run = (text: string): Promise<unknown> =>
        new Function(...Object.keys(values), `return (async () => ${text})()`)(...Object.values(values))
      const program = row.ours.replace(/^await /, '')
      expect(await run(ours.replace('ROW', program))).toEqual(await run(peer))
    },
  )

  const memory = (points: number, duration: number, rest: object = {}) =>
    new RateLimiterMemory({ points, duration, ...rest })
  /** Rules of the page with the limiter that they stand for, and its answers if they are others than those of the row. */
  const rules: readonly (readonly [string, () => { consume(key: string): Promise<unknown> }, string | undefined])[] = [
    ['blockDuration: 300', () => memory(1, 3600, { blockDuration: 300 }), undefined],
    // what one of them refuses is charged by the other there, as the row says
    [
      'new RateLimiterUnion(perSecond, perMinute)',
      () => new RateLimiterUnion(memory(1, 1, { keyPrefix: 's' }), memory(2, 60, { keyPrefix: 'm' })),
      '200 503 503 @1 503 @1 503',
    ],
    [
      'new BurstyRateLimiter(one, two)',
      () => new BurstyRateLimiter(memory(1, 1), memory(2, 10, { keyPrefix: 'burst' })),
      undefined,
    ],
  ]

  it.each(rules)('%s of rate-limiter-flexible answers the calls of its row', async (theirs, create, calls) => {
    const expected = calls ?? flexible.rows.find(one => one.theirs === theirs)!.calls!
    const peer = create()
    const seen: string[] = []
    for (const step of expected.split(' ')) {
      if (step.startsWith('@')) vi.setSystemTime(Date.now() + Number(step.slice(1)) * 1000)
      seen.push(step.startsWith('@') ? step : (await pass(peer.consume('ann'))) ? '200' : '503')
    }
    expect(seen.join(' ')).toBe(expected)
  })

  it('execEvenly of rate-limiter-flexible delays the second of two calls by half of a second, and refuses the third', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 10, 15) })
    const peer = memory(2, 1, { execEvenly: true })
    const begin = Date.now()
    const log: unknown[] = []
    for (let i = 0; i < 3; i++) void pass(peer.consume('ann')).then(passed => log.push(passed && Date.now() - begin))
    await vi.advanceTimersByTimeAsync(999)
    expect(log).toEqual(expect.arrayContaining([0, false, 500]))
    expect(flexible.rows.find(({ theirs }) => theirs === 'execEvenly: true')!.calls).toBe('200 +500 503')
  })

  it('every row of rate-limiter-flexible is compared with it, except the one about a store that is down', () => {
    const compared = [...Object.keys(programs), ...rules.map(([theirs]) => theirs), 'execEvenly: true']
    const others = flexible.rows.map(({ theirs }) => theirs).filter(theirs => !compared.includes(theirs))
    expect(others).toEqual(['insuranceLimiter: new RateLimiterMemory(…)'])
  })
})

/** Sends the calls of a row to a server; the status of a refusal is 429 in other limiters, and 503 here unless a row sets it. */
async function answersOf(url: string, calls: string): Promise<string> {
  const seen: string[] = []
  for (const step of calls.split(' ')) {
    const seconds = /^@(\d+)$/.exec(step)?.[1]
    if (seconds !== undefined) {
      await vi.advanceTimersByTimeAsync(Number(seconds) * 1000)
      seen.push(step)
      continue
    }
    const { path, headers } = callOf(step)
    const { status } = await fetch(url + path, { headers })
    seen.push(step.replace(/\d{3}$/, String(status === 429 && !calls.includes('429') ? 503 : status)))
  }
  return seen.join(' ')
}

const optionsOf = (text: string): object => new Function(`return { ${text} }`)() as object

describe('express-rate-limit', () => {
  /** No options, or options of a store, or of a header that is newer here. */
  const apart = [
    "app.set('trust proxy', 1)",
    'store: new RedisStore({ sendCommand })',
    'passOnStoreError: true',
    "identifier: 'api'",
  ]
  const rows = expressRows.rows.filter(({ as, theirs, calls }) => as === 'express' && calls && !apart.includes(theirs))

  it.each(rows)('$theirs of express-rate-limit answers the calls of its row', async ({ theirs, calls }) => {
    const options = optionsOf(theirs)
    const app = express()
    app.set('trust proxy', 1)
    const one = 'max' in options ? {} : { limit: 1 }
    app.use(expressRateLimit({ windowMs: 60_000, ...one, validate: false, ...options }))
    app.use((request, response) => void response.status(Number(request.get('x-wants') ?? 200)).send('served'))
    const { port, close } = await listen(createServer(app))
    closing.push(close)
    expect(await answersOf(`http://127.0.0.1:${port}`, calls!)).toBe(calls)
  })
})

describe('@fastify/rate-limit', () => {
  /** No options, or options of a store. */
  const apart = ['the headers x-ratelimit-limit, -remaining, -reset', 'redis: client', 'skipOnError: true']
  /** There a ban ends with the window, as the row says. */
  const others: Readonly<Record<string, string>> = { 'ban: 1': '200 429 403 @61 200' }
  const rows = fastifyRows.rows.filter(({ as, theirs, calls }) => as === 'fastify' && calls && !apart.includes(theirs))

  it.each(rows)('$theirs of @fastify/rate-limit answers the calls of its row', async ({ theirs, calls }) => {
    const app = fastify({ forceCloseConnections: true })
    await app.register(fastifyRateLimit, { max: 1, timeWindow: 60_000, ...optionsOf(theirs) })
    app.get('/*', async () => 'served')
    closing.push(() => app.close())
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const expected = others[theirs] ?? calls!
    expect(await answersOf(url, expected)).toBe(expected)
  })
})

describe('@nestjs/throttler', () => {
  /** Options of a store. */
  const apart = ['storage: new ThrottlerStorageRedisService(client)']
  const rows = throttler.rows.filter(({ theirs }) => !apart.includes(theirs))

  it.each(rows)('$theirs of @nestjs/throttler answers the calls of its row', async ({ theirs, calls }) => {
    vi.useFakeTimers({ now: Date.UTC(2026, 10, 15), toFake: ['Date', 'setTimeout', 'clearTimeout'] })
    class Calls {
      serve(): string {
        return 'served'
      }
    }
    const method = Object.getOwnPropertyDescriptor(Calls.prototype, 'serve')!
    Get(['/', 'health'])(Calls.prototype, 'serve', method)
    const values = { Throttle, SkipThrottle, forRoot: ThrottlerModule.forRoot, ThrottlerModule }
    const run = (text: string): unknown =>
      new Function(...Object.keys(values), `return ${text}`)(...Object.values(values)) as unknown
    let module: unknown
    if (theirs.startsWith('@')) (run(theirs.slice(1)) as MethodDecorator)(Calls.prototype, 'serve', method)
    else if (theirs.includes('forRoot')) module = run(theirs)
    else {
      const ofModule = ['errorMessage', 'setHeaders'].some(name => theirs.startsWith(name))
      const one = { ttl: 60_000, limit: 1 }
      module = ThrottlerModule.forRoot(
        ofModule ? { throttlers: [one], ...optionsOf(theirs) } : { throttlers: [{ ...one, ...optionsOf(theirs) }] },
      )
    }
    Controller()(Calls)
    class Application {}
    Module({
      imports: [(module ?? ThrottlerModule.forRoot([{ ttl: 60_000, limit: 1 }])) as never],
      controllers: [Calls],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    closing.push(() => app.close())
    await app.init()
    const { port, close } = await listen(app.getHttpServer())
    closing.push(close)
    expect(await answersOf(`http://127.0.0.1:${port}`, calls!)).toBe(calls)
  })
})
