import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { LimiterOptions } from '../create/limiter-options.ts'
import type { RuleOptions } from '../rules/schema/options.ts'

const ann = { method: 'GET', path: '/' }
const queues: readonly ({ readonly timeout: string } | undefined)[] = [{ timeout: '2h' }, { timeout: '2s' }, undefined]

/** One call has room at once; the next one waits for 100 ms by `soon`, and for an hour by `late`. */
const rules: readonly Partial<RuleOptions>[] = [
  { algorithm: 'token-bucket', burst: 1 } as never,
  { algorithm: 'leaky-bucket', burst: 100 } as never,
  { algorithm: 'sliding-window' },
  { algorithm: 'sliding-log' },
  { algorithm: 'fixed-window' },
]
const cases = (among: readonly (typeof queues)[number][]) =>
  rules.flatMap(rule =>
    among.map(queue => [`${rule.algorithm} with ${queue?.timeout ?? 'the usual patience'}`, rule, queue] as const),
  )

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

let prefixes = 0
const stores: readonly (readonly [string, typeof queues, () => Partial<LimiterOptions>])[] = [
  ['memory', queues, () => ({})],
  [
    'Redis',
    queues.slice(0, 1),
    () => ({ store: { redis: `redis://${redis.authority}`, timeout: '2s', prefix: `wait${++prefixes}:` } }),
  ],
]

describe.each(stores)('a bound on waiting in %s', (_name, among, store) => {
  it.each(cases(among))(
    'with maxWaitMs, a call that would wait longer is refused at once (%s)',
    async (_case, rule, queue) => {
      const late: RuleOptions = {
        id: 'late',
        limit: '1/h',
        whenFull: 'wait',
        ...rule,
        ...(queue && { queue }),
      } as never
      const limiter = await createLimiter({ ...store(), maxWaitMs: 500, rules: [late] })
      expect((await limiter.check(ann)).allowed).toBe(true)
      const second = await limiter.check(ann)
      expect(second.allowed).toBe(false)
      expect(second.retryAfterMs).toBeGreaterThan(500)
      await limiter.close()
    },
  )

  it.each(rules.slice(0, 4).map(rule => [rule.algorithm, rule] as const))(
    'with maxWaitMs, a call that waits for less still passes (%s)',
    async (_algorithm, rule) => {
      const soon: RuleOptions = {
        id: 'soon',
        limit: '1/100ms',
        whenFull: 'wait',
        ...rule,
        queue: { timeout: '1h' },
      } as never
      const limiter = await createLimiter({ ...store(), maxWaitMs: 5000, rules: [soon] })
      expect((await limiter.check(ann)).allowed).toBe(true)
      expect(await limiter.check(ann)).toMatchObject({ allowed: true, waitMs: expect.any(Number) })
      await limiter.close()
    },
  )
})

it('with maxWaitMs, a call waits for a concurrency slot no longer than that', async () => {
  const limiter = await createLimiter({
    maxWaitMs: 30,
    rules: [{ id: 'slots', algorithm: 'concurrency', limit: 1, whenFull: 'wait', queue: { timeout: '1h' } }],
  })
  expect((await limiter.check(ann)).allowed).toBe(true)
  expect(await limiter.check(ann)).toMatchObject({ allowed: false, reason: 'timeout' })
  await limiter.close()
})
