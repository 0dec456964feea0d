import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { redisCharge } from '../stores/redis/counter.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import { compileRule } from '../testing/compile-rule.ts'
import type { Verdict } from '../verdict.ts'

const call = { method: 'POST', path: '/login', attributes: { account: 'ann' } }
const start = 1_794_712_345_678

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.close())

const rates = [
  { algorithm: 'token-bucket', limit: '100/s' },
  { algorithm: 'leaky-bucket', limit: '100/s', burst: 99 },
  { algorithm: 'sliding-window', limit: '100/s' },
  { algorithm: 'sliding-log', limit: '100/s' },
  { algorithm: 'fixed-window', limit: '100/s' },
] as const

describe.each(rates)('in this process, by $algorithm', rule => {
  it('calls that do not count are never refused, even at twice the limit', async () => {
    let now = start
    const limiter = await createLimiter({
      clock: () => now,
      rules: [{ id: 'login', by: 'account', countWhen: 'failed', ...rule }],
    })
    const open: Verdict[] = []
    let refused = 0
    for (let i = 0; i < 2000; i++) {
      now += 5
      const verdict = await limiter.check(call)
      if (!verdict.allowed) refused++
      open.push(verdict)
      if (open.length > 10) open.shift()!.end({ status: 200 })
    }
    expect(refused).toBe(0)
    await limiter.close()
  })

  it('costs that are settled lower leave room for the rest of the limit', async () => {
    let now = start
    const limiter = await createLimiter({ clock: () => now, rules: [{ id: 'tokens', by: 'account', ...rule }] })
    const open: Verdict[] = []
    let refused = 0
    for (let i = 0; i < 600; i++) {
      now += 20
      const verdict = await limiter.check(call, { cost: 10 })
      if (!verdict.allowed) refused++
      open.push(verdict)
      // half of the limit is used in the end, and 30 more are open
      if (open.length > 2) open.shift()!.settle(1)
    }
    expect(refused).toBe(0)
    await limiter.close()
  })
})

const buckets = [
  { algorithm: 'token-bucket', limit: '100/s' },
  { algorithm: 'leaky-bucket', limit: '100/s', burst: 99 },
] as const
const loads = [
  { cost: 20, everyMs: 20, open: 3, settled: 1 },
  { cost: 20, everyMs: 12, open: 3, settled: 1 },
  { cost: 20, everyMs: 20, open: 4, settled: 1 },
  { cost: 16, everyMs: 20, open: 5, settled: 1 },
  { cost: 30, everyMs: 50, open: 3, settled: 4 },
  { cost: 13, everyMs: 20, open: 6, settled: 1 },
  { cost: 10, everyMs: 20, open: 8, settled: 1 },
  { cost: 5, everyMs: 15, open: 15, settled: 1 },
  { cost: 2, everyMs: 11, open: 30, settled: 1 },
]
const underLoad = buckets.flatMap(rule => loads.map(load => ({ ...load, rule, name: rule.algorithm })))

it.each(underLoad)(
  'a $name of 100/s refuses none of 1000 calls of cost $cost, one every $everyMs ms, settled to $settled with $open open',
  async ({ rule, cost, everyMs, open, settled }) => {
    let now = start
    const limiter = await createLimiter({ clock: () => now, rules: [{ id: 'tokens', by: 'account', ...rule }] })
    const calls: Verdict[] = []
    let refused = 0
    for (let i = 0; i < 1000; i++) {
      now += everyMs
      const verdict = await limiter.check(call, { cost })
      if (verdict.allowed) calls.push(verdict)
      else refused++
      if (calls.length >= open) calls.shift()!.settle(settled)
    }
    expect(refused).toBe(0)
    await limiter.close()
  },
)

it.each(rates)('in Redis, by $algorithm, calls that do not count are never refused', async rule => {
  let now = start * 1000
  const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), { now: () => now })
  const counter = store.createCounter(compileRule(rule, { id: `load-${rule.algorithm}` }))
  const open: number[] = []
  let refused = 0
  for (let i = 0; i < 600; i++) {
    now += 5000
    const charge = { ...redisCharge(counter), key: 'ann', cost: 1 }
    if (!(await store.take([charge])).allowed) refused++
    open.push(now)
    if (open.length > 10) store.giveBack([{ counter, key: 'ann', cost: 1, moment: open.shift()! }])
  }
  expect(refused).toBe(0)
  store.close()
})

const stores = [
  ['in this process', (): object => ({})],
  ['in Redis', (): object => ({ store: { redis: server.client, timeout: '2s' } })],
] as const

describe.each(stores)('%s, after a reset', (where, storeOf) => {
  const limiterOf = (rule: object): Promise<Limiter> => {
    return createLimiter({
      ...storeOf(),
      rules: [{ id: `reset ${where}`.replaceAll(' ', '-'), by: 'account', ...rule }],
    })
  }
  const id = `reset ${where}`.replaceAll(' ', '-')

  it('refunds of calls from before a reset free nothing of calls since', async () => {
    const limiter = await limiterOf({ limit: '10/h', algorithm: 'token-bucket', countWhen: 'failed' })
    const before = await Promise.all(Array.from({ length: 10 }, () => limiter.check(call)))
    await limiter.reset(id, call)
    const since = await Promise.all(Array.from({ length: 10 }, () => limiter.check(call)))
    expect(since.every(({ allowed }) => allowed)).toBe(true)
    for (const verdict of before) verdict.end({ status: 200 })
    for (let i = 0; i < 3; i++) expect((await limiter.check(call)).allowed).toBe(false)
    await limiter.close()
  })

  it('after a reset, a call that ends frees no slot of another call', async () => {
    const limiter = await limiterOf({ limit: 1, algorithm: 'concurrency' })
    const first = await limiter.check(call)
    await limiter.reset(id, call)
    const second = await limiter.check(call)
    expect(second.allowed).toBe(true)
    first.release()
    for (let i = 0; i < 3; i++) expect((await limiter.check(call)).allowed).toBe(false)
    second.release()
    await vi.waitFor(async () => expect((await limiter.check(call)).allowed).toBe(true))
    await limiter.close()
  })

  it('after a reset, a cost that is settled lower refunds nothing', async () => {
    const limiter = await limiterOf({ limit: '1/h', algorithm: 'sliding-log' })
    const first = await limiter.check(call)
    await limiter.reset(id, call)
    expect((await limiter.check(call)).allowed).toBe(true)
    first.settle(0)
    for (let i = 0; i < 3; i++) expect((await limiter.check(call)).allowed).toBe(false)
    await limiter.close()
  })
})

describe.each(stores)('%s', (where, storeOf) => {
  const id = `small ${where}`.replaceAll(' ', '-')

  it('a rule in shadow is charged what a settled call has cost, as far as there is room', async () => {
    const rules = [{ id, by: 'account', limit: '10/h', algorithm: 'token-bucket', whenFull: 'shadow' } as const]
    const limiter = await createLimiter({ ...storeOf(), rules })
    const verdict = await limiter.check(call, { cost: 2 })
    verdict.settle(100)
    await vi.waitFor(async () => expect((await limiter.peek(call)).decisions[0]!.remaining).toBe(0))
    await limiter.close()
  })

  it('a huge cost by warm-up resets after a time that is not negative', async () => {
    const rules = [{ id: `${id}-warm`, by: 'account', limit: '1/d', algorithm: 'warm-up' as const, warmUp: '10s' }]
    const limiter = await createLimiter({ ...storeOf(), rules })
    const both = [limiter.check(call, { cost: 2 ** 51 }), limiter.check(call, { cost: 2 ** 51 })]
    for (const { decisions } of await Promise.all(both)) {
      expect(decisions[0]!.resetAfterMs).toBeGreaterThan(0)
      expect(decisions[0]!.retryAfterMs).toBeGreaterThanOrEqual(0)
    }
    await limiter.close()
  })

  it('the remaining number is never above the limit that is reported with it', async () => {
    const bucket = { id: `${id}-burst`, by: 'account', limit: '100/m', algorithm: 'token-bucket', burst: 200 } as const
    const limiter = await createLimiter({ ...storeOf(), rules: [bucket] })
    const { decisions } = await limiter.check(call)
    expect(decisions[0]).toMatchObject({ limit: 200, periodMs: 120_000, remaining: 199 })
    await limiter.close()
  })
})
