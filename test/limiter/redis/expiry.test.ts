import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { compileRule } from '../../../packages/limiter/src/testing/compile-rule.ts'
import type { TimelineRule } from '../../../packages/limiter/src/testing/timeline.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

// Expiry is the server's own, and so is the clock: here time really passes, for all rules at once.
const LENGTH_MS = 6500

interface Admission {
  readonly moment: number
  readonly cost: number
}

let server: RedisServer
let store: RedisStore
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
  store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args))
})
afterAll(async () => {
  store.close()
  await server.close()
})

const bucket = (burst: number, perSecond: number) => (admitted: readonly Admission[]) => {
  for (const [i, { moment: start }] of admitted.entries()) {
    let total = 0
    for (const { moment, cost } of admitted.slice(i)) {
      total += cost
      const most = burst + (perSecond * (moment - start)) / 1e6
      assert.ok(total <= most, `${total} within ${moment - start} µs, where ${most} are the most`)
    }
  }
}

const window = (count: number, periodMs: number) => (admitted: readonly Admission[]) => {
  for (const { moment: start } of admitted) {
    const inside = admitted.filter(({ moment }) => moment >= start && moment < start + periodMs * 1000)
    expect(inside.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(count)
  }
}

const rules: readonly [TimelineRule, (admitted: readonly Admission[]) => void][] = [
  [{ algorithm: 'token-bucket', limit: '10/s', burst: 20 }, bucket(20, 10)],
  [{ algorithm: 'token-bucket', limit: '1/s', burst: 1 }, bucket(1, 1)],
  [{ algorithm: 'token-bucket', limit: '1/2s', burst: 3 }, bucket(3, 0.5)],
  [{ algorithm: 'token-bucket', limit: '10/500ms', burst: 20, refill: 'interval' }, bucket(30, 20)],
  [{ algorithm: 'leaky-bucket', limit: '5/s', burst: 5 }, bucket(6, 5)],
  [{ algorithm: 'leaky-bucket', limit: '20/s', burst: 10, whenFull: 'wait' }, bucket(1, 20)],
  [{ algorithm: 'fixed-window', limit: '10/500ms', align: 'first-call' }, bucket(20, 20)],
  [{ algorithm: 'sliding-window', limit: '10/700ms' }, window(10, 700)],
  [{ algorithm: 'sliding-log', limit: '7/1s' }, window(7, 1000)],
  [{ algorithm: 'warm-up', limit: '20/s', warmUp: '200ms' }, bucket(1, 20)],
]

async function burst(counter: RedisCounter, admitted: Admission[]): Promise<void> {
  for (let refusals = 0; refusals < 3; ) {
    const charge = { ...redisCharge(counter), key: 'caller', cost: 1 }
    const { allowed, now } = await store.take([charge])
    if (allowed) admitted.push({ moment: now + charge.wait, cost: 1 })
    else refusals++
  }
}

it('no expiry gives away a call, with idle gaps around each of them, and Redis is empty in the end', async () => {
  const until = Date.now() + LENGTH_MS
  const runs = rules.map(async ([options, assertBound], i) => {
    const counter = store.createCounter(compileRule(options, { id: `rule ${i}` }))
    const admitted: Admission[] = []
    for (let round = 0; Date.now() < until; round++) {
      await burst(counter, admitted)
      const ttlMs = await server.client.pttl(counter.ledgerKeyOf('caller'))
      const gapMs = [-4, 0, 1, 4, -ttlMs / 3][round % 5]!
      await setTimeout(Math.max(1, ttlMs + gapMs))
    }
    expect(admitted.length).toBeGreaterThan(2)
    admitted.sort((a, b) => a.moment - b.moment)
    assertBound(admitted)
  })
  await Promise.all(runs)
  await vi.waitFor(async () => expect(await server.client.keys('*{*')).toEqual([]), { timeout: 15_000, interval: 50 })
})
