import type { LookupAddress } from 'node:dns'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { parseGatewaySettings } from '../settings/gateway-settings.ts'
import { Pool } from './pool.ts'
import { Upstreams } from './upstreams.ts'

afterEach(() => void vi.useRealTimers())

const poolsOf = (upstreams: Upstreams, ...routes: object[]): Pool[] =>
  parseGatewaySettings({ routes }).routes.map(settings => new Pool(settings, upstreams))

const newSince = ([pool]: readonly Pool[]) =>
  pool!.upstreams.map(({ name, health }) => [name.replace('http://', ''), health.healthySince])

const long = Number.NEGATIVE_INFINITY

describe('addresses of services', () => {
  test('addresses of services are new when a reload adds them, and not at the first start', () => {
    const upstreams = new Upstreams()
    const first = poolsOf(upstreams, { to: ['http://10.0.0.1', 'http://10.0.0.2'] })
    upstreams.use(first, 1000)
    expect(newSince(first)).toEqual([
      ['10.0.0.1', long],
      ['10.0.0.2', long],
    ])
    const second = poolsOf(upstreams, { to: ['http://10.0.0.2', 'http://10.0.0.3'] })
    upstreams.use(second, 5000)
    expect(newSince(second)).toEqual([
      ['10.0.0.2', long],
      ['10.0.0.3', 5000],
    ])
    // the same connections, slots and health
    expect(second[0]!.upstreams[0]).toBe(first[0]!.upstreams[1])
  })

  test('addresses of services are new when a name gains them, and not at its first answer', async () => {
    vi.useFakeTimers()
    let addresses = ['10.0.0.1', '10.0.0.2']
    const lookup = async () => addresses.map((address): LookupAddress => ({ address, family: 4 }))
    const upstreams = new Upstreams({ lookup })
    const pools = poolsOf(upstreams, { to: 'http://app.test' })
    upstreams.use(pools, 0)
    expect(newSince(pools)).toEqual([['app.test', long]])
    await vi.advanceTimersByTimeAsync(0)
    expect(newSince(pools)).toEqual([
      ['app.test at 10.0.0.1', long],
      ['app.test at 10.0.0.2', long],
    ])
    const kept = pools[0]!.upstreams[1]
    addresses = ['10.0.0.2', '10.0.0.3']
    await vi.advanceTimersByTimeAsync(6000)
    expect(newSince(pools)).toEqual([
      ['app.test at 10.0.0.2', long],
      ['app.test at 10.0.0.3', expect.any(Number)],
    ])
    expect(newSince(pools)[1]![1]).toBeGreaterThan(0)
    expect(pools[0]!.upstreams[0]).toBe(kept)
    await upstreams.close()
  })

  test('addresses of services are shared by routes with the same settings, and let go when no route has them', async () => {
    const upstreams = new Upstreams()
    const both = poolsOf(upstreams, { path: '/a', to: 'http://10.0.0.1' }, { path: '/b', to: 'http://10.0.0.1' })
    upstreams.use(both, 0)
    const [one] = both[0]!.upstreams
    expect(both[1]!.upstreams[0]).toBe(one)
    upstreams.use(poolsOf(upstreams, { to: 'http://10.0.0.2' }), 0)
    const back = poolsOf(upstreams, { to: 'http://10.0.0.1' })
    upstreams.use(back, 0)
    expect(back[0]!.upstreams[0]).not.toBe(one)
    await upstreams.close()
  })

  test('an address that a reload took out of its route is reported as draining until its last call has ended', async () => {
    const upstreams = new Upstreams()
    const before = poolsOf(upstreams, { path: '/a', to: ['http://10.0.0.1', 'http://10.0.0.2'] })
    upstreams.use(before, 0)
    const gone = before[0]!.upstreams[1]!
    const call = { onSlot() {}, onNoSlot() {}, stalledMs: () => 0, evict() {} }
    gone.slots.take(call)
    gone.traffic.addRetry(before[0]!.id, 5)
    upstreams.use(poolsOf(upstreams, { path: '/a', to: 'http://10.0.0.1' }, { to: 'http://10.0.0.1' }), 10)
    const states = () => upstreams.report(20).map(({ addresses }) => addresses.map(({ state }) => state))
    expect(states()).toEqual([['healthy', 'draining'], ['healthy']])
    gone.slots.release(call)
    expect(states()).toEqual([['healthy'], ['healthy']])
    await upstreams.close()
  })

  test('routes of which addresses get no calls are reported, and samples are those of calls lately', async () => {
    const upstreams = new Upstreams()
    const to = ['http://10.0.0.1', 'http://10.0.0.2']
    const pools = poolsOf(upstreams, { host: 'a.test', path: '/a', to, health: { failures: 1 } }, { to })
    upstreams.use(pools, 0)
    expect(upstreams.troubles(0)).toEqual([])
    pools[0]!.upstreams[0]!.health.fail(0, 'status 503')
    const { id } = pools[0]!
    expect(upstreams.troubles(1)).toEqual([{ id, route: 'a.test/a', unhealthy: 1, of: 2 }])
    pools[0]!.upstreams[1]!.traffic.addFailedTry(id, 5)
    expect(upstreams.traffic(10)).toMatchObject([{ route: id, address: to[1], calls: 1, errors: 1, ageMs: 5 }])
    expect(upstreams.traffic(400_000)).toEqual([])
    await upstreams.close()
  })
})
