import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { concurrency } from '../../../packages/limiter/src/algorithms/concurrency.ts'
import { tokenBucket } from '../../../packages/limiter/src/algorithms/token-bucket.ts'
import { connectRedis } from '../../../packages/limiter/src/stores/redis/connection/client.ts'
import { type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore, type RedisStoreOptions } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { slotOf } from '../../../packages/limiter/src/stores/redis/slot.ts'
import { compileRule } from '../../../packages/limiter/src/testing/compile-rule.ts'
import { createStoreDecider } from '../../../packages/limiter/src/testing/stores/store-decider.ts'
import { runTimeline } from '../../../packages/limiter/src/testing/timeline.ts'
import { timelines } from '../../../packages/limiter/src/testing/timelines.ts'
import { type RedisCluster, startCluster } from '../../helpers/servers/redis-cluster.ts'

let cluster: RedisCluster
let now: number
const closing: (() => void)[] = []

beforeAll(async () => {
  cluster = await startCluster()
}, 60_000)
afterAll(() => cluster.close())
beforeEach(async () => {
  now = 1_794_744_000_000_000
  await Promise.all(cluster.nodes.map(node => node.flushall()))
})
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function createStore(options: RedisStoreOptions = {}): Promise<RedisStore> {
  const { send, isCluster } = await connectRedis(cluster.client)
  const store = new RedisStore(send, { isCluster, now: () => now, ...options })
  closing.push(() => store.close())
  return store
}

function createCounter(store: RedisStore, id: string, count: number): RedisCounter {
  const meters = [tokenBucket.meter({ count, periodMs: 3_600_000 }, {})]
  return store.createCounter({ id, meters, algorithm: 'token-bucket', enforced: true })
}

/** Each rule counts another caller, so that their ledgers are in several slots. */
const callerOf = ({ tag }: RedisCounter) => `caller of ${tag}`

async function left(store: RedisStore, counter: RedisCounter): Promise<number> {
  const charge = { ...redisCharge(counter), key: callerOf(counter), cost: 0 }
  await store.look([charge])
  return charge.remaining[0]!
}

const take = (store: RedisStore, counters: readonly RedisCounter[], cost = 1) => {
  return store.take(counters.map(counter => ({ ...redisCharge(counter), key: callerOf(counter), cost })))
}

describe('a Cluster of three masters', () => {
  it.each(timelines)('a Cluster answers every table of moments: $title', async timeline => {
    const judge = createStoreDecider(await createStore(), compileRule(timeline.rule))
    const start = now
    await runTimeline(timeline, (atMs, cost, key) => {
      now = start + Math.round(atMs * 1000)
      return judge(cost, key)
    })
  })

  it('a Cluster leaves every counter as before when a call is refused by a rule in another slot', async () => {
    const store = await createStore()
    const counters = [10, 20, 1, 30].map((count, i) => createCounter(store, `rule ${i}`, count))
    expect(new Set(counters.map(counter => slotOf(counter.ledgerKeyOf(callerOf(counter))))).size).toBe(4)
    expect((await take(store, counters)).allowed).toBe(true)
    const before = await Promise.all(counters.map(counter => left(store, counter)))
    expect((await take(store, counters)).allowed).toBe(false)
    expect(await Promise.all(counters.map(counter => left(store, counter)))).toEqual(before)
    expect(before).toEqual([9, 19, 0, 29])
  })

  it('a Cluster decides by one script what several rules count of one caller', async () => {
    const { send } = await connectRedis(cluster.client)
    let scripts = 0
    const store = new RedisStore(
      command => {
        scripts++
        return send(command)
      },
      { isCluster: true, now: () => now },
    )
    closing.push(() => store.close())
    const counters = [10, 20, 30].map((count, i) => createCounter(store, `rule ${i}`, count))
    const ask = () => store.take(counters.map(counter => ({ ...redisCharge(counter), key: 'ann', cost: 1 })))
    await ask()
    scripts = 0
    await ask()
    expect(scripts).toBe(1)
  })

  it('a Cluster lists the callers of a rule on all masters', async () => {
    const { send, isCluster, masters } = await connectRedis(cluster.client)
    const store = new RedisStore(send, { isCluster, masters, now: () => now })
    closing.push(() => store.close())
    const counter = createCounter(store, 'rule', 5)
    const callers = Array.from({ length: 50 }, (_, i) => `caller ${i}`)
    await Promise.all(callers.map(key => store.take([{ ...redisCharge(counter), key, cost: 1 }])))
    expect((await store.keys(counter, 100)).sort()).toEqual(callers.sort())
  })

  it('concurrent calls never get more than any rule allows', async () => {
    const stores = await Promise.all([createStore(), createStore(), createStore()])
    const countersOf = (store: RedisStore) => [80, 50, 65].map((count, i) => createCounter(store, `rule ${i}`, count))
    const counters = stores.map(countersOf)
    const calls = Array.from({ length: 300 }, (_, i) => take(stores[i % 3]!, counters[i % 3]!))
    const answers = await Promise.all(calls)
    const admitted = answers.filter(({ allowed }) => allowed).length
    expect(admitted).toBeLessThanOrEqual(50)
    expect(admitted).toBeGreaterThan(0)
    await vi.waitFor(async () => {
      const lefts = await Promise.all(counters[0]!.map(counter => left(stores[0]!, counter)))
      expect(lefts).toEqual([80 - admitted, 50 - admitted, 65 - admitted])
    })
  })

  it('a Cluster charges nothing for calls that another slot refuses, while time passes and other callers call', async () => {
    // every script call comes 100 µs after the one before
    const store = await createStore({ now: () => (now += 100) })
    const meters = [tokenBucket.meter({ count: 1000, periodMs: 1000 }, {})]
    const rate = store.createCounter({ id: 'rate', meters, algorithm: 'token-bucket', enforced: true })
    const full = createCounter(store, 'full', 0)
    for (let round = 0; round < 100; round++) {
      const calls = Array.from({ length: 5 }, () => take(store, [rate, full]))
      for (const { allowed } of await Promise.all(calls)) expect(allowed).toBe(false)
    }
    expect(await left(store, rate)).toBeGreaterThanOrEqual(999)
  })

  it('a Cluster gives back what other slots took when one of them fails', async () => {
    const { send } = await connectRedis(cluster.client)
    const failing = createCounter(await createStore(), 'fails', 5)
    const store = new RedisStore(
      command =>
        command.includes(failing.ledgerKeyOf(callerOf(failing)))
          ? Promise.reject(new Error('CLUSTERDOWN'))
          : send(command),
      { isCluster: true, now: () => now },
    )
    closing.push(() => store.close())
    const fine = createCounter(store, 'fine', 5)
    await expect(take(store, [fine, failing])).rejects.toThrow('CLUSTERDOWN')
    expect(await left(store, fine)).toBe(5)
  })

  it('a Cluster keeps and frees concurrency slots', async () => {
    const store = await createStore()
    const meters = [concurrency.meter({ count: 3, periodMs: 0 }, {})]
    const places = store.createCounter({ id: 'places', meters, algorithm: 'concurrency', enforced: true })
    const counters = [createCounter(store, 'rate', 2), places]
    expect((await take(store, counters, 2)).allowed).toBe(true)
    expect((await take(store, counters, 1)).allowed).toBe(false)
    expect(await left(store, places)).toBe(1)
    store.giveBack([{ counter: places, key: callerOf(places), cost: 2, moment: now }])
    expect(await left(store, places)).toBe(3)
  })

  it('a Cluster reserves in several slots together, and settles each', async () => {
    const store = await createStore()
    const counters = [createCounter(store, 'wide', 100), createCounter(store, 'narrow', 60)]
    const reserve = async (cost: number, reservation: number) => {
      const charges = counters.map(counter => ({
        ...redisCharge(counter),
        ...{ key: callerOf(counter), cost, mayWait: false, reservation, holdUs: 1_000_000 },
      }))
      return (await store.take(charges)).allowed
    }
    expect([await reserve(50, 1), await reserve(20, 2)]).toEqual([true, false])
    const terms = {
      cost: 50,
      moment: now,
      reservation: 1,
      until: now + 1_000_000,
      overrun: 'debt',
    } as const
    const settlements = [20, 90].map((actual, i) => ({
      ...terms,
      key: callerOf(counters[i]!),
      counter: counters[i]!,
      actual,
    }))
    await store.settle(settlements)
    await store.settle(settlements)
    expect([await left(store, counters[0]!), await left(store, counters[1]!)]).toEqual([80, 0])
  })
})
