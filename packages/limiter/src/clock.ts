import { performance } from 'node:perf_hooks'

/** Milliseconds since 1970; fractions allowed. */
export type Clock = () => number

const { timeOrigin } = performance

/** Starts at the wall clock and never steps, whatever is done to the machine's time. */
export const steadyClock: Clock = () => timeOrigin + performance.now()

/** The clock in whole microseconds, as meters count; a clock that says nonsense is taken to stand still. */
export function inMicroseconds(clock: Clock): () => number {
  let latest = 0
  return () => {
    const now = Math.round(clock() * 1000)
    if (now >= 0 && now <= Number.MAX_SAFE_INTEGER) latest = now
    return latest
  }
}
