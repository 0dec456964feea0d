import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { registerMetrics } from '../../packages/limiter/src/metrics/prom-client.ts'
import { mergeStats } from '../../packages/limiter/src/stats/stats.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'

const rules = [
  { id: 'hot', match: { path: '/hot' }, by: 'ip', limit: '1000/s', algorithm: 'token-bucket' },
  { id: 'off', match: { path: '/off' }, by: 'ip', limit: '1000/s', algorithm: 'token-bucket', lease: 'off' },
  { id: 'few', match: { path: '/few' }, limit: '1/h' },
] as const
const call = (path: string, ip = '203.0.113.1') => ({ method: 'GET', path, ip })

/** A limiter on a store that leases permits; its time stands still. */
async function join(store = new MapStore()): Promise<Limiter> {
  const limiter = await createLimiter({ store, rules, clock: () => 1_000_000 })
  onTestFinished(() => limiter.close())
  return limiter
}

async function check(limiter: Limiter, path: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await limiter.check(call(path))
}

const statsOf = (limiter: Limiter) => adminOf(limiter).stats().store!

describe('what is reported of leases', () => {
  it('each call is counted once: the store was asked, leases decided, or this process did', async () => {
    let transactions = 0
    class CountingStore extends MapStore {
      override async transact(...[keys, change]: Parameters<MapStore['transact']>): Promise<void> {
        if (keys.some(key => /^diana:(?:hot|off|few)/.test(key))) transactions++
        await super.transact(keys, change)
      }
    }
    const limiter = await join(new CountingStore())
    await check(limiter, '/hot', 100)
    await check(limiter, '/off', 30)
    await check(limiter, '/few', 5)
    const { asked, decidedHere, leases } = statsOf(limiter)
    expect(asked + decidedHere + leases.decided).toBe(135)
    // a call and a request for permits of one turn travel in one transaction
    expect(transactions).toBeLessThanOrEqual(asked + leases.requests)
    expect(transactions).toBeGreaterThanOrEqual(asked)
    // the first calls make a key hot; once the store has refused a key with nothing left, this process does
    expect(asked).toBeLessThan(20 + 30 + 2)
    expect(decidedHere).toBe(3)
  })

  it('a call that is refused since the store had no permits to lease is decided by this process', async () => {
    const limiter = await join()
    await check(limiter, '/hot', 1500)
    const before = statsOf(limiter)
    expect(before.asked + before.decidedHere + before.leases.decided).toBe(1500)
    await check(limiter, '/hot', 100)
    expect(adminOf(limiter).stats().total.refused).toBeGreaterThanOrEqual(600)
    const { asked, decidedHere, leases } = before
    expect(statsOf(limiter)).toMatchObject({
      asked,
      decidedHere: decidedHere + 100,
      leases: { decided: leases.decided },
    })
  })

  it('calls without the store are decided by this process', async () => {
    class FailingStore extends MapStore {
      override async transact(...[keys, change]: Parameters<MapStore['transact']>): Promise<void> {
        if (keys.some(key => key.startsWith('diana:hot'))) throw new Error('connect ECONNREFUSED')
        await super.transact(keys, change)
      }
    }
    const limiter = await join(new FailingStore())
    await check(limiter, '/hot', 20)
    expect(statsOf(limiter)).toMatchObject({ asked: 1, decidedHere: 19, leases: { decided: 0, permits: 0 } })
  })

  it('the status and the statistics have the permits that are held, by rule', async () => {
    const limiter = await join()
    await check(limiter, '/hot', 40)
    await check(limiter, '/off', 40)
    const { rules, store } = limiter.status()
    expect(store?.leases).toMatchObject({ keys: 1, permits: expect.any(Number) })
    const { permits } = store!.leases
    expect(permits).toBeGreaterThan(0)
    expect(rules.map(({ leased }) => leased)).toEqual([permits, undefined, undefined])
    const stats = adminOf(limiter).stats()
    expect(stats.rules.map(({ leased }) => leased)).toEqual([permits, undefined, undefined])
    expect(stats.store).toEqual({ asked: store!.asked, decidedHere: store!.decidedHere, leases: store!.leases })
  })

  it('the statistics of several processes are added up', async () => {
    const store = new MapStore()
    const limiters = [await join(store), await join(store)]
    for (const limiter of limiters) await check(limiter, '/hot', 40)
    const all = limiters.map(limiter => adminOf(limiter).stats())
    const merged = mergeStats([...all, mergeStats([])])
    const [one, other] = all.map(stats => stats.store!)
    expect(merged.store!.asked).toBe(one!.asked + other!.asked)
    expect(merged.store!.leases.keys).toBe(2)
    expect(merged.rules.map(({ leased }) => leased)).toEqual([merged.store!.leases.permits, undefined, undefined])
    expect(mergeStats([]).store).toBeUndefined()
  })

  it('an explanation has the permits of the key that are held, if there are any', async () => {
    const limiter = await join()
    await check(limiter, '/hot', 40)
    const [explained] = await limiter.explain(call('/hot'))
    expect(explained?.leased).toBe(limiter.status().store?.leases.permits)
    expect(adminOf(limiter).leasedFor(call('/hot'))).toEqual(new Map([['hot', explained?.leased]]))
    const others = [call('/hot', '203.0.113.2'), call('/off'), call('/few')]
    for (const other of others) expect((await limiter.explain(other))[0]).not.toHaveProperty('leased')
  })

  it('the metrics show how calls were decided, and what is held', async () => {
    const limiter = await join()
    await check(limiter, '/hot', 40)
    const registry = new Registry()
    registerMetrics(limiter, registry)
    const lines = (await registry.metrics()).split('\n').filter(line => /^diana_(store_dec|lease)/.test(line))
    const { asked, leases } = statsOf(limiter)
    expect(lines).toEqual([
      `diana_store_decisions_total{by="store"} ${asked}`,
      `diana_store_decisions_total{by="lease"} ${leases.decided}`,
      'diana_store_decisions_total{by="process"} 0',
      `diana_lease_requests_total ${leases.requests}`,
      'diana_leased_keys 1',
      `diana_leased_permits{rule="hot"} ${leases.permits}`,
    ])
  })

  it('without a store nothing is reported of leases', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/m' }] })
    onTestFinished(() => limiter.close())
    await limiter.check(call('/'))
    expect(adminOf(limiter).stats()).not.toHaveProperty('store')
    expect(limiter.status().rules[0]).not.toHaveProperty('leased')
    const registry = new Registry()
    registerMetrics(limiter, registry)
    expect(await registry.metrics()).not.toMatch(/^diana_(store_dec|lease)/m)
  })
})
