import { randomRuns } from '@test/random-runs'
import { createLimiter } from 'diana-limiter'
import type { FleetCharge } from 'diana-limiter/store'
import { algorithmSuite, dimensionSuite, storeSuite } from 'diana-limiter/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from './helpers/servers/redis-server.ts'

vi.spyOn(console, 'log').mockImplementation(() => {})
const { localDay } = await import('./docs/own-algorithm.ts')
const { segment } = await import('./docs/own-dimension.ts')
const { MapStore } = await import('./docs/own-store.ts')
vi.restoreAllMocks()

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

describe('the extensions of docs/extending.md pass the published suites', () => {
  const tests = [
    ...algorithmSuite({
      algorithm: localDay,
      rules: [{ limit: '10/d' }, { limit: '3/7d', utcOffset: 8 }],
      sendToRedis: ([command, ...args]) => server.client.call(command!, ...args),
      walks: randomRuns(8),
    }),
    ...dimensionSuite({
      dimension: segment,
      arguments: ['0', '2', '-1'],
      values: [{ call: { method: 'GET', path: '/tenants/acme' }, argument: '2', value: 'acme' }],
    }),
    ...storeSuite({ create: async now => ({ store: new MapStore(new Map(), now), close: async () => {} }) }),
  ]
  for (const { name, run } of tests) it(name, run)
})

describe('a custom store', () => {
  const rules = [{ id: 'per-address', by: 'ip', limit: '2/h' }]
  const call = { method: 'GET', path: '/', ip: '203.0.113.9' }

  it('a custom store counts for all limiters that share it, by any algorithm', async () => {
    const rows = new Map()
    const limiters = await Promise.all(
      [1, 2].map(() => createLimiter({ rules, store: { custom: new MapStore(rows), fleet: 2 } })),
    )
    const allowed: boolean[] = []
    for (const limiter of [...limiters, ...limiters]) allowed.push((await limiter.check(call)).allowed)
    expect(allowed).toEqual([true, true, false, false])
    expect(limiters[0]!.status().store?.healthy).toBe(true)
    for (const limiter of limiters) await limiter.close()
  })

  it('a custom store that fails is replaced by counting in this process', async () => {
    const custom = new MapStore(new Map())
    const limiter = await createLimiter({ rules, store: { custom } })
    limiter.events.on('store', () => {})
    custom.take = async () => {
      throw new Error('the database is gone')
    }
    const allowed: boolean[] = []
    for (let i = 0; i < 3; i++) allowed.push((await limiter.check(call)).allowed)
    expect(allowed).toEqual([true, true, false])
    expect(limiter.status().store?.healthy).toBe(false)
    await limiter.close()
  })

  it('a custom store that lacks methods is rejected with their names', async () => {
    const { take } = new MapStore(new Map())
    await expect(createLimiter({ rules, store: { custom: { take } as never } })).rejects.toThrow(
      'store.custom lacks createCounter, look, giveBack, refund, catchUp, keys, reset, close: give an object with the methods of SharedStore',
    )
  })
})

describe('the suites fail', () => {
  const failures = async (tests: readonly { name: string; run(): Promise<void> }[]): Promise<string[]> => {
    const failed = await Promise.all(
      tests.map(({ name, run }) =>
        run().then(
          () => '',
          () => name,
        ),
      ),
    )
    return failed.filter(name => name !== '').map(name => name.replace(/.*: /, ''))
  }

  it('algorithmSuite fails for an algorithm that refunds too much, or whose Lua differs', async () => {
    const generous = {
      ...localDay,
      meter: (...args: Parameters<typeof localDay.meter>) => {
        const meter = localDay.meter(...args)
        const { lua, numbers } = meter.redis!
        const text = lua.lua.replace('max(0, meter.count', 'max(1, meter.count')
        const redis = { lua: { name: 'generous', lua: text }, numbers }
        return { ...meter, redis, refund: (state: Float64Array, at: number) => void state.fill(0, at, at + 2) }
      },
    }
    const sendToRedis = ([command, ...args]: readonly string[]) => server.client.call(command!, ...args)
    const tests = algorithmSuite({ algorithm: generous, rules: [{ limit: '3/d' }], sendToRedis, walks: 10 })
    expect(await failures(tests)).toEqual([
      'a refund frees at most what the call took',
      'Redis and memory give the same answers',
    ])
  })

  it('storeSuite fails for a store that counts refused calls', async () => {
    class Charging extends MapStore {
      override async look(charges: readonly FleetCharge[]) {
        return await this.take(charges)
      }
    }
    const create = async (now: () => number) => ({ store: new Charging(new Map(), now), close: async () => {} })
    expect((await failures(storeSuite({ create }))).length).toBeGreaterThan(3)
  })

  it('dimensionSuite fails for a dimension that throws', async () => {
    const dimension = { ...segment, read: ({ headers }: { headers?: unknown }) => String((headers as { a: string }).a) }
    const values = [{ call: { method: 'GET', path: '/', headers: { a: 'b' } }, value: 'b' }]
    expect((await failures(dimensionSuite({ dimension, values }))).length).toBeGreaterThan(1)
  })
})
