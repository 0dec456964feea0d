import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Algorithm, Limit, Meter } from '../../../packages/limiter/src/algorithms/algorithm.ts'
import { fixedWindow } from '../../../packages/limiter/src/algorithms/fixed-window.ts'
import { leakyBucket } from '../../../packages/limiter/src/algorithms/leaky-bucket.ts'
import { slidingLog } from '../../../packages/limiter/src/algorithms/sliding-log.ts'
import { slidingWindow } from '../../../packages/limiter/src/algorithms/sliding-window.ts'
import { tokenBucket } from '../../../packages/limiter/src/algorithms/token-bucket.ts'
import { localCharge, MemoryStore } from '../../../packages/limiter/src/stores/memory/memory-store.ts'
import { refundLocal } from '../../../packages/limiter/src/stores/memory/refund-local.ts'
import { resetsSoFar } from '../../../packages/limiter/src/stores/memory/table.ts'
import { type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { CountsLost } from '../../../packages/limiter/src/stores/store-error.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const START = 1_794_744_000_123_456

let server: RedisServer
let round = 0
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

interface Call {
  readonly at: number
  readonly cost: number
  /** How much the version that admitted it admits in a microsecond. */
  readonly perUs: number
}

/** Whether a limit allows the last of these calls after the others, whichever version admitted those. */
type Allows = (limit: Limit, calls: readonly Call[]) => boolean

const inWindow: Allows = ({ count, periodMs }, calls) => {
  const edge = calls.at(-1)!.at - periodMs * 1000
  return sumOf(calls.filter(({ at }) => at > edge)) <= count
}

const inFixedWindow: Allows = ({ count, periodMs }, calls) => {
  const windowOf = (at: number): number => Math.floor(at / (periodMs * 1000))
  return sumOf(calls.filter(({ at }) => windowOf(at) === windowOf(calls.at(-1)!.at))) <= count
}

/** A bucket as large as its limit that all calls are taken from, and that owes what faster limits admit only until it is full. */
const inBucket: Allows = ({ count, periodMs }, calls) => {
  const perUs = count / (periodMs * 1000)
  let [unreported, last] = [0, 0]
  for (const { at, cost, perUs: admittedPerUs } of calls) {
    unreported = Math.max(0, unreported - (at - last) * perUs) + cost
    if (admittedPerUs > perUs) unreported = Math.min(unreported, count)
    last = at
  }
  return unreported <= count + 1e-6
}

const subjects: readonly (readonly [name: string, algorithm: Algorithm, allows: Allows])[] = [
  ['sliding-window', slidingWindow, inWindow],
  ['sliding-log', slidingLog, inWindow],
  ['fixed-window', fixedWindow, inFixedWindow],
  ['token-bucket', tokenBucket, inBucket],
  ['leaky-bucket', leakyBucket, inBucket],
]

/** Processes that count by different versions of one rule in one Redis, on one clock. */
class Processes {
  now = START
  readonly stores: RedisStore[] = []
  readonly #prefix = `versions${++round}`
  readonly #algorithm: string

  constructor(algorithm: string) {
    this.#algorithm = algorithm
  }

  start(): RedisStore {
    const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
      prefix: this.#prefix,
      now: () => this.now,
    })
    this.stores.push(store)
    return store
  }

  counter(store: RedisStore, meters: readonly Meter[], algorithm = this.#algorithm): RedisCounter {
    return store.createCounter({ id: 'rule', algorithm, enforced: true, meters })
  }

  async take(store: RedisStore, counter: RedisCounter, cost = 1, key = 'someone'): Promise<boolean> {
    return (await store.take([{ ...redisCharge(counter), key, cost }])).allowed
  }

  close(): void {
    for (const store of this.stores) store.close()
  }
}

const limits: readonly Limit[] = [
  { count: 10, periodMs: 1000 },
  { count: 100, periodMs: 3_600_000 },
  { count: 20, periodMs: 60_000 },
  { count: 7, periodMs: 10_000 },
]

describe.each(subjects)('versions of a %s side by side', (name, algorithm, allows) => {
  it('versions of a rule admit no more than the larger limit: 10/s and 100/h admit 310 at most in 30 s', async () => {
    const processes = new Processes(name)
    const counted = [limits[0]!, limits[1]!].map(limit => {
      const store = processes.start()
      return { store, counter: processes.counter(store, [algorithm.meter(limit, {})]) }
    })
    let admitted = 0
    for (let step = 0; step < 300; step++) {
      processes.now += 100_000
      for (const { store, counter } of counted) {
        for (let call = 0; call < 3; call++) if (await processes.take(store, counter)) admitted++
      }
    }
    processes.close()
    expect(admitted).toBeLessThanOrEqual(310)
    // the process with the larger limit can use it
    expect(admitted).toBeGreaterThan(250)
  })

  it('a call is admitted only if its version allows it, which counts the calls of all versions', async () => {
    const step = fc.record({
      who: fc.nat(2),
      passUs: fc.constantFrom(0, 0, 1, 30_000, 200_000, 1_100_000, 11_000_000),
      cost: fc.constantFrom(1, 1, 1, 2, 5),
      together: fc.constantFrom(1, 1, 3),
    })
    const walk = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })
    const versions = fc.shuffledSubarray([...limits], { minLength: 2, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(versions, walk, async (versions, steps) => {
        const processes = new Processes(name)
        const counted = versions.map(limit => {
          const store = processes.start()
          return { limit, store, counter: processes.counter(store, [algorithm.meter(limit, {})]) }
        })
        // all versions are known before the first call is counted
        for (const { store, counter } of counted) await processes.take(store, counter, 1, 'another')
        const calls: Call[] = []
        for (const { who, passUs, cost, together } of steps) {
          processes.now += passUs
          const { limit, store, counter } = counted[who % counted.length]!
          const asked = Array.from({ length: together }, () => processes.take(store, counter, cost))
          for (const isAdmitted of await Promise.all(asked)) {
            if (!isAdmitted) continue
            calls.push({ at: processes.now, cost, perUs: limit.count / (limit.periodMs * 1000) })
            expect(allows(limit, calls), JSON.stringify({ limit, calls })).toBe(true)
          }
        }
        processes.close()
      }),
      { numRuns: randomRuns(5), endOnFailure: true },
    )
  })
})

describe('versions of different algorithms side by side', () => {
  const pairs = subjects.flatMap(([one], i) => subjects.slice(i + 1).map(([other]) => [one, other] as const))

  it.each(pairs)('%s and %s admit no more than the larger limit', async (...names) => {
    const processes = new Processes('')
    const counted = names.map((name, i) => {
      const [, algorithm, allows] = subjects.find(subject => subject[0] === name)!
      const limit = limits[i]!
      const store = processes.start()
      return { store, limit, allows, counter: processes.counter(store, [algorithm.meter(limit, {})], name) }
    })
    for (const { store, counter } of counted) await processes.take(store, counter, 1, 'another')
    const calls: Call[] = []
    for (let step = 0; step < 60; step++) {
      processes.now += 500_000
      for (const { store, counter, limit, allows } of counted) {
        for (let call = 0; call < 8; call++) {
          if (!(await processes.take(store, counter))) break
          calls.push({ at: processes.now, cost: 1, perUs: limit.count / (limit.periodMs * 1000) })
          expect(allows(limit, calls)).toBe(true)
        }
      }
    }
    processes.close()
    expect(calls.length).toBeLessThanOrEqual(310)
    expect(calls.length).toBeGreaterThan(25)
  })
})

describe.each(subjects)('versions of a %s, while the clock steps and Redis is flushed', (name, algorithm, allows) => {
  it('versions of a rule never admit more than the limit since the last loss or step forward, and all of it after one period', async () => {
    const step = fc.record({
      what: fc.constantFrom('call', 'call', 'call', 'call', 'call', 'back', 'forward', 'flush'),
      who: fc.nat(1),
      passUs: fc.constantFrom(0, 1, 30_000, 400_000, 1_100_000),
      stepUs: fc.constantFrom(2_000_000, 90_000_000, 86_400_000_000),
    })
    const walk = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })
    await fc.assert(
      fc.asyncProperty(walk, async steps => {
        const processes = new Processes(name)
        const counted = [limits[0]!, limits[2]!].map(limit => {
          const store = processes.start()
          return { limit, store, counter: processes.counter(store, [algorithm.meter(limit, {})]) }
        })
        // the request of a process whose counts were lost is refused once, with that reason
        const take = ({ store, counter }: (typeof counted)[number], key?: string) =>
          processes.take(store, counter, 1, key).catch((error: unknown) => {
            expect(error).toBeInstanceOf(CountsLost)
            return false
          })
        const meet = async () => {
          for (const one of [...counted, ...counted]) await take(one, 'another')
        }
        await meet()
        let calls: Call[] = []
        for (const { what, who, passUs, stepUs } of steps) {
          processes.now += passUs
          const one = counted[who]!
          const { count, periodMs } = one.limit
          if (what === 'call' && (await take(one))) {
            calls.push({ at: processes.now, cost: 1, perUs: count / (periodMs * 1000) })
            expect(allows(one.limit, calls), JSON.stringify({ limit: one.limit, calls })).toBe(true)
          }
          if (what === 'back') {
            processes.now -= stepUs
            calls = calls.map(call => ({ ...call, at: call.at - stepUs }))
          } else if (what === 'forward') {
            processes.now += stepUs
          } else if (what === 'flush') {
            await server.client.flushall()
            calls = []
          }
          if (what !== 'call') await meet()
        }
        for (const one of counted) {
          processes.now += 61_000_000
          await meet()
          let admitted = 0
          while (await take(one)) admitted++
          expect(admitted).toBe(name === 'leaky-bucket' ? 1 : one.limit.count)
        }
        processes.close()
      }),
      { numRuns: randomRuns(4), endOnFailure: true },
    )
  })
})

describe.each(subjects)('a %s whose limit is changed to and fro', (name, algorithm) => {
  it('a rule whose limit is changed to and fro counts in Redis as in memory', async () => {
    const step = fc.record({
      what: fc.constantFrom('call', 'call', 'call', 'change', 'refund'),
      passUs: fc.constantFrom(0, 1, 30_000, 1_100_000, 40_000_000, 250_000_000),
      limit: fc.constantFrom(...limits),
      cost: fc.constantFrom(1, 1, 2, 5),
    })
    const walk = fc.array(step, { minLength: 10, maxLength: 60, size: 'max' })
    await fc.assert(
      fc.asyncProperty(walk, async steps => {
        const processes = new Processes(name)
        const [memory, store] = [new MemoryStore(), processes.start()]
        // one caller is never forgotten, and so neither are the versions
        const metersOf = (limit: Limit) =>
          [limit, { count: 100, periodMs: 36_000_000 }].map(one =>
            algorithm.meter(one, name === 'leaky-bucket' ? { burst: 5 } : {}),
          )
        let meters = metersOf(limits[0]!)
        const table = memory.createTable('rule', meters)
        let counter = processes.counter(store, meters)
        const take = async (key: string, cost: number) => {
          const local = { ...localCharge(table), key, cost }
          const shared = { ...redisCharge(counter), key, cost }
          const allowed = memory.take([local], 1, processes.now)
          const { now } = await store.take([shared])
          expect([shared.fits, shared.delays, shared.remaining]).toEqual([
            local.fits,
            local.delays,
            [...local.remaining],
          ])
          return allowed ? { key, cost, slot: local.slot, moment: now } : undefined
        }
        let last: Awaited<ReturnType<typeof take>>
        for (const { what, passUs, limit, cost } of steps) {
          await take('always', 1)
          processes.now += passUs
          if (what === 'call') last = (await take('someone', cost)) ?? last
          if (what === 'change') {
            meters = metersOf(limit)
            table.adopt(meters, processes.now, { keepsPast: true })
            counter = processes.counter(store, meters)
            await store.continued()
          }
          if (what === 'refund' && last) {
            refundLocal({ ...last, table, resetsBefore: resetsSoFar() }, processes.now, 'all')
            store.giveBack([{ ...last, counter }])
            await store.look([redisCharge(counter)])
            last = undefined
          }
        }
        processes.close()
      }),
      { numRuns: randomRuns(4), endOnFailure: true },
    )
  })
})

function sumOf(calls: readonly Call[]): number {
  return calls.reduce((sum, { cost }) => sum + cost, 0)
}
