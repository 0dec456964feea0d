import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter, RuleOptions } from '../index.ts'
import { type RedisServer, startRedis } from '../sources/servers/redis-server.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const START_MS = 1_794_744_000_000
let redis: RedisServer | undefined

async function limiterOf(where: 'memory' | 'Redis', rule: object, clock: () => number): Promise<Limiter> {
  if (where === 'Redis') {
    redis = await startRedis()
    closing.push(() => redis!.close())
  }
  const limiter = await createLimiter({
    clock,
    ...(where === 'Redis' && { store: { redis: `redis://${redis!.authority}`, timeout: '5s' } }),
    identify: { account: ['header:x-account'] },
    rules: [{ id: 'per-account', by: 'account', ...rule } as RuleOptions],
  })
  closing.push(() => limiter.close())
  return limiter
}

const callBy = (account: string, plan?: string) => ({
  method: 'GET',
  path: '/',
  headers: { 'x-account': account, ...(plan && { 'x-plan': plan }) },
})

/** How many of so many calls pass. */
async function passing(limiter: Limiter, calls: number, plan?: string, account = 'ann'): Promise<number> {
  let passed = 0
  for (let call = 0; call < calls; call++) if ((await limiter.check(callBy(account, plan))).allowed) passed++
  return passed
}

const values = { free: '10/h', pro: '50/h', suspended: '0/h' }
const limit = { by: 'header:x-plan', values, default: '5/h' }

describe.each(['memory', 'Redis'] as const)('a limit that depends on the caller, counted in %s', where => {
  describe.each(['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket'])('by %s', algorithm => {
    it('an upgrade keeps what was used and takes effect at once, and a downgrade frees nothing', async () => {
      let nowMs = START_MS
      const limiter = await limiterOf(where, { limit, algorithm }, () => nowMs)
      expect(await passing(limiter, 20, 'free')).toBe(10)
      expect(await passing(limiter, 100, 'pro')).toBe(40)
      expect(await passing(limiter, 5, 'free')).toBe(0)
      expect(await passing(limiter, 5)).toBe(0)
      expect(await passing(limiter, 5, 'unknown')).toBe(0)
      nowMs += 1000
      expect(await passing(limiter, 5, 'pro')).toBe(0)
      expect(await passing(limiter, 20, 'free', 'bob')).toBe(10)
      expect(await passing(limiter, 20, undefined, 'carl')).toBe(5)
      expect(await passing(limiter, 20, 'suspended', 'carl')).toBe(0)
      nowMs += 2 * 3_600_000
      expect(await passing(limiter, 100, 'pro')).toBe(50)
      const { allowed, retryAfterMs } = await limiter.check(callBy('ann', 'suspended'))
      expect([allowed, retryAfterMs]).toEqual([false, Number.POSITIVE_INFINITY])
    })
  })
})
