import { FleetDouble } from '@test/fleet/fake-fleet'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blockMeter } from '../algorithms/block.ts'
import { algorithms } from '../algorithms/index.ts'
import type { LevelCatchUp } from './catch-up.ts'
import { RedisStore } from './redis/redis-store.ts'
import { fleetCharge } from './store.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

const periods = [1000, 60_000, 3_600_000]
/** Moments as parts of the period, and how much of what is known and of what is missing is left at each. */
const laterPart = fc.tuple(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 0, max: 9 }),
  fc.integer({ min: 0, max: 5 }),
)
const missedLevel = fc.record({
  known: fc.integer({ min: 0, max: 30 }),
  missing: fc.integer({ min: 0, max: 12 }),
  parts: fc.array(laterPart, { maxLength: 5 }),
})
const step = fc.record({
  passMs: fc.constantFrom(0, 0, 70, 1500, 40_000),
  cost: fc.integer({ min: 0, max: 5 }),
  missed: fc.tuple(missedLevel, missedLevel, missedLevel),
})

function levelsOf(missed: readonly { known: number; missing: number; parts: [number, number, number][] }[]) {
  return missed.map(({ known, missing, parts }, level): LevelCatchUp => {
    const moments = parts.toSorted(([a], [b]) => a - b)
    const least = (place: 1 | 2, end: number) => Math.min(...moments.slice(0, end + 1).map(part => part[place]))
    const later = moments.map(([part], i) => {
      const afterUs = (part * periods[level]! * 1000) / 20
      return { afterUs, known: Math.min(known, least(1, i)), missing: Math.min(missing, least(2, i)) }
    })
    return { known, missing, later }
  })
}

describe('a store that catches up', () => {
  const rated = algorithms.filter(({ limit, name }) => limit === 'rate' && name !== 'warm-up')
  const cases = [...rated.map(({ name }) => [name, {}] as const), ['fixed-window', { align: 'first-call' }] as const]
  it.each(cases)('a store that catches up counts for %s %j in Redis as in this process', async (name, options) => {
    const algorithm = rated.find(one => one.name === name)!
    const meters = periods.map((periodMs, i) => algorithm.meter({ count: 5 * (i + 1), periodMs }, options))
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async steps => {
        const here = new FleetDouble()
        const redis = new RedisStore(command => server.client.call(...(command as [string])), {
          prefix: `${name}${Object.keys(options)}${++round}`,
          now: () => here.now,
        })
        const rule = { id: 'rule', algorithm: name, enforced: true, meters }
        const counters = [here.createCounter(rule), redis.createCounter(rule)] as const
        for (const { passMs, cost, missed } of steps) {
          here.now += passMs * 1000
          const charges = counters.map(counter => Object.assign(fleetCharge(counter), { key: 'a', cost }))
          await Promise.all([here.take([charges[0]!]), redis.take([charges[1]!] as never)])
          expect(charges[1]!.remaining).toEqual(charges[0]!.remaining)
          const caughtUp = counters.map(counter => ({
            counter,
            key: 'a',
            levels: levelsOf(missed),
            unfit: [] as number[],
          }))
          await Promise.all([here.catchUp(caughtUp[0]!), redis.catchUp(caughtUp[1]! as never)])
          expect(caughtUp[1]!.unfit).toEqual(caughtUp[0]!.unfit)
          await Promise.all([here.look([charges[0]!]), redis.look([charges[1]!] as never)])
          expect(charges[1]!.remaining).toEqual(charges[0]!.remaining)
          expect(charges[1]!.resets).toEqual(charges[0]!.resets)
        }
        redis.close()
      }),
      { numRuns: 25 },
    )
  })

  it('a store that catches up sets a block again for as long as it was known to last, and never shortens one', async () => {
    const here = new FleetDouble()
    const redis = new RedisStore(command => server.client.call(...(command as [string])), { now: () => here.now })
    const rule = { id: 'rule', algorithm: '*block', enforced: true, meters: [blockMeter] }
    for (const store of [here, redis]) {
      const counter = store.createCounter(rule)
      const left = async () => {
        const charge = Object.assign(fleetCharge(counter), { key: 'a', cost: 0 })
        await store.look([charge] as never)
        return charge.delays[0]
      }
      for (const us of [9_000_000, 4_000_000]) {
        const levels = [{ known: blockMeter.costLasting(us), missing: 0 }]
        await store.catchUp({ counter, key: 'a', levels, unfit: [] } as never)
        expect(await left()).toBe(9_000_000)
      }
    }
    redis.close()
  })
})
