import type { Clock } from '../common/clock.ts'
import { DianaError } from '../errors.ts'

/** A clock that stands still until a test moves it: `createLimiter({ clock, … })`, `rateLimit({ clock, … })`. */
export interface TestClock extends Clock {
  /** Moves it forward by a number of milliseconds. */
  advance(ms: number): void
}

/** Creates a clock for the option `clock` of a limiter; it begins at a moment in milliseconds since 1970, or now. */
export function testClock(startMs: number = Date.now()): TestClock {
  let nowMs = startMs
  const advance = (ms: number): void => {
    if (!(ms >= 0 && Number.isFinite(ms)))
      throw new DianaError('BAD_CALL', `advance takes milliseconds, not ${String(ms)}`)
    nowMs += ms
  }
  return Object.assign(() => nowMs, { advance })
}
