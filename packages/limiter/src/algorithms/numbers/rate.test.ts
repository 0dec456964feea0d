import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exactRate } from './rate.ts'

const count = fc.integer({ min: 1, max: 1e12 })
const periodUs = fc.oneof(
  fc.integer({ min: 1, max: 1e6 }).map(ms => ms * 1000),
  fc.constantFrom(1000, 7000, 1e6, 6e7, 3.6e9, 8.64e10, 30 * 8.64e10, 366 * 8.64e10),
)

/** The sign of a / b - c / d, in whole numbers. */
function compare(a: number, b: number, c: number, d: number): number {
  const difference = BigInt(a) * BigInt(d) - BigInt(c) * BigInt(b)
  return difference === 0n ? 0 : difference > 0n ? 1 : -1
}

describe('a rate in whole numbers', () => {
  it.each([
    [
      { count: 10, periodUs: 1e6, tokens: 100 },
      { token: 100_000, perMicro: 1 },
    ],
    [
      { count: 7, periodUs: 1e6, tokens: 100 },
      { token: 1e6, perMicro: 7 },
    ],
    [
      { count: 3_000_000, periodUs: 1e6, tokens: 100 },
      { token: 1, perMicro: 3 },
    ],
    [
      { count: 1, periodUs: 366 * 8.64e10, tokens: 100 },
      { token: 366 * 8.64e10, perMicro: 1 },
    ],
  ])('a rate in whole numbers is exact where it fits: %o', ({ count, periodUs, tokens }, rate) => {
    expect(exactRate(count, periodUs, tokens)).toEqual(rate)
  })

  it('a rate in whole numbers is never above the one asked for, and its tokens stay exact', () => {
    const property = fc.property(count, periodUs, fc.integer({ min: 0, max: 1e13 }), (count, periodUs, tokens) => {
      const rate = exactRate(count, periodUs, tokens)
      if (rate === undefined) return
      expect(compare(rate.perMicro, rate.token, count, periodUs)).toBeLessThanOrEqual(0)
      expect(Number.isInteger(rate.token) && Number.isInteger(rate.perMicro)).toBe(true)
      expect(rate.token * Math.max(1, tokens)).toBeLessThanOrEqual(2 ** 52)
      if (periodUs * Math.max(1, tokens) <= 2 ** 52) expect(compare(rate.perMicro, rate.token, count, periodUs)).toBe(0)
    })
    fc.assert(property, { numRuns: randomRuns(1000) })
  })

  it('a rate in whole numbers is the nearest below that fits where it is not exact', () => {
    const property = fc.property(count, periodUs, fc.integer({ min: 1, max: 60 }), (count, periodUs, largest) => {
      const rate = exactRate(count, periodUs, Math.floor(2 ** 52 / largest))
      let best = { token: 1, perMicro: 0 }
      for (let token = 1; token <= largest; token++) {
        const perMicro = Number((BigInt(count) * BigInt(token)) / BigInt(periodUs))
        if (compare(perMicro, token, best.perMicro, best.token) > 0) best = { token, perMicro }
      }
      if (best.perMicro === 0) expect(rate).toBeUndefined()
      else expect(compare(rate!.perMicro, rate!.token, best.perMicro, best.token)).toBe(0)
    })
    fc.assert(property, { numRuns: randomRuns(600) })
  })
})
