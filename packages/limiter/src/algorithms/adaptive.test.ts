import { describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import { adaptive } from './adaptive.ts'

const call = { method: 'GET', path: '/orders', ip: '203.0.113.9' }

/** A limiter in virtual time in front of a service of `workers` that each take `ms`. */
async function start(rule: Partial<RuleOptions> = {}) {
  const time = { ms: 1_000_000 }
  const options = { id: 'backend', algorithm: 'adaptive', limit: 100, ...rule } as RuleOptions
  const limiter = await createLimiter({ rules: [options], clock: () => time.ms })
  const estimate = (key = '') => {
    const { table } = engineOf(limiter).decider.rules[0]!
    const slot = table.find(key)
    return table.meters[0]!.held!.learns!.estimate(table.state(slot), table.base(slot), time.ms * 1000)
  }
  /** Calls of 10 ms, so many at a time, one after another. */
  const run = (count: number, atOnce = 5, ms = 10, status: number | undefined = 200) => {
    for (let i = 0; i < count; i += atOnce) {
      const verdicts = Array.from(
        { length: atOnce },
        () => limiter.decide(call) as Awaited<ReturnType<typeof limiter.check>>,
      )
      time.ms += ms
      for (const verdict of verdicts) verdict.end({ status })
    }
  }
  return { limiter, time, estimate, run }
}

describe('adaptive concurrency in a limiter', () => {
  it('an adaptive rule learns the time and the throughput of calls from how they end', async () => {
    const { limiter, estimate, run } = await start()
    expect(estimate()).toMatchObject({ limit: 100, perSecond: 0, baseMs: 0 })
    run(500)
    expect(estimate()).toMatchObject({ inFlight: 0, limiting: false, limit: 20 })
    expect(Math.abs(estimate().baseMs - 10)).toBeLessThan(1)
    expect(estimate().perSecond).toBeGreaterThan(400)
    await limiter.close()
  })

  it('an adaptive rule learns nothing from calls that callers have left, refunded calls and failures', async () => {
    const { limiter, estimate, run, time } = await start()
    run(500)
    const before = estimate()
    run(300, 5, 1, undefined)
    for (let i = 0; i < 100; i++) {
      const verdict = await limiter.check(call)
      time.ms += 1
      void verdict.refund()
    }
    expect(estimate().baseMs).toBeCloseTo(before.baseMs, 0)
    // a service that fails fast is not a fast service
    run(300, 5, 1, 500)
    expect(estimate()).toMatchObject({ inFlight: 0 })
    expect(estimate().perSecond).toBeLessThanOrEqual(before.perSecond * 1.01)
    await limiter.close()
  })

  it('an adaptive rule in shadow counts every call, refuses none, and shows the limit that it would use', async () => {
    const { limiter, estimate } = await start({ limit: 3, whenFull: 'shadow' })
    const verdicts = await Promise.all(Array.from({ length: 8 }, () => limiter.check(call)))
    expect(verdicts.map(({ allowed }) => allowed)).toEqual(Array(8).fill(true))
    expect(estimate()).toMatchObject({ inFlight: 8, limit: 3 })
    for (const verdict of verdicts) verdict.end({ status: 200 })
    expect(estimate().inFlight).toBe(0)
    await limiter.close()
  })

  it('an adaptive rule keeps what it has found when its limit changes', async () => {
    const { limiter, estimate, run, time } = await start()
    run(500)
    const before = estimate()
    engineOf(limiter).decider.rules[0]!.table.adopt([adaptive.meter({ count: 15, periodMs: 0 }, {})], time.ms * 1000)
    expect(estimate()).toEqual({ ...before, limit: 15 })
    await limiter.close()
  })

  it('an adaptive rule refuses with a problem type of its own and a time to come back that varies', async () => {
    const { refusal } = await import('../answers/answer.ts')
    const { limiter } = await start({ limit: 1 })
    await limiter.check(call)
    const refused = await limiter.check(call)
    expect(refused).toMatchObject({ allowed: false, reason: 'overload', rule: 'backend' })
    const answers = Array.from({ length: 50 }, () => refusal(refused, 0))
    expect(JSON.parse(answers[0]!.body)).toMatchObject({ type: 'urn:diana:problem:overload', status: 503 })
    const seconds = new Set(answers.map(({ headers }) => headers.find(([name]) => name === 'Retry-After')![1]))
    expect(seconds.size).toBeGreaterThan(1)
    await limiter.close()
  })

  it('an adaptive rule forgets keys that are idle for long, and keeps no more than the store may hold', async () => {
    const time = { ms: 1_000_000 }
    const rule: RuleOptions = { id: 'per-account', algorithm: 'adaptive', by: 'account', limit: 10 }
    const limiter = await createLimiter({ rules: [rule], clock: () => time.ms, maxKeys: 50 })
    for (let i = 0; i < 1000; i++) {
      const verdict = await limiter.check({ ...call, attributes: { account: `u${i}` } })
      time.ms += 1
      verdict.end({ status: 200 })
    }
    expect(engineOf(limiter).store.keys).toBeLessThanOrEqual(50)
    time.ms += 3_600_000
    engineOf(limiter).store.sweep(1000, time.ms * 1000)
    expect(engineOf(limiter).store.keys).toBe(0)
    await limiter.close()
  })

  it.each([
    [{ min: 10, limit: 5 }, /min 10 is above the limit 5: .*lower min or raise limit/],
    [{ min: 0, limit: 5 }, /min/],
    [{ limit: '10/s' }, /a bare count: write 10/],
  ])('an adaptive rule rejects %j with a remedy', async (options, message) => {
    const rule = { id: 'backend', algorithm: 'adaptive', ...options } as unknown as RuleOptions
    await expect(createLimiter({ rules: [rule] })).rejects.toThrow(message)
  })
})
