import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { LeasingStore } from '../../testing/stores/leasing-store.ts'
import { RETURNED_US } from '../memory/delay-beside.ts'
import type { Use } from '../store.ts'
import { type FleetCounter, fleetCharge } from '../store.ts'

const SECOND = 1_000_000
const START = 1e15

function counterOf(
  store: LeasingStore,
  algorithm: string,
  count: number,
  options: object = {},
  periodMs = 1000,
): FleetCounter {
  const meters = [algorithms.find(({ name }) => name === algorithm)!.meter({ count, periodMs }, { ...options })]
  return store.createCounter({ id: algorithm, meters, algorithm, enforced: true })
}

function take(store: LeasingStore, counter: FleetCounter, cost = 1): { allowed: boolean; left: number; delay: number } {
  const charge = Object.assign(fleetCharge(counter), { key: 'k', cost, mayWait: false })
  const { allowed } = store.take([charge])
  return { allowed, left: charge.remaining[0]!, delay: charge.delays[0]! }
}

function uses(amount: number): Use[] {
  return amount > 0 ? [{ amount, ageUs: 0 }] : []
}

/** By how many permits a limit was exceeded, in the worst interval. */
function excess(used: readonly { at: number; cost: number }[], kind: string, count: number): number {
  const sorted = used.toSorted((a, b) => a.at - b.at)
  let worst = 0
  sorted.forEach((first, i) => {
    let sum = 0
    for (const { at, cost } of sorted.slice(i)) {
      const isInside =
        kind === 'fixed-window' ? Math.floor(at / SECOND) === Math.floor(first.at / SECOND) : at < first.at + SECOND
      if (kind !== 'token-bucket' && !isInside) break
      sum += cost
      worst = Math.max(
        worst,
        sum - count - (kind === 'token-bucket' ? Math.ceil(((at - first.at) * count) / SECOND) : 0),
      )
    }
  })
  return worst
}

describe('reservations of permits', () => {
  it('permits that are held count in full, and are free again when they are given back', () => {
    const store = new LeasingStore()
    const counter = counterOf(store, 'token-bucket', 100, { burst: 100 })
    expect(take(store, counter)).toMatchObject({ allowed: true, left: 99 })
    const ask = { counter, key: 'k', kept: 0, needed: 0 }
    expect(store.lease('a', { ...ask, sequence: 1, used: [], wanted: 50 })).toMatchObject({
      amount: 24,
      remaining: [75],
    })
    expect(take(store, counter)).toMatchObject({ allowed: true, left: 74 })
    expect(store.lease('a', { ...ask, sequence: 2, used: uses(4), wanted: 0 })).toMatchObject({
      amount: 0,
      remaining: [94],
    })
  })

  it('a repeated request gets the same answer and counts nothing again', () => {
    const store = new LeasingStore()
    const counter = counterOf(store, 'sliding-window', 1000)
    const first = { counter, key: 'k', sequence: 1, used: [], kept: 0, needed: 0, wanted: 30 }
    const granted = store.lease('a', first)
    expect(granted).toMatchObject({ amount: 30, remaining: [970] })
    const second = { ...first, sequence: 2, used: uses(20), kept: 10, wanted: 20 }
    const renewed = store.lease('a', second)
    expect(renewed).toMatchObject({ amount: 30, remaining: [950] })
    expect(store.lease('a', second)).toEqual(renewed)
    expect(store.lease('a', first), 'an older request that arrives late').toMatchObject({ amount: 0, remaining: [950] })
  })

  it('the permits of a holder that does not report count as used when they end', () => {
    const store = new LeasingStore()
    const counter = counterOf(store, 'sliding-window', 1000)
    store.lease('a', { counter, key: 'k', sequence: 1, used: [], kept: 0, needed: 0, wanted: 100 })
    store.now += 2 * SECOND
    expect(take(store, counter).left).toBe(899)
    store.now += SECOND
    expect(take(store, counter).left).toBe(999)
  })

  it('a lease ends with its fixed window, and the next window has nothing of it', () => {
    const store = new LeasingStore()
    store.now = START + SECOND - 300_000
    const counter = counterOf(store, 'fixed-window', 1000)
    take(store, counter)
    const { amount, lastsUs } = store.lease('a', {
      counter,
      key: 'k',
      sequence: 1,
      used: [],
      kept: 0,
      needed: 0,
      wanted: 100,
    })
    expect({ amount, lastsUs }).toEqual({ amount: 100, lastsUs: 270_000 })
    store.now = START + SECOND
    expect(take(store, counter)).toMatchObject({ allowed: true, left: 999 })
  })

  it('a call that does not fit beside what is held has to wait until that may be back, or is free by itself', () => {
    const store = new LeasingStore()
    const counter = counterOf(store, 'sliding-window', 1000)
    store.lease('a', { counter, key: 'k', sequence: 1, used: [], kept: 0, needed: 0, wanted: 100 })
    const { allowed, delay } = take(store, counter, 950)
    expect({ allowed, delay }).toEqual({ allowed: false, delay: RETURNED_US })
    store.lease('a', { counter, key: 'k', sequence: 2, used: uses(100), kept: 0, needed: 0, wanted: 0 })
    expect(take(store, counter, 950)).toEqual({ allowed: false, left: 900, delay: SECOND })
  })

  it('permits that calls wait for are granted to the last one, and none of the last ones in advance', () => {
    const store = new LeasingStore()
    const counter = counterOf(store, 'sliding-window', 100)
    const ask = { counter, key: 'k', used: [], kept: 0 }
    expect(store.lease('a', { ...ask, sequence: 1, needed: 93, wanted: 40 })).toMatchObject({ amount: 93, delays: [0] })
    const last = store.lease('b', { ...ask, sequence: 1, needed: 20, wanted: 40 })
    expect(last).toMatchObject({ amount: 7, remaining: [0], delays: [RETURNED_US] })
    expect(last.retryUs).toBeGreaterThan(0)
  })

  const move = fc.record({
    what: fc.constantFrom('take', 'use', 'use', 'report', 'report', 'crash', 'repeat'),
    holder: fc.integer({ min: 0, max: 3 }),
    amount: fc.integer({ min: 0, max: 30 }),
    wanted: fc.integer({ min: 0, max: 40 }),
    us: fc.constantFrom(0, 1, 500, 10_000, 50_000, 200_000, 700_000, 1_600_000),
  })

  it.each(['token-bucket', 'sliding-window', 'sliding-log', 'fixed-window'])(
    '%s: no order of calls, leases and crashes exceeds the limit',
    kind => {
      const count = 200
      fc.assert(
        fc.property(fc.array(move, { minLength: 10, maxLength: 120 }), moves => {
          const store = new LeasingStore()
          const counter = counterOf(store, kind, count, kind === 'token-bucket' ? { burst: count } : {})
          const used: { at: number; cost: number }[] = []
          const holders = Array.from({ length: 4 }, (_, i) => ({ name: `h${i}`, left: 0, used: 0, until: 0 }))
          let sequence = 0
          const lastRequests = new Map<string, Parameters<LeasingStore['lease']>[1]>()
          for (const { what, holder, amount, wanted, us } of moves) {
            store.now += us
            const one = holders[holder]!
            if (store.now >= one.until && one.until > 0)
              Object.assign(one, { left: 0, used: 0, until: 0, name: `${one.name}'` })
            if (what === 'take' && take(store, counter, 1 + (amount % 3)).allowed)
              used.push({ at: store.now, cost: 1 + (amount % 3) })
            if (what === 'use' && one.left > 0) {
              const cost = Math.min(amount, one.left)
              one.left -= cost
              one.used += cost
              if (cost > 0) used.push({ at: store.now, cost })
            }
            if (what === 'report') {
              const kept = Math.min(one.left, amount)
              const request = {
                counter,
                key: 'k',
                sequence: ++sequence,
                used: uses(one.used),
                kept,
                needed: amount % 7,
                wanted,
              }
              lastRequests.set(one.name, request)
              const { amount: granted, lastsUs } = store.lease(one.name, request)
              Object.assign(one, { left: granted, used: 0, until: store.now + lastsUs })
            }
            const last = lastRequests.get(one.name)
            if (what === 'repeat' && last) store.lease(one.name, last)
            if (what === 'crash') Object.assign(one, { left: 0, used: 0, until: 0, name: `${one.name}'` })
          }
          expect(excess(used, kind, count)).toBeLessThanOrEqual(0)
        }),
        { numRuns: randomRuns(300) },
      )
    },
  )
})
