import { describe, expect, it } from 'vitest'
import type { Limiter, Verdict } from '../../packages/limiter/src/index.ts'
import { type ChangingLimiter, changingLimiter } from '../../packages/limiter/src/testing/changing-limiter.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const START_MS = 1_794_744_000_000
const redis = useRedis()
let prefixes = 0

const start = async (where: string, rules: readonly object[], startMs = START_MS): Promise<ChangingLimiter> => {
  const store = where === 'Redis' ? { redis: redis.url, prefix: `changed${prefixes++}` } : {}
  return redis.closeLater(await changingLimiter(rules, { startMs, ...store }))
}

const callOf = (plan = 'none', account = 'ann') => ({ method: 'GET', path: '/', attributes: { account, plan } })

async function passing(limiter: Limiter, calls: number, plan?: string): Promise<number> {
  let passed = 0
  for (let call = 0; call < calls; call++) if ((await limiter.check(callOf(plan))).allowed) passed++
  return passed
}

const remaining = (verdict: Verdict): number => verdict.decisions[0]!.remaining
const left = async (limiter: Limiter, plan?: string): Promise<number> => remaining(await limiter.peek(callOf(plan)))

describe.each(['memory', 'Redis'])('limits that change, counted in %s', where => {
  it('three shapes of a bucket within a minute admit no more than the largest', async () => {
    const shape = (limit: unknown, burst: number) => [{ id: 'r', algorithm: 'leaky-bucket', limit, burst }]
    const { limiter, change } = await start(where, shape(['17/7s', '1/1s'], 0))
    expect(await passing(limiter, 3)).toBe(1)
    await change(shape('8/5ms', 7))
    expect(await passing(limiter, 20)).toBe(7)
    await change(shape('2/1s', 6))
    expect(await passing(limiter, 20)).toBe(0)
  })

  it('a token bucket and a leaky bucket continue each other', async () => {
    const token = [{ id: 'r', algorithm: 'token-bucket', limit: '5/h' }]
    const leaky = [{ id: 'r', algorithm: 'leaky-bucket', limit: '5/h', burst: 4 }]
    const { limiter, change, time } = await start(where, token)
    expect(await passing(limiter, 3)).toBe(3)
    await change(leaky)
    expect(await passing(limiter, 9)).toBe(2)
    time.ms += 61_000
    await change(token)
    expect(await passing(limiter, 9)).toBe(0)
  })

  it('a rule that is removed, or renamed, and comes back continues', async () => {
    const rule = (id: string) => [{ id, by: 'account', algorithm: 'fixed-window', limit: '5/h' }]
    const { limiter, change, time } = await start(where, rule('r'))
    expect(await passing(limiter, 3)).toBe(3)
    await change(rule('s'))
    expect(await passing(limiter, 4)).toBe(4)
    await change(rule('r'))
    expect(await passing(limiter, 9)).toBe(2)
    time.ms += 1000
    await change([...rule('r'), ...rule('s')])
    expect(await passing(limiter, 9)).toBe(0)
    time.ms += 3_600_000
    expect(await passing(limiter, 9)).toBe(5)
  })

  const plans = (values: object, standard: string) => ({ by: 'attribute:plan', values, default: standard })

  it('a plan admits what its own window has room for, whatever another plan has used before it', async () => {
    const limit = plans({ pro: '37/10s' }, '8/1s')
    for (const algorithm of ['sliding-log', 'sliding-window', 'fixed-window']) {
      const { limiter, time } = await start(where, [{ id: 'r', by: 'account', algorithm, limit }])
      expect(await passing(limiter, 20, 'pro')).toBe(20)
      time.ms += 1500
      expect(await passing(limiter, 20), algorithm).toBe(8)
    }
  })

  it('a refusal has the right Retry-After, also after calls by another plan', async () => {
    const limit = plans({ pro: '10/10s' }, '3/10s')
    const { limiter, time } = await start(where, [{ id: 'r', by: 'account', algorithm: 'sliding-log', limit }])
    expect(await passing(limiter, 4)).toBe(3)
    time.ms += 100
    expect(await passing(limiter, 7, 'pro')).toBe(7)
    const verdict = await limiter.check(callOf())
    const decided = [verdict.allowed, verdict.retryAfterMs]
    expect(decided).toEqual([false, 10_000])
  })

  it('a refusal shows what an own settlement has changed, also one of another plan', async () => {
    const limit = plans({ pro: '10/10s' }, '3/10s')
    const cost = { overrun: 'debt', hold: '1m' }
    const { limiter } = await start(where, [{ id: 'r', by: 'account', algorithm: 'sliding-log', limit, cost }])
    const reserved = await limiter.reserve(callOf('pro'), { cost: 3 })
    expect((await limiter.check(callOf())).allowed).toBe(false)
    const refused = limiter.check(callOf())
    await reserved.settle(1)
    await refused
    expect((await limiter.check(callOf())).allowed).toBe(true)
  })

  it('a sliding log with a debt is refunded all that is refunded later', async () => {
    const rule = {
      id: 'r',
      by: 'account',
      algorithm: 'sliding-log',
      limit: '10/h',
      cost: { overrun: 'debt', hold: '1m' },
    }
    const { limiter, time } = await start(where, [rule])
    const first = await limiter.reserve(callOf(), { cost: 4 })
    time.ms += 1
    const second = await limiter.reserve(callOf(), { cost: 5 })
    time.ms += 1
    const third = await limiter.reserve(callOf(), { cost: 1 })
    time.ms += 1
    await third.settle(5)
    expect(await left(limiter)).toBe(0)
    await first.settle(0)
    expect(await left(limiter)).toBe(0)
    await second.settle(0)
    expect(await left(limiter)).toBe(5)
  })

  it('a cost that was settled up where the limit had too little room refunds what was charged, and no more', async () => {
    const { limiter } = await start(where, [{ id: 'r', by: 'account', algorithm: 'fixed-window', limit: '5/h' }])
    expect(await passing(limiter, 2)).toBe(2)
    const verdict = await limiter.check(callOf())
    verdict.settle(9)
    for (let question = 0; question < 3; question++) await left(limiter)
    expect(await left(limiter)).toBe(0)
    verdict.settle(1)
    for (let question = 0; question < 3; question++) await left(limiter)
    expect(await left(limiter)).toBe(2)
  })

  it('a cost is settled by the plan of its call, whichever plan was made last', async () => {
    const limit = plans({ pro: '20/h' }, '5/h')
    const cost = { overrun: 'clip', hold: '1m' }
    const { limiter } = await start(where, [{ id: 'r', by: 'account', algorithm: 'fixed-window', limit, cost }])
    const reserved = await limiter.reserve(callOf(), { cost: 2 })
    await reserved.settle(9)
    expect([await left(limiter), await left(limiter, 'pro')]).toEqual([0, 15])
  })

  it('a cost settled after a reset charges nothing, also if nothing was counted any more', async () => {
    const limit = plans({ pro: '20/h' }, '5/h')
    const rule = { id: 'r', by: 'account', algorithm: 'sliding-log', limit, cost: { overrun: 'debt', hold: '1h' } }
    const { limiter } = await start(where, [rule])
    const reserved = await limiter.reserve(callOf(), { cost: 1 })
    await limiter.reset('r', 'ann')
    await (await limiter.check(callOf('pro'))).refund()
    await reserved.settle(4)
    expect([await left(limiter), await left(limiter, 'pro')]).toEqual([5, 20])
  })

  it('a call after a reset is refunded, also in the same moment', async () => {
    const rule = { id: 'r', by: 'account', algorithm: 'fixed-window', limit: '5/h' }
    const { limiter } = await start(where, [rule])
    expect(await passing(limiter, 3)).toBe(3)
    await limiter.reset('r', 'ann')
    const verdict = await limiter.check(callOf())
    expect(remaining(verdict)).toBe(4)
    await verdict.refund()
    expect(await left(limiter)).toBe(5)
  })
})
