import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

interface Ended {
  readonly name: string
  readonly ms: number
  readonly verdict?: Verdict
}

/** A limiter on the clock of the machine, in this process or in Redis, and calls in the order in which they ended. */
async function start(rule: RuleOptions, store?: { redis: string; prefix: string }) {
  const limiter = await createLimiter({ ...(store && { store: { ...store, timeout: '5s' } }), rules: [rule] })
  // the first question to Redis takes longer
  await limiter.peek({ method: 'GET', path: '/' })
  await expect.poll(() => limiter.status().store?.healthy ?? true, { timeout: 5000 }).toBe(true)
  const begin = performance.now()
  const ended: Ended[] = []
  const call = (name: string, cost = 1) => {
    const controller = new AbortController()
    const end = (verdict?: Verdict): void => {
      const ms = performance.now() - begin
      ended.push(verdict ? { name, ms, verdict } : { name, ms })
    }
    const done = limiter.check({ method: 'GET', path: '/' }, { cost, signal: controller.signal }).then(end, () => end())
    return { done, leave: () => controller.abort() }
  }
  return { limiter, call, ended }
}

const inRedis = (prefix: string) => ({ redis: `redis://${redis.authority}`, prefix })

describe('calls that wait, on the clock of the machine', () => {
  it.each(['token-bucket', 'fixed-window'] as const)(
    'no call that waits for a %s hangs if a timer is late and the first of two later calls leaves',
    async algorithm => {
      const queue = { size: 5, timeout: '1s' }
      const { limiter, call } = await start({ id: 'r', limit: '2/250ms', algorithm, whenFull: 'wait', queue })
      const first = [call('a'), call('b'), call('late')]
      const blockedUntil = performance.now() + 200
      while (performance.now() < blockedUntil);
      const leaving = call('leaves', 2)
      const last = call('last')
      await pause(47)
      leaving.leave()
      const all = Promise.all([...first, leaving, last].map(({ done }) => done))
      expect(await Promise.race([all.then(() => 'ended'), pause(1500, 'hangs')])).toBe('ended')
      await limiter.close()
    },
  )

  it('calls that wait for a count in Redis move up when others leave, and a later call does not overtake them', async () => {
    const queue = { timeout: '10s' }
    const rule: RuleOptions = { id: 'r', limit: '20/s', algorithm: 'token-bucket', burst: 5, whenFull: 'wait', queue }
    const { limiter, call, ended } = await start(rule, inRedis('rate'))
    const calls = Array.from({ length: 30 }, (_, i) => call(String(i)))
    await pause(50)
    for (const leaving of calls.slice(10, 20)) leaving.leave()
    await pause(20)
    const newcomer = call('newcomer')
    await Promise.all([...calls, newcomer].map(({ done }) => done))
    const passed = ended.filter(({ verdict }) => verdict?.allowed)
    expect(passed.map(({ name }) => name)).toEqual([
      ...[...Array.from({ length: 10 }, (_, i) => i), ...Array.from({ length: 10 }, (_, i) => 20 + i)].map(String),
      'newcomer',
    ])
    // 5 pass at once and 16 wait for 50 ms each; with the calls that have left it would be 26
    const tookMs = passed.at(-1)!.ms - passed[0]!.ms
    expect(tookMs).toBeGreaterThan(700)
    expect(tookMs).toBeLessThan(1100)
    await limiter.close()
  })

  it('calls that wait for a slot in Redis are served in the order they came', async () => {
    const queue = { timeout: '10s' }
    const rule: RuleOptions = { id: 'r', limit: 1, algorithm: 'concurrency', whenFull: 'wait', queue }
    const { limiter, call, ended } = await start(rule, inRedis('slots'))
    const calls: ReturnType<typeof call>[] = []
    for (let i = 0; i < 8; i++) {
      calls.push(call(String(i)))
      await pause(10)
    }
    calls[3]!.leave()
    for (let i = 0; i < 7; i++) {
      await expect.poll(() => ended.filter(({ verdict }) => verdict).length, { timeout: 5000 }).toBe(i + 1)
      ended.findLast(({ verdict }) => verdict)!.verdict!.end()
    }
    expect(ended.filter(({ verdict }) => verdict).map(({ name }) => name)).toEqual(['0', '1', '2', '4', '5', '6', '7'])
    await limiter.close()
  })
})
