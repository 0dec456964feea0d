import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blockMeter } from '../../algorithms/block.ts'
import { algorithms } from '../../algorithms/index.ts'
import { type RedisServer, startRedis } from '../../sources/servers/redis-server.ts'
import { FleetDouble } from '../fakes/fake-fleet.ts'
import { RedisStore } from '../redis/redis-store.ts'
import { fleetCharge } from '../store.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

const periods = [1000, 60_000, 3_600_000]
const step = fc.record({
  passMs: fc.constantFrom(0, 0, 70, 1500, 40_000),
  cost: fc.integer({ min: 0, max: 5 }),
  missed: fc.array(fc.record({ known: fc.integer({ min: 0, max: 30 }), missing: fc.integer({ min: 0, max: 12 }) }), {
    minLength: 3,
    maxLength: 3,
  }),
})

describe('a store that catches up', () => {
  const rated = algorithms.filter(({ limit, name }) => limit === 'rate' && name !== 'warm-up')
  it.each(rated.map(({ name }) => name))('counts for %s in Redis what it counts in this process', async name => {
    const algorithm = rated.find(one => one.name === name)!
    const meters = periods.map((periodMs, i) => algorithm.meter({ count: 5 * (i + 1), periodMs }, {}))
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async steps => {
        const here = new FleetDouble()
        const redis = new RedisStore(command => server.client.call(...(command as [string])), {
          prefix: `${name}${++round}`,
          now: () => here.now,
        })
        const rule = { id: 'rule', algorithm: name, enforced: true, meters }
        const counters = [here.createCounter(rule), redis.createCounter(rule)] as const
        for (const { passMs, cost, missed } of steps) {
          here.now += passMs * 1000
          const charges = counters.map(counter => Object.assign(fleetCharge(counter), { key: 'a', cost }))
          await Promise.all([here.take([charges[0]!]), redis.take([charges[1]!] as never)])
          expect(charges[1]!.remaining).toEqual(charges[0]!.remaining)
          const caughtUp = counters.map(counter => ({ counter, key: 'a', levels: missed, unfit: [] as number[] }))
          await Promise.all([here.catchUp(caughtUp[0]!), redis.catchUp(caughtUp[1]! as never)])
          expect(caughtUp[1]!.unfit).toEqual(caughtUp[0]!.unfit)
        }
        redis.close()
      }),
      { numRuns: 25 },
    )
  })

  it('sets a block again for as long as it was known to last, and never shortens one', async () => {
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
        const levels = [{ known: blockMeter.costLasting!(us), missing: 0 }]
        await store.catchUp({ counter, key: 'a', levels, unfit: [] } as never)
        expect(await left()).toBe(9_000_000)
      }
    }
    redis.close()
  })
})
