import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { LimitWalk, limitSubjects } from '../../testing/limit-walk.ts'
import { inMap, seededWalks } from '../../testing/seeded-walks.ts'
import { seen } from '../../testing/store-walk.ts'
import { LeasingStore } from '../../testing/stores/leasing-store.ts'
import { MapStore } from '../../testing/stores/map-store.ts'
import { sharedStoreSuite, timelineSuite } from '../../testing/stores/shared-store-suite.ts'
import { type FleetCounter, fleetCharge, type LeaseRequest } from '../store.ts'
import { LedgerStore } from './ledger-store.ts'

describe('the suite for stores, on ledgers in a map', () => {
  const create = async (now: () => number) => {
    const store = new LedgerStore(new MapStore(), { algorithms, now })
    return { store, close: async () => store.close() }
  }
  for (const { name, run } of [...timelineSuite({ create }), ...sharedStoreSuite({ create })]) it(name, run)
})

describe('memory and ledgers give equal answers', () => {
  const steps = randomRuns(3000)

  it.each([1, Date.now() % 1_000_000])(
    `to calls, refunds, reservations, resets, blocks and changed rules in ${steps} random steps, seed %i`,
    async seed => {
      const differences = await seededWalks({ ...inMap(), seed, steps })
      expect(differences).toEqual([])
    },
  )

  const die = fc.nat(20_000)
  const limit = fc.record({ count: fc.constantFrom(1, 2, 3, 5, 10, 20), periodMs: fc.constantFrom(1000, 7000, 60_000) })
  it.each([...limitSubjects.keys()])('if the limit of a caller changes from call to call: %s', async name => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(limit, { minLength: 2, maxLength: 5, selector: one => JSON.stringify(one) }),
        fc.nat(1),
        fc.array(fc.tuple(die, die, die, die), { minLength: 1, maxLength: 60, size: 'max' }),
        async (limits, others, steps) => {
          // memory and Redis continue windows of limits from outside as of different moments if their periods differ
          const isOnePeriod = new Set(limits.map(({ periodMs }) => periodMs)).size === 1
          const stated = limits.length - (isOnePeriod ? others : 0)
          const walk = new LimitWalk(name, inMap().create, 'walk', limits, stated)
          for (const step of steps) await walk.step(step)
          walk.assertBound()
          walk.close()
        },
      ),
      { numRuns: randomRuns(60) },
    )
  })
})

describe('permits that processes hold in advance', () => {
  const HOLDERS = ['a', 'b', 'c']
  const move = fc.record({
    what: fc.constantFrom('take', 'look', 'lease', 'lease', 'lease', 'repeat', 'giveBack'),
    holder: fc.nat(2),
    amount: fc.nat(30),
    wanted: fc.nat(40),
    us: fc.constantFrom(0, 1, 500, 10_000, 50_000, 200_000, 700_000, 1_600_000),
  })

  it.each([
    ['token-bucket', { burst: 200 }],
    ['sliding-window', {}],
    ['sliding-log', {}],
    ['fixed-window', {}],
  ])('leases are granted, reported and ended as in memory: %s', async (name, options) => {
    const algorithm = algorithms.find(one => one.name === name)!
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 60 }), async moves => {
        const memory = new LeasingStore()
        const ledgers = new MapStore()
        const rule = {
          id: 'r',
          algorithm: name,
          enforced: true,
          meters: [algorithm.meter({ count: 200, periodMs: 1000 }, options)],
        }
        const stores = HOLDERS.map(holder => new LedgerStore(ledgers, { algorithms, holder, now: () => memory.now }))
        const [counter, counters] = [memory.createCounter(rule), stores.map(store => store.createCounter(rule))]
        const taken: { cost: number; moment: number }[] = []
        const last: (Omit<LeaseRequest<FleetCounter>, 'counter'> | undefined)[] = []
        for (const [step, { what, holder, amount, wanted, us }] of moves.entries()) {
          memory.now += us
          const [store, own] = [stores[holder]!, counters[holder]!]
          const chargeOf = (one: FleetCounter) => ({
            ...fleetCharge(one),
            key: 'k',
            cost: 1 + (amount % 3),
            mayWait: false,
          })
          if (what === 'take' || what === 'look') {
            const [here, there] = [chargeOf(counter), chargeOf(own)]
            const [expected, answer] = [memory[what]([here]), await store[what]([there])]
            expect({ ...answer, ...seen(there) }).toEqual({ ...expected, ...seen(here) })
            if (what === 'take' && expected.allowed) taken.push({ cost: here.cost, moment: expected.now })
          } else if (what === 'giveBack') {
            const charged = taken.pop()
            if (charged === undefined) continue
            const refund = { key: 'k', ...charged }
            memory.giveBack([{ ...refund, counter }])
            store.giveBack([{ ...refund, counter: own }])
            // other processes do not wait for it
            await store.look([chargeOf(own)])
          } else {
            const use = {
              used: [{ amount: amount % 9, ageUs: amount * 1000 }],
              kept: amount % 5,
              needed: amount % 7,
              wanted,
            }
            const request = (what === 'repeat' && last[holder]) || { key: 'k', sequence: step + 1, ...use }
            last[holder] = request
            const expected = memory.lease(HOLDERS[holder]!, { ...request, counter })
            expect(await store.lease({ ...request, counter: own })).toEqual(expected)
          }
        }
        for (const store of stores) store.close()
      }),
      { numRuns: randomRuns(100) },
    )
  })
})
