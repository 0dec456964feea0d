import { describe, expect, test } from 'vitest'
import { Pace, type Progress } from './pace.ts'

const limits = { minBytesPerSecond: 500, graceMs: 3000, pauseMs: 300_000 }

const sending = (sent: number): Progress => ({ sent, read: 0, awaited: 'sending' })

/** Looks at a caller every half second; gives the moment at which it is too slow. */
function tooSlowAt(progressAt: (ms: number) => Progress, untilMs = 60_000, some = limits): number | undefined {
  const pace = new Pace(0)
  for (let now = 500; now <= untilMs; now += 500) if (pace.isTooSlow(progressAt(now), now, some)) return now
  return undefined
}

describe('the pace of a caller', () => {
  test('a caller who moves nothing while it is awaited is too slow after the grace period', () => {
    expect(tooSlowAt(() => sending(0))).toBe(3500)
  })

  test('a caller at the minimum rate is never too slow, whether it moves bytes steadily or in bursts', () => {
    expect(tooSlowAt(ms => sending(ms / 2))).toBeUndefined()
    expect(tooSlowAt(ms => sending(Math.floor(ms / 2500) * 1250))).toBeUndefined()
  })

  test('a caller at half the minimum rate is too slow after twice the grace period', () => {
    expect(tooSlowAt(ms => sending(ms / 4))).toBe(6500)
  })

  test('bytes that a caller sends do not make up for an answer that it does not read', () => {
    expect(tooSlowAt(ms => ({ sent: ms * 10, read: 0, awaited: 'reading' }))).toBe(3500)
    expect(tooSlowAt(ms => ({ sent: 0, read: ms / 2, awaited: 'reading' }))).toBeUndefined()
  })

  test('a byte now and then does not make up for the time that it took', () => {
    expect(tooSlowAt(ms => sending(ms / 500))).toBe(3500)
  })

  test('bytes beyond the minimum rate are no credit for later', () => {
    expect(tooSlowAt(ms => sending(ms === 500 ? 0 : 1_000_000))).toBe(4500)
  })

  test('time in which the gateway does not wait for the caller is not counted', () => {
    expect(tooSlowAt(() => ({ sent: 0, read: 0, awaited: undefined }))).toBeUndefined()
    expect(tooSlowAt(ms => ({ sent: 0, read: 0, awaited: ms % 2000 === 0 ? ('sending' as const) : undefined }))).toBe(
      14_000,
    )
  })

  test('a minimum rate of 0 never disconnects a caller', () => {
    const none = { minBytesPerSecond: 0, graceMs: 0, pauseMs: 300_000 }
    expect(tooSlowAt(() => sending(0), 60_000, none)).toBeUndefined()
  })

  test('a caller who pauses longer than it may while it sends is too slow, and one who sends a byte in time is not', () => {
    const some = { minBytesPerSecond: 0, graceMs: 0, pauseMs: 2000 }
    expect(tooSlowAt(() => sending(0), 60_000, some)).toBe(2500)
    expect(tooSlowAt(ms => sending(Math.floor(ms / 2000)), 60_000, some)).toBeUndefined()
    expect(tooSlowAt(() => ({ sent: 0, read: 0, awaited: 'reading' }), 60_000, some)).toBeUndefined()
  })

  test('the stall of a caller is the time since it last kept up', () => {
    const pace = new Pace(0)
    pace.isTooSlow(sending(1000), 1000, limits)
    expect(pace.stalledMs).toBe(0)
    pace.isTooSlow(sending(1001), 2000, limits)
    pace.isTooSlow(sending(1002), 2500, limits)
    expect(pace.stalledMs).toBe(1500)
    pace.isTooSlow(sending(9000), 3000, limits)
    expect(pace.stalledMs).toBe(0)
  })

  test('a caller who sends messages when it has some is never too slow, but stalls meanwhile', () => {
    const some = { minBytesPerSecond: 500, graceMs: 3000, pauseMs: 2000 }
    expect(tooSlowAt(() => ({ sent: 0, read: 0, awaited: 'message' }), 60_000, some)).toBeUndefined()
    const pace = new Pace(0)
    pace.isTooSlow({ sent: 0, read: 0, awaited: 'message' }, 60_000, some)
    expect(pace.stalledMs).toBe(60_000)
    expect(pace.isTooSlow({ sent: 0, read: 0, awaited: 'reading' }, 60_500, some)).toBe(false)
  })
})
