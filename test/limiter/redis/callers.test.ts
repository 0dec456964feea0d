import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Meter } from '../../../packages/limiter/src/algorithms/algorithm.ts'
import { fixedWindow } from '../../../packages/limiter/src/algorithms/fixed-window.ts'
import { slidingLog } from '../../../packages/limiter/src/algorithms/sliding-log.ts'
import { tokenBucket } from '../../../packages/limiter/src/algorithms/token-bucket.ts'
import { localCharge, MemoryStore } from '../../../packages/limiter/src/stores/memory/memory-store.ts'
import { type RedisCharge, type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore, type RedisStoreOptions } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import type { SendCommand } from '../../../packages/limiter/src/stores/redis/send-command.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const NOON = 1_794_744_000_000_000
const SECOND = 1_000_000

let server: RedisServer
let send: SendCommand
const stores: RedisStore[] = []
let round = 0

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
  send = ([command, ...args]) => server.client.call(command!, ...args)
})
afterAll(() => server.close())
beforeEach(async () => {
  round++
  await server.client.flushall()
})
afterEach(() => {
  for (const store of stores.splice(0)) store.close()
})

function createStore(options: RedisStoreOptions = {}, sending = send): RedisStore {
  // the versions of a rule are remembered by its name
  const store = new RedisStore(sending, { prefix: `callers${round}`, ...options })
  stores.push(store)
  return store
}

function createCounter(store: RedisStore, meter: Meter, id = 'rule'): RedisCounter {
  return store.createCounter({ id, meters: [meter], algorithm: 'any', enforced: true })
}

function charge(counter: RedisCounter, key: string, cost = 1): RedisCharge {
  return { ...redisCharge(counter), key, cost }
}

/** Lets many callers call once each; returns how many are allowed. */
async function flood(store: RedisStore, counter: RedisCounter, callers: readonly string[]): Promise<number> {
  let allowed = 0
  for (let first = 0; first < callers.length; first += 1000) {
    const calls = callers.slice(first, first + 1000).map(key => store.take([charge(counter, key)]))
    for (const answer of await Promise.all(calls)) if (answer.allowed) allowed++
  }
  return allowed
}

const callersFrom = (first: number, count: number) => Array.from({ length: count }, (_, i) => `caller-${first + i}`)
const oncePerHour = tokenBucket.meter({ count: 1, periodMs: 3_600_000 }, {})

describe('a rule with many callers', () => {
  it('every count is kept, for all processes', async () => {
    const [first, second] = [createStore({ now: () => NOON }), createStore({ now: () => NOON })]
    const [counter, other] = [createCounter(first, oncePerHour), createCounter(second, oncePerHour)]
    const callers = callersFrom(0, 5000)
    expect(await flood(first, counter, callers.slice(0, 50))).toBe(50)
    expect(await flood(second, other, callers)).toBe(4950)
    expect(await flood(first, counter, callers)).toBe(0)
    expect(new Set(await second.keys(other, 100_000))).toEqual(new Set(callers))
  })

  it('a reset and a refund forget a caller', async () => {
    const store = createStore({ now: () => NOON })
    const counter = createCounter(store, oncePerHour)
    const callers = callersFrom(0, 1000)
    await flood(store, counter, callers)
    for (const key of callers.filter((_, i) => i % 50 < 25)) await store.reset(counter, key)
    for (const key of callers.filter((_, i) => i % 50 >= 25))
      store.giveBack([{ counter, key, cost: 1, moment: NOON, wait: 0 }])
    expect(await flood(store, counter, callers)).toBe(1000)
    expect(await flood(store, counter, callers)).toBe(0)
  })

  it('a rule goes on with what was counted of all callers when its limit is changed', async () => {
    const store = createStore()
    const perPeriod = (periodMs: number) => fixedWindow.meter({ count: 5, periodMs }, { align: 'first-call' })
    await flood(store, createCounter(store, perPeriod(3000)), callersFrom(0, 1500))
    createCounter(store, perPeriod(600_000))
    await store.continued()
    const names = await server.client.keys('*{*')
    const left = await Promise.all(names.map(name => server.client.pttl(name)))
    expect(names.length).toBe(1500)
    expect(Math.min(...left)).toBeGreaterThan(10_000)
  })
})

describe('several processes', () => {
  const meters = [
    tokenBucket.meter({ count: 3, periodMs: 4000 }, {}),
    fixedWindow.meter({ count: 2, periodMs: 1000 }, {}),
    slidingLog.meter({ count: 2, periodMs: 3000 }, {}),
  ]
  const step = fc.record({
    process: fc.nat(2),
    callers: fc.array(fc.nat(60), { minLength: 1, maxLength: 12 }),
    laterUs: fc.oneof(fc.constant(0), fc.nat(700_000), fc.nat(9 * SECOND)),
  })

  it('several processes answer as one would', async () => {
    let run = 0
    const walk = fc.asyncProperty(
      fc.constantFrom(...meters),
      fc.array(step, { minLength: 10, maxLength: 60 }),
      async (meter, steps) => {
        let now = NOON
        const id = `rule ${run++}`
        const table = new MemoryStore().createTable(id, [meter])
        const memory = new MemoryStore()
        const fleet = Array.from({ length: 3 }, () => createStore({ now: () => now }))
        const counters = fleet.map(store => createCounter(store, meter, id))
        for (const { process, callers, laterUs } of steps) {
          now += laterUs
          const calls = callers.map(caller => charge(counters[process]!, `caller-${caller}`))
          const answers = await Promise.all(calls.map(call => fleet[process]!.take([call])))
          const expected = calls.map(({ key }) => {
            const local = { ...localCharge(table), key, cost: 1, enforced: true, mayWait: false }
            return memory.take([local], 1, now)
          })
          const passed = (results: readonly boolean[]): string[] => callers.filter((_, i) => results[i]).map(String)
          expect(passed(answers.map(({ allowed }) => allowed)).sort()).toEqual(passed(expected).sort())
        }
        for (const store of fleet) store.close()
      },
    )
    await fc.assert(walk, { numRuns: randomRuns(10) })
  })

  it('several processes never admit more than the limit', async () => {
    const fleet = Array.from({ length: 3 }, () => createStore({ now: () => NOON }))
    const counters = fleet.map(store => createCounter(store, oncePerHour))
    const callers = callersFrom(0, 300)
    const calls = callers.flatMap(key => fleet.map((store, i) => store.take([charge(counters[i]!, key)])))
    const answers = await Promise.all(calls)
    expect(answers.filter(({ allowed }) => allowed).length).toBe(300)
  })
})

describe('expiry', () => {
  it('20 000 callers who are idle together do not expire at one moment', async () => {
    const store = createStore()
    await flood(
      store,
      createCounter(store, fixedWindow.meter({ count: 1, periodMs: 3_600_000 }, {})),
      callersFrom(0, 20_000),
    )
    const perTick = new Map<number, number>()
    for (const name of await server.client.keys('*{*')) {
      const tick = Math.floor((await server.client.pexpiretime(name)) / 100)
      perTick.set(tick, (perTick.get(tick) ?? 0) + 1)
    }
    expect(Math.max(...perTick.values())).toBeLessThan(1000)
  }, 30_000)

  it('expiry leaves Redis empty, and never stops it for long', async () => {
    await server.client.config('SET', 'latency-monitor-threshold', '1')
    const store = createStore()
    await flood(
      store,
      createCounter(store, fixedWindow.meter({ count: 1, periodMs: 1000 }, {})),
      callersFrom(0, 10_000),
    )
    await server.client.latency('RESET')
    await vi.waitFor(async () => expect(await server.client.keys('*{*')).toEqual([]), { timeout: 15_000, interval: 50 })
    const events = (await server.client.latency('LATEST')) as [string, number, number, number][]
    for (const [event, , , longestMs] of events) {
      // a busy machine stops any process for some milliseconds
      if (event.startsWith('expire')) expect(longestMs).toBeLessThan(50)
    }
  }, 20_000)
})
