import { setTimeout as pause } from 'node:timers/promises'
import { FleetDouble } from '@test/fleet/fake-fleet'
import { afterEach, describe, expect, it } from 'vitest'
import type { Part } from '../../algorithms/algorithm.ts'
import { algorithms } from '../../algorithms/index.ts'
import { partMeter } from '../../algorithms/part.ts'
import type { Membership, MembershipRegistry } from '../membership/registry.ts'
import { MemoryStore } from '../memory/memory-store.ts'
import { sharedCharge, type WhenStoreDown } from '../shared-charge.ts'
import { FailoverStore } from './failover-store.ts'
import type { StoreStatus } from './store-health.ts'

const members: FailoverStore[] = []
afterEach(async () => {
  for (const member of members.splice(0)) await member.close()
})

interface Words {
  readonly algorithm?: string
  readonly count?: number
  readonly periodMs?: number
  readonly emergency?: WhenStoreDown
  readonly options?: Readonly<Record<string, unknown>>
  readonly registry?: MembershipRegistry
}

/** A roll that everybody reads alike, as long as the store can be asked. */
function registryOf(fleet: FleetDouble, rank: number, size: number): MembershipRegistry {
  return {
    async register(): Promise<Membership> {
      await fleet.before()
      return { era: 'one', size, rank, heard: size, back: size }
    },
    leave: async () => {},
  }
}

/** One process of a fleet, with one rule. */
async function join(fleet: FleetDouble, { rank = 0, size = 1 }: Partial<Part> = {}, words: Words = {}) {
  const {
    algorithm: name = 'sliding-window',
    count = 10,
    periodMs = 3_600_000,
    emergency = 'share',
    options = {},
    registry = registryOf(fleet, rank, size),
  } = words
  const algorithm = algorithms.find(candidate => candidate.name === name)!
  const terms = { limit: { count, periodMs }, options }
  const meters = [algorithm.meter(terms.limit, options)]
  const memory = new MemoryStore()
  const table = memory.createTable('rule', meters)
  const counter = fleet.createCounter({ id: 'rule', meters, algorithm: name, enforced: true })
  const told: StoreStatus[] = []
  const store = new FailoverStore(fleet, memory, {
    timeoutMs: 20,
    registry,
    now: () => fleet.now,
    rules: () => ['rule'],
    onPart: part => emergency === 'share' && table.adopt([partMeter(algorithm, terms, part)], fleet.now),
    onChange: status => told.push(status),
  })
  members.push(store)
  await store.start()
  const charge = (cost = 1) => Object.assign(sharedCharge(counter, table, emergency), { key: 'a', cost })
  const take = async (cost?: number) => await store.take([charge(cost)], fleet.now)
  const admitted = async (calls: number) => {
    let sum = 0
    for (let i = 0; i < calls; i++) if (await take()) sum++
    return sum
  }
  return {
    store,
    told,
    charge,
    take,
    admitted,
    counter,
    back: () => expect.poll(() => store.status.healthy).toBe(true),
  }
}

const refuse = async () => {
  throw new Error('connect ECONNREFUSED')
}
const hang = () => new Promise<void>(() => {})

describe('a store that the fleet shares', () => {
  it('a process counts by itself at once when no store is there, reports it once, and returns to the store', async () => {
    const fleet = new FleetDouble()
    const { store, told, admitted, back } = await join(fleet)
    fleet.before = refuse
    expect(await admitted(15)).toBe(10)
    expect(fleet.asked).toBe(1)
    expect(store.status).toMatchObject({
      healthy: false,
      kind: 'down',
      trouble: 'connect ECONNREFUSED',
      rules: ['rule'],
    })
    fleet.before = async () => {}
    await back()
    expect(told.map(({ healthy }) => healthy)).toEqual([false, true])
    expect(store.status.outages).toMatchObject([{ calls: 15, under: 5, over: 0, kind: 'down' }])
    expect(store.status.rules).toEqual([])
  })

  it('an outage grants no second burst: permits used before it stay used', async () => {
    const fleet = new FleetDouble()
    const { admitted } = await join(fleet)
    expect(await admitted(7)).toBe(7)
    fleet.before = refuse
    expect(await admitted(9)).toBe(3)
  })

  it('a caller of a bucket that starts empty keeps the permits saved up before the outage', async () => {
    const fleet = new FleetDouble()
    const words = { algorithm: 'token-bucket', periodMs: 1000, options: { start: 'empty' } }
    const { admitted } = await join(fleet, {}, words)
    expect(await admitted(1)).toBe(0)
    fleet.now += 2_000_000
    expect(await admitted(3)).toBe(3)
    fleet.before = refuse
    expect(await admitted(9)).toBe(7)
  })

  it.each(['clock', 'first-call'])(
    'takes its share of a fixed window with align: %s that began before its first call here',
    async align => {
      const fleet = new FleetDouble()
      const words = { algorithm: 'fixed-window', count: 40, periodMs: 60_000, options: { align } }
      const { admitted, charge } = await join(fleet, { rank: 0, size: 2 }, words)
      await fleet.take([charge(10)])
      fleet.now += 1_000_000
      expect(await admitted(3)).toBe(3)
      fleet.before = refuse
      expect(await admitted(9)).toBe(9)
    },
  )

  it('no report is counted twice if the store is empty and does not answer that this process is back', async () => {
    const fleet = new FleetDouble()
    let failures = 0
    const registry: MembershipRegistry = {
      era: async () => String(fleet.era),
      async register({ isBack }): Promise<Membership> {
        await fleet.before()
        if (isBack && failures-- > 0) throw new Error('read ECONNRESET')
        return { era: String(fleet.era), size: 1, rank: 0, heard: 1, back: 1 }
      },
      leave: async () => {},
    }
    const { admitted, back, counter } = await join(fleet, {}, { registry })
    expect(await admitted(2)).toBe(2)
    fleet.before = refuse
    expect(await admitted(3)).toBe(3)
    fleet.forget()
    failures = 4
    fleet.before = async () => {}
    await back()
    expect(fleet.left(counter, 'a')).toBe(5)
  })

  it('calls admitted without the store are counted in it afterwards', async () => {
    const fleet = new FleetDouble()
    const { admitted, counter, back } = await join(fleet)
    await admitted(2)
    fleet.before = refuse
    expect(await admitted(3)).toBe(3)
    expect(fleet.left(counter, 'a')).toBe(8)
    fleet.before = async () => {}
    await back()
    expect(fleet.left(counter, 'a')).toBe(5)
    expect(await admitted(9)).toBe(5)
  })

  it.each([
    ['sliding-window', 10, 3],
    ['fixed-window', 11, 4],
    ['token-bucket', 10, 3],
    ['sliding-log', 2, 5],
    ['sliding-window', 100, 7],
  ])('%s of %i is never exceeded by %i processes, before, in and after an outage', async (algorithm, count, size) => {
    const fleet = new FleetDouble()
    const words = { algorithm, count }
    const fleetOf = Array.from({ length: size }, (_, rank) => join(fleet, { rank, size }, words))
    const all = await Promise.all(fleetOf)
    let admitted = await all[0]!.admitted(Math.floor(count / 3))
    // everybody has asked about the key, and knows what is left
    for (const one of [...all, ...all]) admitted += await one.admitted(1)
    fleet.before = refuse
    for (const one of all) admitted += await one.admitted(count)
    expect(admitted).toBeLessThanOrEqual(count)
    fleet.before = async () => {}
    await Promise.all(all.map(one => one.back()))
    for (const one of all) admitted += await one.admitted(count)
    expect(admitted).toBe(count)
  })

  it('a call waits for a silent store until its deadline at most, and after 20 calls not at all', async () => {
    const fleet = new FleetDouble()
    const { take, store } = await join(fleet)
    await take()
    fleet.before = hang
    const since = performance.now()
    const waiting = Array.from({ length: 25 }, () => take(0))
    await Promise.all(waiting)
    await pause(25)
    while (store.status.healthy) await take(0)
    expect(performance.now() - since).toBeLessThan(3000)
    const asked = fleet.asked
    await Promise.all(Array.from({ length: 100 }, () => take(0)))
    expect(fleet.asked).toBe(asked)
  })

  it('the count of a late answer is kept if the call has passed, and refunded if not', async () => {
    const fleet = new FleetDouble()
    const { take, counter } = await join(fleet, {}, { count: 3 })
    const open: (() => void)[] = []
    fleet.before = () => new Promise(resolve => open.push(resolve))
    expect(await Promise.all([take(2), take(2)])).toEqual([true, false])
    fleet.before = async () => {}
    for (const resolve of open) resolve()
    await pause(300)
    expect(fleet.left(counter, 'a')).toBe(1)
  })

  it('the count of a late answer is refunded if the call was refused meanwhile', async () => {
    const fleet = new FleetDouble()
    const { take, counter } = await join(fleet, { rank: 1, size: 2 }, { count: 1 })
    let open = () => {}
    fleet.before = () => new Promise(resolve => (open = resolve))
    expect(await take()).toBe(false)
    fleet.before = async () => {}
    open()
    await pause(10)
    expect(fleet.asked).toBe(1)
    expect(fleet.left(counter, 'a')).toBe(1)
  })

  it('the store is asked only once about a key that has nothing left, until the key is reset', async () => {
    const fleet = new FleetDouble()
    const { store, admitted, take, counter } = await join(fleet)
    await admitted(11)
    const asked = fleet.asked
    expect(await admitted(50)).toBe(0)
    expect(fleet.asked).toBe(asked)
    await store.reset(counter, 'a')
    expect(await take()).toBe(true)
  })

  it.each([
    ['allow', [true, true]],
    ['refuse', [false, false]],
    ['local', [true, false]],
  ] as const)('does without the store as a rule says: %s', async (emergency, allowed) => {
    const fleet = new FleetDouble()
    const { take } = await join(fleet, { rank: 1, size: 2 }, { count: 1, emergency })
    fleet.before = refuse
    expect([await take(), await take()]).toEqual(allowed)
  })

  it('slots of calls under way move with the counts, and are released where they are held at the end', async () => {
    const fleet = new FleetDouble()
    const { store, charge, counter, back } = await join(fleet, {}, { algorithm: 'concurrency', count: 3, periodMs: 0 })
    const [before, meanwhile] = [charge(), charge()]
    await store.take([before], fleet.now)
    fleet.before = refuse
    expect(await store.take([meanwhile], fleet.now)).toBe(true)
    expect(await store.take([charge(2)], fleet.now)).toBe(false)
    fleet.before = async () => {}
    await back()
    expect(fleet.left(counter, 'a')).toBe(1)
    for (const one of [before, meanwhile]) store.giveBack(one, 1)
    expect(fleet.left(counter, 'a')).toBe(3)
    fleet.before = refuse
    expect(await store.take([charge(3)], fleet.now)).toBe(true)
  })

  it('a store that has lost its counts gets them from the processes, though it can be asked', async () => {
    const fleet = new FleetDouble()
    const { admitted, back, counter, store } = await join(fleet)
    expect(await admitted(7)).toBe(7)
    fleet.forget()
    fleet.watcher!.countsLost()
    expect(store.status).toMatchObject({ healthy: false, kind: 'lost' })
    await back()
    expect(fleet.left(counter, 'a')).toBe(3)
  })

  it('the status reports that the clock of the store has stepped', async () => {
    const fleet = new FleetDouble()
    const { store } = await join(fleet)
    fleet.watcher!.clockStepped(-3_600_000)
    expect(store.status).toMatchObject({ healthy: true, clockSteps: [{ byMs: -3_600_000 }] })
  })

  it('a start without the store is like an outage that began before', async () => {
    const fleet = new FleetDouble()
    fleet.before = refuse
    const { store, admitted } = await join(fleet)
    expect(store.status).toMatchObject({ healthy: false, fleet: { size: 1, known: false } })
    expect(await admitted(20)).toBe(10)
  })

  it('one kind of answer does not open the breaker: a bug in a script counts as one failure among others', async () => {
    const fleet = new FleetDouble()
    const { store, take } = await join(fleet)
    fleet.before = async () => {
      throw new Error('WRONGTYPE Operation against a key')
    }
    expect(await take()).toBe(true)
    expect(store.status.healthy).toBe(true)
  })
})
