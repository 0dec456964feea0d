import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { compileRule } from '../../../packages/limiter/src/testing/compile-rule.ts'
import type { TimelineRule } from '../../../packages/limiter/src/testing/timeline.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const NOON = 1_794_744_000_000_000
const SECOND = 1_000_000

let rounds = 0
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())
beforeEach(async () => {
  await server.client.flushall()
})

/** Lets a caller call at some moments, `atOnce` calls together; returns the bytes that their ledger has after each moment. */
async function lengthsAfter(options: TimelineRule, moments: readonly number[], atOnce: number): Promise<number[]> {
  let now = NOON
  const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
    prefix: `states${++rounds}`,
    now: () => now,
  })
  const counter = store.createCounter(compileRule(options))
  const lengths: number[] = []
  for (const seconds of moments) {
    now = NOON + seconds * SECOND
    const calls = Array.from({ length: atOnce }, () =>
      store.take([{ ...redisCharge(counter), key: 'caller', cost: 1 }]),
    )
    await Promise.all(calls)
    lengths.push(await server.client.strlen(counter.ledgerKeyOf('caller')))
  }
  store.close()
  return lengths
}

describe.each([
  ['a call that comes alone', 1],
  ['several calls in a batch', 3],
])('the ledger of a bucket in Redis after %s', (_name, atOnce) => {
  it('a level has two numbers and a mark, and more only while calls of several moments are owed for', async () => {
    const rule = { algorithm: 'token-bucket', limit: '60/m' }
    const [first, later, owed, paid, last] = await lengthsAfter(rule, [0, 10, 10.5, 30, 100], atOnce)
    expect(Math.max(first!, later!, paid!, last!)).toBeLessThanOrEqual(20)
    expect(owed).toBeGreaterThan(20)
  })

  it('a second level has as many numbers as the first one', async () => {
    const rule = { algorithm: 'token-bucket', limit: ['60/m', '3600/h'] }
    const lengths = await lengthsAfter(rule, [0, 10], atOnce)
    expect(Math.max(...lengths)).toBeLessThanOrEqual(50)
  })
})

describe('a refund in Redis', () => {
  it('a refund of a call that waits is ignored after a reset, also if the caller had nothing stored then', async () => {
    let now = NOON
    const options = { now: () => now, forgetsLimits: true }
    const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), options)
    const create = (limit: string) =>
      store.createCounter(compileRule({ algorithm: 'leaky-bucket', limit, whenFull: 'wait', burst: 20 }))
    const take = async (counter: ReturnType<typeof create>) => {
      const charge = { ...redisCharge(counter), key: 'caller', cost: 1, mayWait: true }
      await store.take([charge])
      return charge.wait
    }
    const slow = create('1/d')
    await take(slow)
    const wait = await take(slow)
    expect(wait).toBeGreaterThan(1000 * SECOND)
    const fast = create('1000/s')
    now += 10 * SECOND
    await take(fast)
    now += 10 * SECOND
    await store.reset(fast, 'caller')
    await take(fast)
    const before = await take(fast)
    store.giveBack([{ counter: fast, key: 'caller', cost: 1, moment: NOON + wait, wait }])
    expect(await take(fast)).toBe(before * 2)
    store.close()
  })
})
