import { FleetDouble } from '@test/fleet/fake-fleet'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { partMeter, WHOLE } from '../../algorithms/part.ts'
import { MemoryStore } from '../memory/memory-store.ts'
import { sharedCharge } from '../shared-charge.ts'
import { Backlog } from './backlog.ts'
import { LocalFallback } from './local-fallback.ts'

function start(name: string, count: number, fleet = { hasShare: true, isAlone: true }) {
  const algorithm = algorithms.find(candidate => candidate.name === name)!
  const terms = { limit: { count, periodMs: 3_600_000 }, options: {} }
  const meters = [algorithm.meter(terms.limit, {})]
  const memory = new MemoryStore()
  const table = memory.createTable('rule', meters)
  const store = new FleetDouble()
  const counter = store.createCounter({ id: 'rule', meters, algorithm: name, enforced: true })
  const backlog = new Backlog()
  const fallback = new LocalFallback(memory, backlog, fleet)
  const charge = (key: string) => Object.assign(sharedCharge(counter, table, 'share'), { key, cost: 1 })
  const take = (key: string) => {
    const asked = charge(key)
    const before = backlog.stateBefore(asked)
    const isAdmitted = fallback.take([asked], store.now)
    if (isAdmitted) backlog.add(asked, before)
    return isAdmitted
  }
  return {
    charge,
    /** The store was asked once, and said so much is left. */
    hear(key: string, left: number): void {
      const asked = charge(key)
      asked.remaining[0] = left
      fallback.follow([asked], true, false, store.now)
    },
    admitted(key: string): number {
      let sum = 0
      while (take(key)) sum++
      return sum
    },
    share(size: number): void {
      table.adopt([partMeter(algorithm, terms, size === 1 ? WHOLE : { rank: 0, size })], store.now)
    },
    fallback,
    store,
  }
}

describe('counting in this process while the store cannot be asked', () => {
  it.each(['sliding-window', 'fixed-window', 'sliding-log', 'token-bucket'])(
    '%s: a share that has become larger is no more than that of what the store had left',
    name => {
      const { hear, share, admitted, fallback, store } = start(name, 100)
      share(2)
      hear('ann', 9)
      hear('bob', 100)
      share(1)
      fallback.reshare(store.now)
      expect(admitted('ann')).toBeLessThanOrEqual(9)
      expect(admitted('bob')).toBeGreaterThanOrEqual(90)
    },
  )

  it.each(['sliding-window', 'sliding-log'])(
    '%s: permits that this process gave up long ago are not free while those of others are recent',
    name => {
      const { hear, share, admitted, store } = start(name, 120)
      const second = 3_600_000_000
      share(3)
      hear('ann', 0)
      store.now += 0.6 * second
      // older calls are forgotten, and others have called meanwhile
      hear('ann', 60)
      store.now += 0.1 * second
      hear('ann', 0)
      store.now += 0.35 * second
      // of all calls that the store had counted, only the first of this process has surely left
      expect(admitted('ann')).toBe(1)
      store.now += 0.6 * second
      expect(admitted('ann')).toBeLessThanOrEqual(20)
      store.now += 2 * second
      expect(admitted('ann')).toBe(40)
    },
  )

  it('a process without a share refuses calls, and knows how much is left when it gets one', () => {
    const fleet = { hasShare: false, isAlone: false }
    const { hear, share, admitted } = start('sliding-window', 100, fleet)
    share(2)
    hear('ann', 40)
    expect(admitted('ann')).toBe(0)
    fleet.hasShare = true
    expect(admitted('ann')).toBe(17)
  })

  it('late calls of known callers are admitted from half of the share of the rest, those of unknown callers never', () => {
    const { hear, share, fallback, charge, store } = start('sliding-window', 100)
    share(2)
    hear('ann', 80)
    store.now += 20_000
    hear('ann', 80)
    const late = (key: string) =>
      fallback.knows([charge(key)], store.now) && fallback.takeLate([charge(key)], store.now)
    expect(late('bob')).toBe(false)
    expect(Array.from({ length: 40 }, () => late('ann')).filter(Boolean)).toHaveLength(18)
    store.now += 6_000_000
    expect(fallback.knows([charge('ann')], store.now)).toBe(false)
  })

  it('the rate of a key that the store is asked about every millisecond is known, also after a stall', () => {
    const { hear, share, fallback, charge, store, admitted } = start('sliding-window', 100_000)
    share(2)
    for (let left = 50_000; left > 49_000; left--) {
      hear('ann', left)
      store.now += 1000
    }
    expect(fallback.knows([charge('ann')], store.now)).toBe(true)
    store.now += 100_000
    fallback.begin(store.now, true)
    expect(admitted('ann')).toBeGreaterThan(20_000)
  })

  it('a late call is refused if the limit of its caller is used up by now at the rate of before', () => {
    const { hear, share, fallback, charge, store } = start('sliding-window', 1000)
    share(2)
    hear('ann', 900)
    store.now += 20_000
    hear('ann', 800)
    const late = () => fallback.takeLate([charge('ann')], store.now)
    store.now += 20_000
    expect(late()).toBe(true)
    store.now += 100_000
    expect(late()).toBe(false)
  })
})
