import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'

const aMomentIn2026 = 1_794_712_345_678_901

/** Gaps between calls that come at `load` times the limit's pace; the dice are the same in every run. */
function gapsAt(load: number, count: number, periodUs: number, kind: 'even' | 'Poisson'): () => number {
  const gapUs = periodUs / count / load
  let seed = count
  return () => {
    if (kind === 'even') return gapUs
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return -Math.log((seed + 1) / 2 ** 32) * gapUs
  }
}

/** How many of the calls that an exact log admits a sliding window admits, over many periods once both are full. */
function efficiency(count: number, periodUs: number, nextGap: () => number): number {
  const limit = { count, periodMs: periodUs / 1000 }
  const key = new OneKey(slidingWindow.meter(limit, {}))
  const log = new Float64Array(count).fill(-periodUs)
  let [oldest, admitted, logged] = [0, 0, 0]
  const periods = count < 100 ? 60 : 22
  let sinceStart = 0
  while (sinceStart < periods * periodUs) {
    sinceStart += nextGap()
    const now = aMomentIn2026 + Math.floor(sinceStart)
    const isCounted = sinceStart > 2 * periodUs
    if (key.take(now, 1) !== undefined && isCounted) admitted++
    if (log[oldest]! + periodUs > now) continue
    log[oldest] = now
    oldest = (oldest + 1) % count
    if (isCounted) logged++
  }
  return admitted / logged
}

describe('sliding window', () => {
  const loads = [1.02, 1.08, 1.11, 1.25, 1.5, 2, 5, 10]

  describe.each([1e6, 6e7, 8.64e10])('of %i µs', periodUs => {
    it.each([
      // few calls are few steps: one lost in a window is some of a hundredth
      ...[3, 7, 12, 19].map(count => [count, 0.95] as const),
      ...[21, 24, 26, 30, 36].map(count => [count, 0.97] as const),
      ...[41, 50, 77, 100, 200, 1000].map(count => [count, 0.98] as const),
    ])('a saturated caller of %i gets at least %f of what an exact log admits', (count, least) => {
      for (const load of loads.filter(load => count * load < 5000)) {
        for (const kind of ['even', 'Poisson'] as const) {
          const share = efficiency(count, periodUs, gapsAt(load, count, periodUs, kind))
          expect(share, `${kind} at ${load} times the limit`).toBeGreaterThanOrEqual(least)
        }
      }
    })
  })

  it('a saturated caller of 10 000 gets all but a few thousandths', () => {
    for (const load of [1.02, 1.5]) {
      expect(efficiency(10_000, 1e6, gapsAt(load, 10_000, 1e6, 'Poisson'))).toBeGreaterThan(0.997)
    }
  })

  it('a sliding window counts calls at the latest moment when the clock steps back', () => {
    const key = new OneKey(slidingWindow.meter({ count: 100, periodMs: 1000 }, {}))
    for (const now of [10e6, 9e6]) expect(key.take(now, 50)).toBe(now)
    expect(key.take(10.5e6, 1)).toBeUndefined()
    expect(key.take(11e6, 100)).toBe(11e6)
  })

  it.each([1, 2, 3, 7])(
    'a sliding window never admits more than %i in a period and keeps announced moments, however far ahead calls are counted',
    count => {
      const meter = slidingWindow.meter({ count, periodMs: 1 }, { segments: 4 }, { timeoutUs: 100 })
      const state = new Float64Array(meter.slots)
      const admitted: number[] = []
      const take = (now: number): void => {
        // a call admitted before the limit became smaller may wait longer than the new limit allows
        const delay = meter.delay(state, 0, now, 1)
        meter.take(state, 0, now, 1, delay)
        admitted.push(now + delay)
      }
      for (let call = 0; call < 40 * count; call++) take(aMomentIn2026)
      for (let later = 0; later < 60; later++) take(aMomentIn2026 + later * 777)
      for (let i = count; i < admitted.length; i++)
        expect(admitted[i]! - admitted[i - count]!).toBeGreaterThanOrEqual(1000)
      const broken: number[] = []
      for (let now = aMomentIn2026; now < meter.idleAt(state, 0); now += 97) {
        if (meter.remaining(state, 0, now + meter.delay(state, 0, now, 1)) === 0) broken.push(now)
      }
      expect(broken).toEqual([])
      expect(meter.remaining(state, 0, meter.idleAt(state, 0))).toBe(count)
    },
  )

  it('a sliding window of ten segments takes 14 numbers per caller', () => {
    expect(slidingWindow.meter({ count: 100, periodMs: 60_000 }, {}).slots).toBe(14)
  })

  it('a sliding window holds the largest possible counts', () => {
    const key = new OneKey(slidingWindow.meter({ count: 2 ** 26 - 1, periodMs: 1 }, { segments: 2 }))
    let total = 0
    for (let now = 0; now < 20_000; now += 250) {
      const cost = Math.min(2 ** 24, key.remaining(now))
      if (key.take(now, cost) !== undefined) total += cost
      expect(total).toBeLessThanOrEqual((2 ** 26 - 1) * (1 + Math.floor(now / 1000)))
    }
    expect(total).toBeGreaterThan((2 ** 26 - 1) * 10)
  })

  it.each([
    [{ count: 2 ** 26, periodMs: 1000 }, undefined, 'must not be above 67108863'],
    [{ count: 1_000_000, periodMs: 1 }, {}, 'lets too many calls wait at once'],
  ])('a sliding window refuses what it cannot count: %o', (limit, waitOptions, message) => {
    expect(() => slidingWindow.meter(limit, {}, waitOptions)).toThrow(message)
  })

  it('a sliding window does not delay calls because of refunded ones', () => {
    const [key, lua] = [1, 2].map(() => new OneKey(slidingWindow.meter({ count: 100, periodMs: 1000 }, {})))
    for (let now = 0; now < 100_000; now += 10_000) {
      for (const one of [key!, lua!]) one.take(now, 1)
      key!.take(now, 5)
      key!.giveBack(now, 5, now)
    }
    for (const one of [key!, lua!]) expect(one.take(95_000, 90)).toBe(95_000)
    expect(key!.delay(500_000, 1)).toBe(500_000)
    expect(key!.numbers()).toEqual(lua!.numbers())
  })
})

describe('sliding log', () => {
  it('a sliding log has a bound, and the error names an alternative', () => {
    expect(() => slidingLog.meter({ count: 1001, periodMs: 1000 }, {})).toThrow('use algorithm: sliding-window')
    expect(slidingLog.meter({ count: 1000, periodMs: 1000 }, {}).slots).toBe(1001)
  })

  it('a sliding log forgets exactly the calls that were refunded', () => {
    const key = new OneKey(slidingLog.meter({ count: 3, periodMs: 1000 }, {}))
    for (const now of [0, 100_000, 200_000]) key.take(now, 1)
    key.giveBack(300_000, 1, 100_000)
    expect(key.remaining(300_000)).toBe(1)
    key.giveBack(300_000, 1, 150_000)
    expect(key.remaining(300_000)).toBe(1)
    expect(key.take(300_000, 1)).toBe(300_000)
    expect(key.delay(300_000, 1)).toBe(700_000)
  })
})
