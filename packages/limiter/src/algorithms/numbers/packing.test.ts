import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Packing, shareOut } from './packing.ts'

const aMomentIn2026 = 1_794_712_345_678_901
const SECOND = 1e6
const MINUTE = 60 * SECOND
const DAY = 1440 * MINUTE

const packingFor = (calls: number, periodUs: number) => new Packing(shareOut(calls, periodUs, periodUs))

describe('a packed segment', () => {
  it('a packed segment is read back no earlier and with no smaller lead, for any limit', () => {
    const part = fc.double({ min: 0, max: 1, noNaN: true })
    const property = fc.property(
      ...[fc.integer({ min: 0, max: 2 ** 26 - 1 }), fc.integer({ min: 1000, max: 366 * DAY }), part, part, part],
      (most, periodUs, age, used, ahead) => {
        const packing = packingFor(most, periodUs)
        const { tickUs, stepUs } = packing.numbers
        const last = aMomentIn2026 - Math.floor(age * periodUs)
        const calls = Math.floor(used * most)
        const lead = Math.floor(ahead * periodUs)
        const packed = packing.pack(last, calls, lead)
        expect(Number.isSafeInteger(packed)).toBe(true)
        expect(packing.callsOf(packed)).toBe(calls)
        const late = packing.lastOf(packed, aMomentIn2026) - last
        expect(late >= 0 && late < tickUs).toBe(true)
        const more = packing.leadOf(packed) - lead
        expect(more >= 0 && more < stepUs).toBe(true)
        // a tick that were felt would hold callers back, and so would a step
        expect(Math.max(tickUs, stepUs)).toBeLessThanOrEqual(Math.max(1, periodUs / 500))
      },
    )
    fc.assert(property, { numRuns: randomRuns(500) })
  })

  it.each([
    [100_000, MINUTE],
    [2000, 60 * MINUTE],
    [50, DAY],
    [2 ** 26 - 1, SECOND / 100],
  ])('a packed segment of %i calls in %i µs keeps its moment to the microsecond', (calls, periodUs) => {
    expect(packingFor(calls, periodUs).numbers.tickUs).toBe(1)
  })

  it('a packed segment of 8000 calls a second keeps its lead to the microsecond', () => {
    expect(packingFor(8000, SECOND).numbers.stepUs).toBe(1)
  })

  it('a packed segment leaves the window whole if its lead does not fit', () => {
    const packing = packingFor(100, SECOND)
    for (const lead of [Number.POSITIVE_INFINITY, 1e15]) {
      expect(packing.leadOf(packing.pack(aMomentIn2026, 7, lead))).toBe(Number.POSITIVE_INFINITY)
    }
  })

  it('removing calls from a packed segment changes nothing else', () => {
    const packing = packingFor(100, MINUTE)
    const packed = packing.without(packing.pack(aMomentIn2026 - 5, 7, 1234), 3)
    expect(packed).toBe(packing.pack(aMomentIn2026 - 5, 4, 1234))
  })
})
