import { warnOnce } from './warn-once.ts'

/** Milliseconds since 1970; fractions allowed. */
export type Clock = () => number

const { timeOrigin } = performance

/** Starts at the wall clock and never steps, whatever is done to the machine's time. */
export const steadyClock: Clock = () => timeOrigin + performance.now()

const { hrtime } = process
const [startSeconds, startNs] = hrtime()
const startUs = Math.round(steadyClock() * 1000) - startSeconds * 1e6 - Math.floor(startNs / 1000)

/**
 * Returns the time of the steady clock in whole microseconds, by the cheapest call that reads it: most of what a decision takes is
 * this.
 */
export function steadyMicroseconds(): number {
  const time = hrtime()
  return startUs + time[0] * 1e6 + Math.floor(time[1] / 1000)
}

/** A clock that is behind by less has not been set back; the longest time that a call waits for it. */
const STEP_US = 1_000_000

/**
 * Returns the clock in whole microseconds, as meters count; an invalid time counts as no progress, and a clock that steps back
 * continues from its last time. /
 */
export function inMicroseconds(clock: Clock): () => number {
  let latest = 0
  let aheadUs = 0
  return () => {
    const now = Math.round(clock() * 1000) + aheadUs
    if (!(now >= 0 && now <= Number.MAX_SAFE_INTEGER)) return latest
    if (now < latest - STEP_US) {
      aheadUs += latest - now
      warnOnce('DIANA_CLOCK_STEPPED', `the clock option, back by ${(latest - now) / 1e6} s`)
    } else latest = now
    return latest
  }
}
