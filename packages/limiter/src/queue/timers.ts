/** Sets the timers of calls that wait. */
export interface Timers {
  set(run: () => void, ms: number): NodeJS.Timeout
  clear(timer: NodeJS.Timeout | undefined): void
  /** Runs in the next turn of the event loop. */
  soon(run: () => void): void
}

/** Those of Node; a replay has its own, which move with the moments of its log. */
export const nodeTimers: Timers = {
  set: (run, ms) => setTimeout(run, ms),
  clear: timer => clearTimeout(timer),
  soon: run => void setImmediate(run),
}

/** A timer that is set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
const MOST_EARLY_US = 2000

/**
 * Calls `pass` in `leftMs`, at `moment`. A timer may fire up to a millisecond early; the call then waits that
 * much longer. `set` is given every timer, so that it can be cleared.
 */
export function passLater(
  pass: () => void,
  {
    leftMs,
    moment,
    now,
    timers,
    set,
  }: { leftMs: number; moment: number; now: () => number; timers: Timers; set(timer: NodeJS.Timeout): void },
): void {
  if (leftMs > LONGEST_TIMER_MS) {
    const goOn = (): void => passLater(pass, { leftMs: leftMs - LONGEST_TIMER_MS, moment, now, timers, set })
    set(timers.set(goOn, LONGEST_TIMER_MS))
    return
  }
  const passIfDue = (): void => {
    const leftUs = moment - now()
    if (leftUs > 0 && leftUs <= MOST_EARLY_US) set(timers.set(pass, Math.ceil(leftUs / 1000)))
    else pass()
  }
  set(timers.set(passIfDue, leftMs))
}
