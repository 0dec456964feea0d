import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await redis.client.flushall()
})

async function start(rule: RuleOptions, processes: number): Promise<Limiter[]> {
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      store: { redis: `redis://${redis.authority}`, timeout: '2s' },
      rules: [rule],
    })
    closing.push(() => limiter.close())
    limiters.push(limiter)
  }
  return limiters
}

const ann = { method: 'GET', path: '/', attributes: { account: 'ann' } }

function burst(limiter: Limiter, calls: number): Promise<Verdict[]> {
  return Promise.all(Array.from({ length: calls }, () => limiter.check(ann)))
}

const admittedOf = (verdicts: readonly Verdict[]): number => verdicts.filter(({ allowed }) => allowed).length

const ALGORITHMS: readonly Partial<RuleOptions>[] = [
  { algorithm: 'sliding-window' },
  { algorithm: 'sliding-log' },
  { algorithm: 'fixed-window' },
  { algorithm: 'fixed-window', align: 'first-call' },
  { algorithm: 'token-bucket' },
  { algorithm: 'leaky-bucket' },
]

describe('a burst at a rule whose permits are leased', () => {
  it.each(ALGORITHMS.flatMap(more => [40, 100, 400].map(count => [more, count] as const)))(
    '%j: the first %i calls of a burst of one process pass, and no other',
    async (more, count) => {
      const options = more.algorithm?.endsWith('bucket') ? { ...more, burst: count } : more
      const [limiter] = await start({ id: 'each', by: 'account', limit: `${count}/h`, ...options } as RuleOptions, 1)
      const most = more.algorithm === 'leaky-bucket' ? count + 1 : count
      const first = await burst(limiter!, count * 2)
      expect(admittedOf(first)).toBe(most)
      await pause(15)
      expect(admittedOf(await burst(limiter!, 10))).toBe(0)
      for (const verdict of first) if (!verdict.allowed) expect(verdict.retryAfterMs).toBeGreaterThan(1000)
    },
  )

  it('three processes that use up a limit use all of it, and a refusal names a day only if nothing is left', async () => {
    const rule = { id: 'each', by: 'account', limit: '400/d', algorithm: 'fixed-window' } as const
    const limiters = await start(rule, 3)
    let admitted = 0
    const early: number[] = []
    for (let round = 0; round < 300 && admitted < 400; round++) {
      for (const [i, limiter] of limiters.entries()) {
        for (let n = 0; n < 1 + ((round + i) % 3); n++) {
          const verdict = await limiter.check(ann)
          if (verdict.allowed) admitted++
          else if (admitted < 400) early.push(verdict.retryAfterMs)
        }
      }
      await pause(early.length > 0 ? 20 : 2)
    }
    expect(admitted).toBe(400)
    expect(Math.max(0, ...early)).toBeLessThanOrEqual(1000)
  })
})

describe('refunds of calls that leased permits have paid', () => {
  it.each(ALGORITHMS)('%j: all are free again that calls have given back', async more => {
    const options = more.algorithm?.endsWith('bucket') ? { ...more, burst: 200 } : more
    const rule = { id: 'each', by: 'account', limit: '200/h', countWhen: '401', ...options } as RuleOptions
    const [limiter] = await start(rule, 1)
    let refused = 0
    const calls: Promise<void>[] = []
    const call = async (): Promise<void> => {
      const verdict = await limiter!.check(ann)
      if (!verdict.allowed) refused++
      await pause(20)
      await verdict.end({ status: 200 })
    }
    for (let i = 0; i < 200; i++) {
      calls.push(call(), call())
      await pause(8)
    }
    await Promise.all(calls)
    await pause(400)
    const left = (await limiter!.peek(ann)).decisions[0]!.remaining
    expect({ refused, left }).toEqual({ refused: 0, left: more.algorithm === 'leaky-bucket' ? 201 : 200 })
  })
})
