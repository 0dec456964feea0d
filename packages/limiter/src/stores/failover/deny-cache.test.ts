import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { slidingWindow } from '../../algorithms/sliding-window.ts'
import { type FleetCharge, type FleetCounter, fleetCharge } from '../store.ts'
import { DenyCache } from './deny-cache.ts'

const NOW = 1e15
const window = slidingWindow.meter({ count: 5, periodMs: 1000 }, {})

function counterOf(...meters: Meter[]): FleetCounter {
  return { meters, needsRelease: meters.some(meter => meter.held !== undefined) }
}

function refused(counter: FleetCounter, change: Partial<FleetCharge> = {}): FleetCharge {
  const said = { delays: [300_000], remaining: [0], resets: [900_000], wait: 300_000, fits: false }
  return Object.assign(fleetCharge(counter), { key: 'a', cost: 1, ...said, ...change })
}

function asked(counter: FleetCounter, change: Partial<FleetCharge> = {}): FleetCharge {
  return Object.assign(fleetCharge(counter), { key: 'a', cost: 1, ...change })
}

describe('a key that was refused', () => {
  it('is refused again without asking, until the moment it was told, with the numbers of then', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter)], NOW)
    const charge = asked(counter)
    expect(cache.refuses([charge], NOW + 299_999)).toBe(true)
    expect(charge).toMatchObject({ fits: false, wait: 1, delays: [1], remaining: [0], resets: [600_001] })
    expect(cache.refuses([asked(counter)], NOW + 300_000)).toBe(false)
  })

  it('is asked about again after a second, since it may have been reset elsewhere', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter, { delays: [9e9], wait: 9e9 })], NOW)
    expect(cache.refuses([asked(counter)], NOW + 999_999)).toBe(true)
    expect(cache.refuses([asked(counter)], NOW + 1_000_000)).toBe(false)
  })

  it('says nothing of other keys, rules or costs', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter, { cost: 3 })], NOW)
    const others = [asked(counter), asked(counter, { key: 'b', cost: 3 }), asked(counterOf(window), { cost: 3 })]
    expect(cache.refuses(others, NOW)).toBe(false)
    expect(cache.refuses([asked(counter, { cost: 3 })], NOW)).toBe(true)
  })

  it.each([
    ['admitted', counterOf(window), { fits: true }],
    ['refused by a rule that only reports', counterOf(window), { enforced: false }],
    ['without a place', counterOf(concurrency.meter({ count: 1, periodMs: 0 }, {})), {}],
    [
      'refused where calls wait',
      counterOf(slidingWindow.meter({ count: 5, periodMs: 1000 }, {}, { timeoutUs: 1 })),
      {},
    ],
  ])('is not kept where it was %s', (_, counter, change) => {
    const cache = new DenyCache()
    cache.learn([refused(counter, change)], NOW)
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
  })

  it('is forgotten when it is reset, and when the rules change', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter)], NOW)
    cache.forget(counter, 'a')
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
    cache.learn([refused(counter)], NOW)
    cache.clear()
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
  })

  it('is one of ten thousand at most', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    for (let i = 0; i < 25_000; i++) cache.learn([refused(counter, { key: `k${i}` })], NOW)
    const known = Array.from({ length: 25_000 }, (_, i) => cache.refuses([asked(counter, { key: `k${i}` })], NOW))
    expect(known.filter(Boolean)).toHaveLength(5000)
    expect(known.at(-1)).toBe(true)
  })
})
