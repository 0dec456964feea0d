import { types } from 'node:util'
import { warnOnce } from './warn-once.ts'

/** Milliseconds since 1970; fractions allowed. */
export type Clock = () => number

const { timeOrigin } = performance

/** Starts at the wall clock and never steps, whatever is done to the machine's time. */
export const steadyClock: Clock = () => timeOrigin + performance.now()

let hrtime = process.hrtime
let startUs = startOfSteady()

function startOfSteady(): number {
  const [seconds, ns] = hrtime()
  return Math.round(steadyClock() * 1000) - seconds * 1e6 - Math.floor(ns / 1000)
}

/**
 * Returns the time of the steady clock in whole microseconds, by the cheapest call that reads it: most of what a decision takes is
 * this.
 */
export function steadyMicroseconds(): number {
  const time = hrtime()
  return startUs + time[0] * 1e6 + Math.floor(time[1] / 1000)
}

let knownDate = Date
let isDateFaked = isFake(Date)

/** True if a test has replaced `Date`, as fake timers do. */
function isTimeFaked(): boolean {
  if (Date === knownDate) return isDateFaked
  const wasFaked = isDateFaked
  knownDate = Date
  isDateFaked = isFake(Date)
  if (wasFaked && !isDateFaked && hrtime !== process.hrtime) {
    // this module was loaded while the clocks were faked
    hrtime = process.hrtime
    startUs = startOfSteady()
  }
  return isDateFaked
}

/** True if a test has replaced the class: that of the platform has no source, and is no proxy. */
function isFake(date: DateConstructor): boolean {
  return types.isProxy?.(date) === true || !Function.prototype.toString.call(date).includes('[native code]')
}

/**
 * Makes the clock of one limiter, with the time of the process in whole microseconds: steady, unless fake timers of a test have
 * replaced `Date`, which then says what time it is. Time never goes back: it continues from where it was.
 */
export function processMicroseconds(): () => number {
  const isMadeInRealTime = !isTimeFaked()
  let wasEverFaked = false
  let wasFaked = false
  let latest = 0
  let aheadUs = 0
  return () => {
    const isFaked = isTimeFaked()
    if (!isFaked && !wasEverFaked) return steadyMicroseconds()
    if (isFaked !== wasFaked) {
      if (!wasEverFaked && isMadeInRealTime) latest = steadyMicroseconds()
      wasEverFaked = true
      wasFaked = isFaked
      aheadUs = 0
    }
    const now = (isFaked ? Date.now() * 1000 : steadyMicroseconds()) + aheadUs
    if (now < latest) aheadUs += latest - now
    else latest = now
    return latest
  }
}

/** A clock that is behind by less has not been set back; the longest time that a call waits for it. */
const STEP_US = 1_000_000

/**
 * Returns the clock in whole microseconds, as meters count; an invalid time counts as no progress, and a clock that steps back
 * continues from its last time.
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
