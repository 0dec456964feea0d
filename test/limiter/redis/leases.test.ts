import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { algorithms } from '../../../packages/limiter/src/algorithms/index.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import type { LeaseRequest } from '../../../packages/limiter/src/stores/store.ts'
import {
  type FleetCounter,
  type FleetRule,
  fleetCharge,
  type SharedStore,
} from '../../../packages/limiter/src/stores/store.ts'
import { LeasingStore } from '../../../packages/limiter/src/testing/stores/leasing-store.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

const START = 20_772 * 86_400_000_000
let prefixes = 0

function ruleOf(algorithm: string, limits: readonly [count: number, periodMs: number][]): FleetRule {
  const meters = limits.map(([count, periodMs]) => {
    const options = algorithm === 'token-bucket' ? { burst: count } : {}
    return algorithms.find(({ name }) => name === algorithm)!.meter({ count, periodMs }, options)
  })
  return { id: 'rule', meters, algorithm, enforced: true }
}

/** The same moves on Redis, by several processes, and on the store in TypeScript, and what each answered. */
class Pair {
  readonly #twin = new LeasingStore()
  readonly #stores: RedisStore[]
  readonly #counters: FleetCounter[]
  readonly #twinCounter: FleetCounter
  now = START

  constructor(rule: FleetRule) {
    const prefix = `walk${prefixes++}`
    const send = ([command, ...args]: readonly string[]) => server.client.call(command!, ...args)
    this.#stores = [0, 1, 2].map(() => new RedisStore(send, { prefix, now: () => this.now }))
    this.#counters = this.#stores.map(store => store.createCounter(rule as never))
    this.#twinCounter = this.#twin.createCounter(rule)
  }

  async take(place: number, cost: number, key: string): Promise<void> {
    const charge = Object.assign(fleetCharge(this.#counters[place]!), { key, cost, mayWait: false })
    const other = Object.assign(fleetCharge(this.#twinCounter), { key, cost, mayWait: false })
    const { allowed } = await (this.#stores[place] as SharedStore).take([charge])
    this.#twin.now = this.now
    const same = this.#twin.take([other])
    const { delays, remaining, resets, fits } = charge
    expect({ allowed, delays, remaining, resets, fits }).toEqual({
      ...{ allowed: same.allowed, delays: other.delays },
      ...{ remaining: other.remaining, resets: other.resets, fits: other.fits },
    })
  }

  async lease(
    place: number,
    request: Omit<LeaseRequest<FleetCounter>, 'counter'>,
  ): Promise<{ amount: number; lastsUs: number }> {
    const answer = await this.#stores[place]!.lease({ ...request, counter: this.#counters[place]! })
    this.#twin.now = this.now
    expect(answer).toEqual(this.#twin.lease(String(place), { ...request, counter: this.#twinCounter }))
    return answer
  }

  async reset(place: number, key: string): Promise<void> {
    await this.#stores[place]!.reset(this.#counters[place] as never, key)
    this.#twin.now = this.now
    this.#twin.reset(this.#twinCounter, key)
  }

  close(): void {
    for (const store of this.#stores) store.close()
  }
}

const move = fc.record({
  what: fc.constantFrom('take', 'take', 'report', 'report', 'report', 'repeat', 'reset'),
  place: fc.integer({ min: 0, max: 2 }),
  key: fc.constantFrom('one', 'other'),
  amount: fc.integer({ min: 0, max: 30 }),
  kept: fc.integer({ min: 0, max: 30 }),
  needed: fc.constantFrom(0, 0, 1, 5, 150),
  wanted: fc.integer({ min: 0, max: 40 }),
  ageUs: fc.constantFrom(0, 100, 3000, 20_000),
  us: fc.constantFrom(0, 1, 500, 10_000, 50_000, 200_000, 700_000, 1_600_000),
})

describe('permits that processes hold in Redis', () => {
  it.each<[string, [number, number][]]>([
    ['token-bucket', [[200, 1000]]],
    ['sliding-window', [[200, 1000]]],
    ['sliding-log', [[100, 1000]]],
    ['fixed-window', [[200, 1000]]],
    [
      'fixed-window',
      [
        [200, 1000],
        [1000, 60_000],
      ],
    ],
    [
      'sliding-window',
      [
        [200, 1000],
        [1000, 60_000],
      ],
    ],
    ['leaky-bucket', [[200, 1000]]],
  ])('%s %j: Redis answers as the store in TypeScript does', async (algorithm, limits) => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 60 }), async moves => {
        const pair = new Pair(ruleOf(algorithm, limits))
        let sequence = 0
        const last = new Map<string, Omit<LeaseRequest<FleetCounter>, 'counter'>>()
        for (const { what, place, key, amount, kept, needed, wanted, ageUs, us } of moves) {
          pair.now += us
          const before = last.get(`${place} ${key}`)
          if (what === 'take') await pair.take(place, amount % 4, key)
          else if (what === 'reset') await pair.reset(place, key)
          else if (what === 'repeat' && before) await pair.lease(place, before)
          else if (what === 'report') {
            const used = [
              { amount: Math.floor(amount / 2), ageUs },
              { amount: Math.ceil(amount / 2), ageUs: 0 },
            ]
            const request = { key, sequence: ++sequence, used, kept, needed, wanted }
            last.set(`${place} ${key}`, request)
            await pair.lease(place, request)
          }
        }
        pair.close()
      }),
      { numRuns: randomRuns(30) },
    )
  })
})
