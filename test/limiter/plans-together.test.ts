import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter, RuleOptions } from '../../packages/limiter/src/index.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

const callBy = (account: string, plan: string) => ({
  method: 'GET',
  path: '/',
  attributes: { account, plan },
})

const plans = (values: Record<string, string>, standard: string) => ({
  by: 'attribute:plan',
  values,
  default: standard,
})

describe.each(['memory', 'Redis', 'ledgers'])('limits that depend on the caller, counted in %s', where => {
  async function using(rule: object, startMs: number, act: (limiter: Limiter, time: { ms: number }) => Promise<void>) {
    const time = { ms: startMs }
    const limiter = await createLimiter({
      clock: () => time.ms,
      identify: { account: ['attribute:account'] },
      ...(where === 'Redis' && { store: { redis: `redis://${redis.authority}`, timeout: '5s' } }),
      ...(where === 'ledgers' && { store: new MapStore() }),
      rules: [{ id: `rule-${Math.random()}`, by: 'account', ...rule } as RuleOptions],
    })
    try {
      await act(limiter, time)
    } finally {
      await limiter.close()
    }
  }
  const passing = async (limiter: Limiter, calls: number, plan: string): Promise<number> => {
    let passed = 0
    for (let call = 0; call < calls; call++) if ((await limiter.check(callBy('ann', plan))).allowed) passed++
    return passed
  }

  it('plans by calendar month: an upgrade keeps what was used, and the next month begins for all of them', async () => {
    const limit = plans({ free: '3/month', pro: '10/month' }, '1/month')
    const zoned = { limit, zone: 'Europe/Berlin' }
    // in Berlin it is March already
    await using(zoned, Date.UTC(2027, 1, 28, 23, 30), async (limiter, time) => {
      expect(await passing(limiter, 5, 'free')).toBe(3)
      expect(await passing(limiter, 20, 'pro')).toBe(7)
      const { allowed, retryAfterMs } = await limiter.check(callBy('ann', 'pro'))
      expect([allowed, time.ms + retryAfterMs]).toEqual([false, Date.UTC(2027, 2, 31, 22)])
      expect(await passing(limiter, 3, 'none')).toBe(0)
      time.ms = Date.UTC(2027, 2, 31, 22)
      expect(await passing(limiter, 5, 'none')).toBe(1)
      expect(await passing(limiter, 5, 'free')).toBe(2)
    })
  })

  it('plans of different calendar periods and of fixed ones count every call', async () => {
    const limit = plans({ day: '4/day', month: '6/month' }, '5/h')
    await using({ limit, algorithm: 'fixed-window' }, Date.UTC(2027, 4, 10, 12), async (limiter, time) => {
      expect(await passing(limiter, 9, 'day')).toBe(4)
      expect(await passing(limiter, 9, 'none')).toBe(1)
      expect(await passing(limiter, 9, 'month')).toBe(1)
      time.ms += 24 * 3_600_000
      expect(await passing(limiter, 9, 'month')).toBe(0)
      expect(await passing(limiter, 9, 'day')).toBe(4)
    })
  })

  it.each(['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket'])(
    'a debt by %s counts by every plan of the caller',
    async algorithm => {
      const limit = plans({ free: '100/m', pro: '1000/m' }, '10/m')
      const rule = { limit, algorithm, cost: { overrun: 'debt', hold: '1m' } }
      await using(rule, Date.UTC(2027, 4, 10, 12), async limiter => {
        const first = await limiter.reserve(callBy('ann', 'free'), { cost: 60 })
        expect(first.allowed).toBe(true)
        await first.settle(250)
        const left = async (plan: string) =>
          (await limiter.peek(callBy('ann', plan), { cost: 0 })).decisions[0]!.remaining
        expect([await left('free'), await left('pro')]).toEqual([0, 750])
        expect((await limiter.reserve(callBy('ann', 'free'), { cost: 1 })).allowed).toBe(false)
        const second = await limiter.reserve(callBy('ann', 'pro'), { cost: 700 })
        expect(second.allowed).toBe(true)
        await second.settle(1000)
        expect([await left('free'), await left('pro')]).toEqual([0, 0])
      })
    },
  )
})
