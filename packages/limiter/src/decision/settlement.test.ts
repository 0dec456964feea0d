import { randomRuns } from '@test/random-runs'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'

const call = { method: 'POST', path: '/answers', attributes: { account: 'u1' } }
const other = { ...call, attributes: { account: 'u2' } }
const start = 1_794_712_345_678

const limits = [
  { limit: '10/m', algorithm: 'fixed-window' },
  { limit: '10/m' },
  { limit: ['10/m', '12/h'] },
  { limit: '10/m', algorithm: 'sliding-log' },
  { limit: '10/m', algorithm: 'token-bucket' },
  { limit: '10/m', algorithm: 'leaky-bucket', burst: 9 },
] as const

async function limiterOf(...rules: readonly object[]): Promise<{ limiter: Limiter; at: (ms: number) => void }> {
  let now = start
  const limiter = await createLimiter({
    clock: () => now,
    rules: rules.map((rule, i) => ({ id: `rule-${i}`, by: 'account', limit: '10/m', ...rule })),
  })
  return { limiter, at: ms => (now = start + ms) }
}

const left = async (limiter: Limiter, of = call) => (await limiter.peek(of)).decisions.map(({ remaining }) => remaining)

describe.each(limits)('a call settled by $limit $algorithm', rule => {
  it('a call settled at a lower cost is refunded the difference', async () => {
    const { limiter } = await limiterOf(rule)
    const verdict = await limiter.check(call, { cost: 6 })
    expect((await left(limiter))[0]).toBe(4)
    verdict.settle(2)
    expect((await left(limiter))[0]).toBe(8)
    verdict.settle(2)
    expect((await left(limiter))[0]).toBe(8)
    verdict.settle(0)
    expect((await left(limiter))[0]).toBe(10)
  })

  it('a call settled at a higher cost is charged the difference, up to the limit', async () => {
    const { limiter } = await limiterOf(rule)
    const verdict = await limiter.check(call, { cost: 2 })
    verdict.settle(5)
    expect((await left(limiter))[0]).toBe(5)
    verdict.settle(1_000_000)
    expect((await left(limiter))[0]).toBe(0)
    expect(await left(limiter, other)).toEqual([10, ...[12].slice(0, [rule.limit].flat().length - 1)])
  })

  it('a call without a cost of its own can be settled', async () => {
    const { limiter } = await limiterOf(rule)
    const verdict = await limiter.check(call)
    verdict.settle(4)
    expect((await left(limiter))[0]).toBe(6)
    verdict.settle(0)
    expect((await left(limiter))[0]).toBe(10)
  })
})

describe('settling', () => {
  it('settling never admits more than the settled costs allow, in any order of calls', async () => {
    const steps = fc.array(
      fc.record({ cost: fc.integer({ min: 1, max: 6 }), actual: fc.integer({ min: 0, max: 9 }), ms: fc.nat(2000) }),
      { minLength: 1, maxLength: 30 },
    )
    const property = fc.asyncProperty(fc.constantFrom(...limits), steps, async (rule, steps) => {
      const { limiter, at } = await limiterOf(rule)
      let elapsed = 0
      let used = 0
      for (const { cost, actual, ms } of steps) {
        // all within a tenth of the period, so that no window ends and a bucket refills by at most one in six seconds
        elapsed = Math.min(5000, elapsed + ms)
        at(elapsed)
        const verdict = await limiter.check(call, { cost })
        if (!verdict.allowed) continue
        const before = (await left(limiter))[0]!
        verdict.settle(actual)
        used += actual <= cost ? actual : cost + (before - (await left(limiter))[0]!)
        expect(used).toBeLessThanOrEqual(10)
      }
      await limiter.close()
    })
    await fc.assert(property, { numRuns: randomRuns(30) })
  })

  it('settling has no effect on a refused call, or on a peek', async () => {
    const { limiter } = await limiterOf({ limit: '3/m' })
    for (const verdict of [await limiter.check(call, { cost: 4 }), await limiter.check(call, { cost: 0 })]) {
      verdict.settle(2)
      verdict.settle(0)
    }
    const looked = await limiter.peek(call)
    looked.settle(2)
    expect(await left(limiter)).toEqual([3])
  })

  it('settling changes no concurrency slots, before or after their release', async () => {
    const { limiter } = await limiterOf({ limit: 3, algorithm: 'concurrency' }, { limit: '10/m' })
    const verdict = await limiter.check(call)
    verdict.settle(3)
    expect(await left(limiter)).toEqual([2, 7])
    verdict.release()
    verdict.settle(1)
    verdict.release()
    verdict.end({ status: 200, cost: 2 })
    verdict.end({ status: 200, cost: 9 })
    expect(await left(limiter)).toEqual([3, 8])
  })

  it('settling charges no shadow rule that had no room for the call', async () => {
    const { limiter } = await limiterOf({ limit: '1/m', whenFull: 'shadow' }, { limit: '10/m' })
    await limiter.check(call)
    const verdict = await limiter.check(call)
    verdict.settle(0)
    expect(await left(limiter)).toEqual([0, 9])
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3' as never])('settling refuses the cost %s', async cost => {
    const { limiter } = await limiterOf({ limit: 2, algorithm: 'concurrency' })
    const verdict = await limiter.check(call)
    expect(() => verdict.settle(cost)).toThrow('cost must be a whole number')
    expect(() => verdict.end({ cost })).toThrow('cost must be a whole number')
    expect(await left(limiter)).toEqual([2])
  })

  it('settling after a key was forgotten refunds nothing to the key that has its slot now', async () => {
    const { limiter, at } = await limiterOf({ limit: '10/s', algorithm: 'fixed-window' })
    const verdict = await limiter.check(call, { cost: 8 })
    at(60_000)
    for (let i = 0; i < 300; i++) await limiter.check({ ...call, attributes: { account: `n${i}` } }, { cost: 5 })
    verdict.settle(1)
    for (let i = 0; i < 300; i++) {
      expect(await left(limiter, { ...call, attributes: { account: `n${i}` } })).toEqual([5])
    }
  })
})

describe('settling across the fleet', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  }, 30_000)
  afterAll(() => server.close())

  it.each(limits)('settling refunds and charges in Redis by $limit $algorithm', async rule => {
    const id = `settled-${limits.indexOf(rule)}`
    const join = () => {
      return createLimiter({
        store: { redis: server.client, timeout: '2s' },
        rules: [{ id, by: 'account', ...rule, limit: [rule.limit].flat().map(text => text.replace('/m', '/h')) }],
      })
    }
    const [one, two] = [await join(), await join()]
    const verdict = await one.check(call, { cost: 6 })
    expect((await left(two))[0]).toBe(4)
    verdict.settle(2)
    await vi.waitFor(async () => expect((await left(two))[0]).toBe(8))
    verdict.settle(5)
    await vi.waitFor(async () => expect((await left(two))[0]).toBe(5))
    verdict.settle(100)
    await vi.waitFor(async () => expect((await left(two))[0]).toBe(0))
    for (const limiter of [one, two]) await limiter.close()
  })
})
