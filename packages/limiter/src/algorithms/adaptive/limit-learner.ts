/*
 * Finds how many calls a service can work on at one time.
 *
 * A service has a capacity C (answers per second) and a time R that an answer takes while nothing waits. With n calls in flight:
 *
 *   answers/s |      ________ C          time |         /
 *             |     /                         |        /
 *             |    /                       R  |_______/
 *             +----|---------- n              +-------|------ n
 *                 knee                              knee
 *
 * The knee is C × R calls (Little's law). More in flight only wait: throughput stays, and time grows in proportion.
 *
 * Windows of a few answers' time measure n, the answers per second X, and the time per answer n / X. This counts the calls that
 * have not ended yet, and a call that fails takes time and gives no answer.
 *
 * open      No sign of a queue. C is the largest X seen, R follows the time per answer, and twice the knee is allowed. If the time
 *           exceeds 2 R while n still grows, or calls are refused, a queue builds up:
 * limiting  The limit is a little more than the knee. X is then the capacity, as calls are refused. Each change of n is an
 *           experiment: if n falls and the time per answer does not, nothing was waiting, and that time is the new R; if it falls in
 *           proportion, there was a queue. Every few windows n is lowered below the knee to measure R. When calls have not been
 *           refused for a while, it is open again.
 * searching Overload since the first call, so that R was never seen: the limit is halved for as long as X stays the same, since
 *           all of that was a queue. When X falls, nothing waits, and the time per answer is R. Meanwhile only calls of the
 *           lowest priority are refused.
 *
 * A short excess is not overload: after a pause of the service, calls above the limit are admitted from a credit, the product of
 * excess and time, which comes back while nothing is refused.
 */

import {
  ANSWER_US,
  AREA,
  BASE_US,
  CREDIT_US,
  DESCENT,
  FLOOR,
  FULL_US,
  GOOD,
  isTrusted,
  LAST_FLIGHT,
  LAST_US,
  LIMIT,
  LIMITING,
  LOWEST,
  PER_US,
  SPENT,
  STREAK,
  TRUST,
  TRUSTED_WINDOWS,
  variationOf,
  WINDOWS,
} from './estimate-state.ts'

/** What is allowed beyond the knee. */
const OPEN_GAIN = 2
const LIMITING_GAIN = 1.06
/** As long as little is known, at least so many are allowed. */
const OPEN_LEAST = 20
/** One window in so many is spent below the knee, or fewer if that costs more than this part of the throughput. */
const LOW_EVERY = 8
const LOW_PART = 0.88
const LOW_COST = 0.015
/** By how much (as a logarithm) the time may change beyond what n explains. */
const SHIFT = 0.12
/** If the time falls by more than this part of what n fell by, calls were waiting. */
const RESPONDS = 0.5
/** So many windows without a refusal open the limit again. */
const CALM_WINDOWS = 8
/** The throughput is the same if at least this part of it is left. */
const STEADY = 0.85

/** The measurements of a window: calls at a time, their time, answers per microsecond, the part of it that was full, and noise. */
interface Window {
  readonly flight: number
  readonly timeUs: number
  readonly perUs: number
  readonly full: number
  readonly noise: number
}

/** Learns from each window of a key what its limit is. */
export class LimitLearner {
  readonly #min: number
  readonly #max: number

  constructor(min: number, max: number) {
    this.#min = min
    this.#max = max
  }

  /** A window has ended after `elapsed`. */
  learn(state: Float64Array, at: number, elapsed: number): void {
    const perUs = state[at + GOOD]! / elapsed
    const flight = state[at + AREA]! / elapsed
    const timeUs = flight / perUs
    const full = state[at + FULL_US]! / elapsed
    const noise = Math.min(0.1, Math.sqrt(Math.max(0, variationOf(state, at)) / state[at + GOOD]!))
    const lowest = state[at + LOWEST]!
    const isFirst = state[at + BASE_US] === 0
    const isKnown = isTrusted(state, at)
    // calls of a lower priority than were admitted before are admitted at once; it takes a window without any to leave them, or
    // more if the first queue is still there
    if (isFirst || isKnown || lowest < state[at + FLOOR]!) state[at + FLOOR] = lowest
    if (isFirst) {
      state[at + BASE_US] = state[at + ANSWER_US]! / state[at + GOOD]!
      state[at + PER_US] = perUs
      state[at + LAST_FLIGHT] = flight
      state[at + LAST_US] = timeUs
    }
    const isLimiting = state[at + LIMITING] === 1
    let weight = 1
    if (isLimiting && !isKnown && full > 0.5) this.#search(state, at, flight, timeUs, perUs)
    else if (isLimiting) weight = this.#learnLimiting(state, at, { flight, timeUs, perUs, full, noise })
    else this.#learnOpen(state, at, flight, timeUs, perUs, full)
    state[at + LAST_FLIGHT] = state[at + LAST_FLIGHT]! + weight * (flight - state[at + LAST_FLIGHT]!)
    state[at + LAST_US] = state[at + LAST_US]! + weight * (timeUs - state[at + LAST_US]!)
  }

  #learnOpen(state: Float64Array, at: number, flight: number, timeUs: number, perUs: number, full: number): void {
    const baseUs = state[at + BASE_US]!
    const isGrowing = flight > 1.05 * state[at + LAST_FLIGHT]!
    const isQueueing = flight > OPEN_GAIN * perUs * baseUs + 2
    // more were admitted than before, and no more are answered
    const isFlat = state[at + STREAK]! > 0 || perUs < 1.1 * state[at + PER_US]!
    if (perUs > state[at + PER_US]!) state[at + PER_US] = perUs
    if (isQueueing ? isGrowing || full > 0.3 : full > 0.3 && isFlat) {
      state[at + STREAK] = state[at + STREAK]! + 1
      if (state[at + STREAK]! >= 2 || state[at + SPENT]! >= CREDIT_US) {
        state[at + LIMITING] = 1
        state[at + STREAK] = 0
        state[at + WINDOWS] = 0
        // the largest throughput of a service that was never without a queue may be that of the queue's end
        if (!isTrusted(state, at)) state[at + PER_US] = 0
        this.#setLimit(state, at, this.#near(state, at, perUs))
      }
      return
    }
    state[at + STREAK] = 0
    state[at + TRUST] = state[at + TRUST]! + 1
    const weight = Math.max(0.05, 1 / (state[at + TRUST]! + 1))
    state[at + BASE_US] = baseUs + weight * (Math.min(timeUs, 1.5 * baseUs) - baseUs)
    const knee = state[at + PER_US]! * state[at + BASE_US]!
    const grown = full > 0.3 ? state[at + LIMIT]! * 1.5 : 0
    this.#setLimit(state, at, Math.max(OPEN_GAIN * knee, OPEN_LEAST, grown))
  }

  /**
   * Overload since the first call: the time without a queue was never seen. The limit is halved for as long as the throughput
   * stays the same, since all of that was a queue; when it falls, nothing waits any longer.
   */
  #search(state: Float64Array, at: number, flight: number, timeUs: number, perUs: number): void {
    const isSteady = perUs >= STEADY * state[at + PER_US]!
    // what was admitted before is still being answered; if it does not become less, calls of higher priorities are too many, too
    if (isSteady && flight > 1.1 * state[at + LIMIT]!) {
      if (flight > 0.9 * state[at + LAST_FLIGHT]!) state[at + FLOOR] = state[at + LOWEST]!
      return
    }
    state[at + BASE_US] = timeUs
    if (isSteady && flight > this.#min) {
      if (perUs > state[at + PER_US]!) state[at + PER_US] = perUs
      this.#setLimit(state, at, Math.max(1, Math.floor(flight / 2)))
      return
    }
    state[at + TRUST] = TRUSTED_WINDOWS
    // verified soon
    state[at + WINDOWS] = Number.MAX_SAFE_INTEGER
    this.#setLimit(state, at, this.#near(state, at))
  }

  #learnLimiting(state: Float64Array, at: number, window: Window): number {
    if (this.#isCalm(state, at, window)) return 1
    const { flight, timeUs, noise } = window
    const change = Math.log(flight / state[at + LAST_FLIGHT]!)
    const slowed = Math.log(timeUs / state[at + LAST_US]!)
    // no queue explains this: the service has changed during the window, so the next window decides
    if (slowed > Math.max(0, change) + SHIFT + noise || slowed < Math.min(0, change) - SHIFT - noise) return 1
    const isExperiment = Math.abs(change) > 0.06 + noise
    let low = LOW_PART
    if (isExperiment && change < 0) low = learnDescent(state, at, window, slowed / change)
    else learnLevel(state, at, window)
    this.#setNext(state, at, window, low)
    return isExperiment ? 1 : 0.3
  }

  /** True if few or no calls are refused, so that the limit rises or opens and nothing else is learned. */
  #isCalm(state: Float64Array, at: number, { timeUs, perUs, full }: Window): boolean {
    const known = state[at + PER_US]!
    // in overload, a service works as fast as it can
    if (full <= 0.05 || (full <= 0.5 && perUs < 0.92 * known)) {
      if (perUs > known) state[at + PER_US] = perUs
      state[at + STREAK] = state[at + STREAK]! + 1
      if (state[at + STREAK]! >= CALM_WINDOWS) {
        state[at + LIMITING] = 0
        state[at + STREAK] = 0
      }
      this.#setLimit(state, at, Math.max(state[at + LIMIT]!, this.#near(state, at)) * 1.1)
      return true
    }
    state[at + STREAK] = 0
    // few calls are refused, and little waits
    if (full > 0.5 || timeUs >= 1.12 * state[at + BASE_US]!) return false
    if (perUs > known) state[at + PER_US] = perUs
    this.#setLimit(state, at, Math.max(state[at + LIMIT]!, this.#near(state, at)) * 1.05)
    return true
  }

  /** Sets the limit of the next window: at the knee, or below it if that was not tried for long. */
  #setNext(state: Float64Array, at: number, { flight, timeUs, full, noise }: Window, low: number): void {
    const knee = state[at + PER_US]! * state[at + BASE_US]!
    const lower = Math.max(1, Math.floor((low - noise) * knee))
    const every = Math.max(LOW_EVERY, (1 - lower / knee) / LOW_COST)
    if (state[at + WINDOWS]! >= every) {
      state[at + WINDOWS] = 0
      this.#setLimit(state, at, lower)
      return
    }
    const hasRoom = full > 0.5 && timeUs < (1.02 + noise) * state[at + BASE_US]!
    const near = this.#near(state, at)
    this.#setLimit(state, at, hasRoom ? Math.max(near, Math.round(1.08 * flight + 0.7)) : near)
  }

  /** A little more than the knee. */
  #near(state: Float64Array, at: number, perUs = state[at + PER_US]!): number {
    return Math.round(LIMITING_GAIN * perUs * state[at + BASE_US]! + 0.5)
  }

  #setLimit(state: Float64Array, at: number, limit: number): void {
    state[at + LIMIT] = Math.min(this.#max, Math.max(this.#min, limit))
  }
}

/**
 * Learns from fewer calls at a time whether any had waited; returns the part of the knee to try next. `response` is the part of the
 * fall in n by which the time has fallen.
 */
function learnDescent(state: Float64Array, at: number, { timeUs, perUs, noise }: Window, response: number): number {
  const baseUs = state[at + BASE_US]!
  let low = LOW_PART
  state[at + WINDOWS] = 0
  if (response < RESPONDS) {
    // n has fallen and the time has not: nothing was waiting
    state[at + DESCENT] = 0
    const isNoise = Math.abs(timeUs - baseUs) < 2 * noise * baseUs
    state[at + BASE_US] = timeUs > 1.3 * baseUs ? timeUs : baseUs + (isNoise ? 0.2 : 0.5) * (timeUs - baseUs)
    // a much larger base is verified soon
    if (timeUs > 1.3 * baseUs) state[at + WINDOWS] = LOW_EVERY - 3
  } else if (timeUs < (0.97 - noise) * baseUs) {
    // still above the knee: look further down at once
    state[at + DESCENT] = state[at + DESCENT]! + 1
    state[at + BASE_US] = baseUs + (state[at + DESCENT]! > 1 ? 1 : 0.5) * (timeUs - baseUs)
    state[at + WINDOWS] = Number.MAX_SAFE_INTEGER
    low = Math.max(0.6, LOW_PART - 0.13 * state[at + DESCENT]!)
  } else state[at + DESCENT] = 0
  if (perUs > state[at + PER_US]!) state[at + PER_US] = perUs
  return low
}

/** Learns from a window with about as many calls at a time as the one before, or more. */
function learnLevel(state: Float64Array, at: number, { timeUs, perUs, full, noise }: Window): void {
  const baseUs = state[at + BASE_US]!
  const known = state[at + PER_US]!
  if (timeUs < (0.85 - noise) * baseUs) state[at + BASE_US] = timeUs
  if (perUs > known) state[at + PER_US] = known + (perUs > (1 + 2 * noise) * known ? 0.8 : 0.5) * (perUs - known)
  // below the knee, throughput says nothing of the capacity
  else if (full > 0.5 && timeUs > (1.03 + noise) * state[at + BASE_US]!) {
    state[at + PER_US] = known + (perUs < 0.85 * known ? 1 : 0.5) * (perUs - known)
  }
  state[at + WINDOWS] = state[at + WINDOWS]! + 1
}
