import { describe, expect, test } from 'vitest'
import { Pace, type Progress } from './pace.ts'

const limits = { minBytesPerSecond: 500, graceMs: 3000 }

/** Looks at a caller every half second; gives the moment at which it is too slow. */
function tooSlowAt(progressAt: (ms: number) => Progress, untilMs = 60_000, some = limits): number | undefined {
  const pace = new Pace(0)
  for (let now = 500; now <= untilMs; now += 500) if (pace.isTooSlow(progressAt(now), now, some)) return now
  return undefined
}

describe('the pace of a caller', () => {
  test('a caller who moves nothing while it is awaited is too slow after the grace period', () => {
    expect(tooSlowAt(() => ({ bytes: 0, isAwaited: true }))).toBe(3500)
  })

  test('a caller at the minimum rate is never too slow, whether it moves bytes steadily or in bursts', () => {
    expect(tooSlowAt(ms => ({ bytes: ms / 2, isAwaited: true }))).toBeUndefined()
    expect(tooSlowAt(ms => ({ bytes: Math.floor(ms / 2500) * 1250, isAwaited: true }))).toBeUndefined()
  })

  test('a caller at half the minimum rate is too slow after twice the grace period', () => {
    expect(tooSlowAt(ms => ({ bytes: ms / 4, isAwaited: true }))).toBe(6500)
  })

  test('a byte now and then does not make up for the time that it took', () => {
    expect(tooSlowAt(ms => ({ bytes: ms / 500, isAwaited: true }))).toBe(3500)
  })

  test('bytes beyond the minimum rate are no credit for later', () => {
    expect(tooSlowAt(ms => ({ bytes: ms === 500 ? 0 : 1_000_000, isAwaited: true }))).toBe(4500)
  })

  test('time in which nobody waits for the caller is not counted', () => {
    expect(tooSlowAt(() => ({ bytes: 0, isAwaited: false }))).toBeUndefined()
    expect(tooSlowAt(ms => ({ bytes: 0, isAwaited: ms % 2000 === 0 }))).toBe(14_000)
  })

  test('a minimum rate of nothing never cuts anybody off', () => {
    const none = { minBytesPerSecond: 0, graceMs: 0 }
    expect(tooSlowAt(() => ({ bytes: 0, isAwaited: true }), 60_000, none)).toBeUndefined()
  })

  test('the stall of a caller is the time since it last kept up', () => {
    const pace = new Pace(0)
    pace.isTooSlow({ bytes: 1000, isAwaited: true }, 1000, limits)
    expect(pace.stalledMs).toBe(0)
    pace.isTooSlow({ bytes: 1001, isAwaited: true }, 2000, limits)
    pace.isTooSlow({ bytes: 1002, isAwaited: true }, 2500, limits)
    expect(pace.stalledMs).toBe(1500)
    pace.isTooSlow({ bytes: 9000, isAwaited: true }, 3000, limits)
    expect(pace.stalledMs).toBe(0)
  })
})
