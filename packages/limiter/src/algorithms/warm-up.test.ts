import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import type { Limit } from './algorithm.ts'
import { warmUp } from './warm-up.ts'

const limits: readonly Limit[] = [
  { count: 4, periodMs: 1000 },
  { count: 2, periodMs: 1000 },
  { count: 1, periodMs: 1000 },
  { count: 1, periodMs: 2000 },
  { count: 1, periodMs: 10_000 },
]

describe('warm-up', () => {
  it('warm-up takes the same time over ten permits however they are split', () => {
    const property = fc.property(
      fc.constantFrom(2, 3, 10),
      fc.constantFrom(...limits),
      fc.array(fc.nat(), { minLength: 10, maxLength: 10 }),
      (coldFactor, limit, dice) => {
        const warmUpMs = ((1 + coldFactor) * 10 * limit.periodMs) / (2 * limit.count)
        const key = new OneKey(warmUp.meter(limit, { warmUp: warmUpMs, coldFactor }, { timeoutUs: 1e12 }))
        let now = 1_794_700_800_000_000
        const start = now
        for (let left = 10, i = 0; left > 0; i++) {
          const permits = Math.max(1, dice[i]! % left)
          now = key.take(now, permits)!
          left -= permits
        }
        // the last one has to wait until all before it are paid for
        now = key.take(now, 1)!
        expect((now - start) / 1000).toBe(warmUpMs)
      },
    )
    fc.assert(property, { numRuns: randomRuns(400) })
  })

  it('warm-up cools down as far as it was idle', () => {
    const key = new OneKey(warmUp.meter({ count: 2, periodMs: 1000 }, { warmUp: 4000 }, { timeoutUs: 1e12 }))
    let now = 0
    const waitsOf = (count: number): number[] =>
      Array.from({ length: count }, () => {
        const moment = key.take(now, 1)!
        const waitMs = (moment - now) / 1000
        now = moment
        return waitMs
      })
    expect(waitsOf(8)).toEqual([0, 1375, 1125, 875, 625, 500, 500, 500])
    now += 500_000 + 3_000_000
    expect(waitsOf(4)).toEqual([0, 875, 625, 500])
  })

  it('a warm-up key is fully cold from the moment it may be forgotten', () => {
    const limit = fc.constantFrom(
      { count: 997, periodMs: 999 },
      { count: 7, periodMs: 1000 },
      { count: 3, periodMs: 7 },
    )
    const gapsUs = fc.array(fc.nat(5000), { minLength: 1, maxLength: 8 })
    const property = fc.property(limit, fc.constantFrom(1, 7, 4000), gapsUs, (limit, warmUpMs, gapsUs) => {
      const meter = warmUp.meter(limit, { warmUp: warmUpMs })
      const [used, fresh] = [new OneKey(meter), new OneKey(meter)]
      let now = 1_794_712_345_678_901
      for (const gapUs of gapsUs) {
        now += gapUs
        used.take(now, 1)
      }
      now = used.idleAt()
      for (const key of [used, fresh]) expect(key.take(now, 1)).toBe(now)
      expect(used.numbers()).toEqual(fresh.numbers())
    })
    fc.assert(property, { numRuns: randomRuns(600) })
  })

  it.each([
    [{ count: 0, periodMs: 1000 }, { warmUp: 1000 }, 'limit'],
    [{ count: 1, periodMs: 1000 }, {}, 'warmUp'],
  ])('warm-up refuses invalid numbers: %o %o', (limit, options, field) => {
    expect(() => warmUp.meter(limit, options)).toThrow(expect.objectContaining({ field }))
  })
})
