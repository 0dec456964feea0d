import type { Timers } from './timers.ts'

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
