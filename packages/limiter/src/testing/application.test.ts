import { createServer } from 'node:http'
import { mock } from 'node:test'
import { listen } from '@test/filters/listen'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import express from 'express'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { diana, rateLimit } from '../filters/express.ts'
import type { Limiter } from '../limiter.ts'
import { refuseAll, resetAll, testClock } from './index.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  vi.useRealTimers()
  mock.timers.reset()
  for (const close of closing.splice(0).reverse()) await close()
})

const rules = [{ id: 'all', limit: '2/m' }] as const
const call = { method: 'GET', path: '/', ip: '203.0.113.1' } as const

async function limiterWith(options: object = {}): Promise<Limiter> {
  const limiter = await createLimiter({ rules, ...options })
  closing.push(() => limiter.close())
  return limiter
}

async function passing(limiter: Limiter, calls = 5): Promise<number> {
  let passed = 0
  for (let i = 0; i < calls; i++) if ((await limiter.check(call)).allowed) passed++
  return passed
}

/** Each way in which a test moves time, and what it does before a limiter is made. */
const ways: Readonly<Record<string, { begin(): void; advance(ms: number): void; end(): void }>> = {
  'vi.useFakeTimers()': {
    begin: () => void vi.useFakeTimers(),
    advance: ms => void vi.advanceTimersByTime(ms),
    end: () => void vi.useRealTimers(),
  },
  'vi.useFakeTimers() of Date alone': {
    begin: () => void vi.useFakeTimers({ toFake: ['Date'] }),
    advance: ms => void vi.setSystemTime(Date.now() + ms),
    end: () => void vi.useRealTimers(),
  },
  'vi.setSystemTime() without fake timers': {
    begin: () => void vi.setSystemTime(new Date('2026-03-01')),
    advance: ms => void vi.setSystemTime(Date.now() + ms),
    end: () => void vi.useRealTimers(),
  },
  'mock.timers of node:test': {
    begin: () => mock.timers.enable({ apis: ['Date'], now: 1e12 }),
    advance: ms => mock.timers.tick(ms),
    end: () => mock.timers.reset(),
  },
}

describe.each(Object.entries(ways))('%s', (_name, { begin, advance, end }) => {
  it('fake timers move the time of a limiter that is made under them', async () => {
    begin()
    const limiter = await limiterWith()
    expect(await passing(limiter)).toBe(2)
    advance(59_000)
    expect(await passing(limiter)).toBe(0)
    advance(10_000)
    expect(await passing(limiter)).toBe(2)
  })

  it('fake timers move the time of a limiter that was made before them, also from a date in the past, and back to real time', async () => {
    const limiter = await limiterWith()
    expect(await passing(limiter)).toBe(2)
    begin()
    expect(await passing(limiter)).toBe(0)
    advance(70_000)
    expect(await passing(limiter)).toBe(2)
    end()
    expect(await passing(limiter)).toBe(0)
    begin()
    expect(await passing(limiter)).toBe(0)
    advance(70_000)
    expect(await passing(limiter)).toBe(2)
  })
})

it('a calendar follows the date that a test sets', async () => {
  vi.useFakeTimers({ now: new Date('2026-12-31T23:59:00Z') })
  const limiter = await limiterWith({ rules: [{ id: 'all', limit: '2/year' }] })
  expect(await passing(limiter)).toBe(2)
  vi.advanceTimersByTime(61_000)
  expect(await passing(limiter)).toBe(2)
})

it('testClock stands still until it is advanced', async () => {
  const clock = testClock()
  const limiter = await limiterWith({ clock })
  expect([await passing(limiter), await passing(limiter)]).toEqual([2, 0])
  clock.advance(70_000)
  expect(await passing(limiter)).toBe(2)
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => clock.advance(ms)).toThrow('advance takes')
})

it('refuseAll lets a filter refuse without counting, until it is undone', async () => {
  const limit = rateLimit({ limit: '2/m', status: 429 })
  const server = createServer(express().use(limit, (_request, response) => void response.send('served')))
  const { port, close } = await listen(server)
  closing.push(close, limit.close)
  const admit = refuseAll(await limit.limiter, { retryAfterMs: 7000 })
  for (let i = 0; i < 3; i++) {
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7'])
    expect(response.headers.get('ratelimit')).toBe('"rate-limit";r=0;t=7')
  }
  admit()
  expect((await fetch(`http://127.0.0.1:${port}/`)).headers.get('ratelimit')).toMatch(/r=1/)
})

it('refuseAll refuses by one rule, the calls that are meant, by check, decide and consume', async () => {
  const limiter = await limiterWith({ rules: [...rules, { id: 'login', limit: '9/m', match: { path: '/login' } }] })
  const admit = refuseAll(limiter, { rule: 'login', when: ({ path }) => path === '/login' })
  const login = { ...call, path: '/login' }
  expect([(await limiter.check(login)).rule, (await limiter.decide(login)).reason]).toEqual(['login', 'limit'])
  expect((await limiter.check(call)).allowed).toBe(true)
  admit()
  expect((await limiter.check(login)).decisions.map(({ remaining }) => remaining)).toEqual([0, 8])
  expect(() => refuseAll(limiter, { rule: 'lgin' })).toThrow('there is no rule "lgin"')
  expect(() => refuseAll({} as never)).toThrow('refuseAll')
})

describe('resetAll', () => {
  let redis: RedisServer | undefined
  it.each(['memory', 'Redis'])('resetAll forgets all callers, plans and blocks, counted in %s', async where => {
    if (where === 'Redis') {
      redis = await startRedis()
      closing.push(() => redis!.close())
    }
    const limiter = await limiterWith({
      ...(where === 'Redis' && { store: { redis: `redis://${redis!.authority}`, timeout: '5s' } }),
      rules: [
        ...rules,
        { id: 'each', by: 'ip', limit: '2/h', block: 'manual' },
        { id: 'plan', by: 'ip', limit: { by: 'attribute:plan', values: { pro: '2/h' }, default: '1/h' } },
      ],
    })
    const pro = { ...call, attributes: { plan: 'pro' } }
    for (let round = 0; round < 3; round++) {
      const answers = [await limiter.check(pro), await limiter.check(pro), await limiter.check(pro)]
      expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
      await limiter.block('each', '203.0.113.1', 'forever')
      await resetAll(limiter)
      expect(await limiter.blocks()).toEqual([])
    }
  })
})

it('a filter of the rules of a limiter is refused by it, too', async () => {
  const limiter = await limiterWith()
  refuseAll(limiter)
  const { port, close } = await listen(createServer(express().use(diana(limiter))))
  closing.push(close)
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(503)
})
