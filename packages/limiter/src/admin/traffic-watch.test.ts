import { describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { engineOf } from '../engine/engine-of.ts'
import { TrafficWatch } from './traffic-watch.ts'

async function watched(rules: Parameters<typeof createLimiter>[0] & object) {
  const limiter = await createLimiter(rules)
  const clock = { now: Date.UTC(2026, 0, 1) }
  return { limiter, clock, watch: new TrafficWatch(engineOf(limiter), () => clock.now) }
}

const rules = [
  { id: 'orders', match: { path: '/orders' }, by: ['account'], limit: '5/h' },
  { id: 'all', by: 'ip', limit: '1000000/s' },
]
const call = (account: string, path = '/orders') => {
  return { method: 'GET', path, ip: '203.0.113.9', attributes: { account } }
}

describe('who calls, and who is refused', () => {
  it('every caller of a rule is known with calls, refusals and an example, and found by a part of its value', async () => {
    const { limiter, watch } = await watched({ rules })
    for (let i = 0; i < 7; i++) await limiter.check(call('ann'))
    await limiter.check(call('Bob'))
    await limiter.check(call('eve', '/other'))
    const shown = watch.callers({ count: 10, rule: 'orders' })
    expect(shown).toMatchObject([
      { key: 'ann', calls: 7, refused: 2, missed: 0, callsError: 0 },
      { key: 'Bob', calls: 1, refused: 0 },
    ])
    expect(shown[0]!.example).toEqual({ method: 'GET', path: '/orders', ip: '203.0.113.9' })
    expect(watch.callers({ count: 10, search: 'BO' }).map(({ key }) => key)).toEqual(['Bob'])
    expect(watch.callers({ count: 10, search: '203.0.113', refused: true })).toEqual([])
    await limiter.close()
  })

  it('a refusal is kept with the rule, the path and the numbers of that moment', async () => {
    const { limiter, watch, clock } = await watched({ rules })
    for (let i = 0; i < 6; i++) await limiter.check(call('ann'))
    const [refusal] = watch.refusals({ count: 10 })
    expect(refusal).toMatchObject({
      rule: 'orders',
      key: 'ann',
      method: 'GET',
      path: '/orders',
      limit: 5,
      remaining: 0,
    })
    expect(refusal).toMatchObject({ at: clock.now, periodMs: 3_600_000, reason: 'limit', unsaid: 0 })
    expect(refusal!.retryAfterMs).toBeGreaterThan(3_500_000)
    expect(watch.refusals({ count: 10, search: '/ORDERS' })).toHaveLength(1)
    expect(watch.refusals({ count: 10, rule: 'all' })).toEqual([])
    watch.stop()
    await limiter.check(call('ann'))
    expect(watch.refusals({ count: 10 })).toHaveLength(1)
    await limiter.close()
  })

  it('of many calls a sample is read, and the real numbers are within the error that is reported', async () => {
    const { limiter, watch, clock } = await watched({ rules: [{ id: 'each', by: 'account', limit: '1000000/s' }] })
    const made = { ann: 0, bob: 0 }
    for (let second = 0; second < 5; second++) {
      for (let i = 0; i < 16_000; i++) {
        const account = i % 8 === 0 ? 'bob' : 'ann'
        made[account]++
        limiter.decide(call(account))
      }
      clock.now += 1000
    }
    for (const { key, calls, callsError } of watch.callers({ count: 10 })) {
      expect(callsError).toBeGreaterThan(0)
      expect(callsError).toBeLessThan(made[key as 'ann'] * 0.2)
      // twice the error in 19 of 20 cases: a margin that a right sample never leaves
      expect(Math.abs(calls - made[key as 'ann'])).toBeLessThan(3 * callsError)
    }
    await limiter.close()
  })
})
