import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { slidingWindow } from '../../algorithms/sliding-window.ts'
import { LimitFamily } from '../memory/limit-family.ts'
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
  it('a refused key is refused again without a question, until the moment that the store named, with the numbers of that moment', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter)], NOW)
    const charge = asked(counter)
    expect(cache.refuses([charge], NOW + 299_999)).toBe(true)
    expect(charge).toMatchObject({ fits: false, wait: 1, delays: [1], remaining: [0], resets: [600_001] })
    expect(cache.refuses([asked(counter)], NOW + 300_000)).toBe(false)
  })

  it('the store is asked about a refused key again after a second, since another process may have reset the key', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter, { delays: [9e9], wait: 9e9 })], NOW)
    expect(cache.refuses([asked(counter)], NOW + 999_999)).toBe(true)
    expect(cache.refuses([asked(counter)], NOW + 1_000_000)).toBe(false)
  })

  it('a refused key decides nothing for other keys, rules or costs', () => {
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
  ])('a refusal is not kept if it was %s', (_, counter, change) => {
    const cache = new DenyCache()
    cache.learn([refused(counter, change)], NOW)
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
  })

  it('a refusal is forgotten when its key is reset, and when the rules change', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([refused(counter)], NOW)
    cache.forget(counter, 'a', NOW)
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
    cache.learn([refused(counter)], NOW + 1)
    cache.clear(NOW + 1)
    expect(cache.refuses([asked(counter)], NOW + 1)).toBe(false)
  })

  it('a refusal is not learned from an answer that was asked for before its counts changed', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.forget(counter, 'a', NOW + 5)
    cache.learn([refused(counter)], NOW)
    expect(cache.refuses([asked(counter)], NOW + 6)).toBe(false)
    cache.learn([refused(counter, { key: 'b' })], NOW)
    expect(cache.refuses([asked(counter, { key: 'b' })], NOW + 6)).toBe(true)
    cache.clear(NOW + 7)
    cache.learn([refused(counter)], NOW + 7)
    expect(cache.refuses([asked(counter)], NOW + 8)).toBe(false)
  })

  it('a refusal is not kept if the limit depends on the caller, since another limit may admit the next call', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    cache.learn([{ ...refused(counter), table: { family: new LimitFamily() } }], NOW)
    expect(cache.refuses([asked(counter)], NOW)).toBe(false)
  })

  it('at most ten thousand refused keys are kept', () => {
    const cache = new DenyCache()
    const counter = counterOf(window)
    for (let i = 0; i < 25_000; i++) cache.learn([refused(counter, { key: `k${i}` })], NOW)
    const known = Array.from({ length: 25_000 }, (_, i) => cache.refuses([asked(counter, { key: `k${i}` })], NOW))
    expect(known.filter(Boolean)).toHaveLength(5000)
    expect(known.at(-1)).toBe(true)
  })
})
