/*
 * How many calls are in flight for a service, and how many may be: measured in windows of a few answers' time, from which
 * limit-learner.ts learns the limit.
 */

import {
  ANSWER_US,
  AREA,
  BASE_US,
  CHANGED_AT,
  CREDIT_US,
  ESTIMATE_SLOTS,
  FLOOR,
  FROM,
  FULL_US,
  GOOD,
  IN_FLIGHT,
  isTrusted,
  LAST_US,
  LIMIT,
  LIMITING,
  LOWEST,
  PER_US,
  SPENT,
  SQUARES,
  STREAK,
  variationOf,
} from './estimate-state.ts'
import { LimitLearner } from './limit-learner.ts'

/** A window ends after so many answers at least, and so many times the time of one. */
const LEAST_ANSWERS = 30
const WINDOW_TIMES = 4
const FIRST_TIMES = 2
const LEAST_WINDOW_US = 100_000
/** How exact the time per answer must be, unless that takes longer than this. */
const PRECISION = 0.04
const SLOW_WINDOW_US = 700_000
/** A window with too few answers is given up. */
const LONGEST_WINDOW_US = 60_000_000
/** With credit left, up to so many times the limit is admitted, or what the service answers in this time. */
const BURST_FACTOR = 3
const BURST_US = 220_000
/** The credit comes back in five times the time in which it is spent. */
const CREDIT_RETURN = 0.2
/** How far calls of the highest priority may exceed the limit. */
const PRIORITY_ROOM = 3
const UNDER_FLOOR = 0.9
/** An estimate without calls is forgotten after this long. */
const FORGET_US = 600_000_000

/** What became of a call: an answer, a failure, or no information, since the caller left or the call never reached the service. */
export type Ending = 'answered' | 'failed' | 'unknown'

/** What is known of one service. */
export interface Estimate {
  readonly limit: number
  readonly inFlight: number
  /** Answers per second that the service can give; 0 if it is not known yet. */
  readonly perSecond: number
  /** The time of an answer while nothing waits; 0 if it is not known yet. */
  readonly baseMs: number
  /** The time of an answer lately, with what it waits; 0 if it is not known yet. */
  readonly latencyMs: number
  readonly limiting: boolean
}

/** The arithmetic of one rule; the numbers of its keys are in arrays of the caller. Moments are microseconds. */
export class ConcurrencyEstimator {
  readonly #min: number
  readonly #max: number
  readonly #learner: LimitLearner

  constructor(min: number, max: number) {
    this.#min = min
    this.#max = max
    this.#learner = new LimitLearner(min, max)
  }

  /** How many calls may be in flight for a call of this priority, from 0 (lowest) to 1, to be admitted. */
  allowed(state: Float64Array, at: number, now: number, priority: number): number {
    const limit = this.#limitOf(state, at, now)
    const above = priority - state[at + FLOOR]!
    // as long as little is known, only calls of the lowest priority are refused
    if (above > 0 && !isTrusted(state, at)) return this.#max
    const room = above > 0 ? limit * (1 + PRIORITY_ROOM * above) : above < 0 ? limit * UNDER_FLOOR : limit
    const burst = this.#spentAt(state, at, now, limit) < CREDIT_US ? this.#burstOf(state, at, limit) : 0
    return Math.min(this.#max, Math.max(this.#min, Math.floor(Math.max(room, burst))))
  }

  inFlight(state: Float64Array, at: number): number {
    return state[at + IN_FLIGHT]!
  }

  read(state: Float64Array, at: number, now: number): Estimate {
    const isForgotten = now >= this.idleAt(state, at)
    return {
      limit: Math.floor(this.#limitOf(state, at, now)),
      inFlight: state[at + IN_FLIGHT]!,
      perSecond: isForgotten ? 0 : state[at + PER_US]! * 1e6,
      baseMs: isForgotten ? 0 : state[at + BASE_US]! / 1000,
      latencyMs: isForgotten ? 0 : state[at + LAST_US]! / 1000,
      limiting: !isForgotten && state[at + LIMITING]! === 1,
    }
  }

  /** A call begins. */
  begin(state: Float64Array, at: number, now: number, cost: number, priority: number): void {
    if (now >= this.idleAt(state, at)) state.fill(0, at, at + ESTIMATE_SLOTS)
    if (state[at + FROM] === 0) this.#startWindow(state, at, now, now)
    else this.#advance(state, at, now)
    const inFlight = state[at + IN_FLIGHT]! + cost
    state[at + IN_FLIGHT] = inFlight
    if (priority < state[at + LOWEST]!) state[at + LOWEST] = priority
    const limit = this.#limitOf(state, at, now)
    // a load that reaches the end of the burst is not a short excess
    if (inFlight + cost > this.#burstOf(state, at, limit)) state[at + SPENT] = CREDIT_US
  }

  /** A call has ended that began at `since`. */
  end(state: Float64Array, at: number, now: number, cost: number, since: number, ending: Ending): void {
    if (state[at + FROM] === 0) return
    this.#advance(state, at, now)
    state[at + IN_FLIGHT] = Math.max(0, state[at + IN_FLIGHT]! - cost)
    const from = state[at + FROM]!
    if (ending === 'answered') {
      if (now >= from) {
        state[at + GOOD] = state[at + GOOD]! + cost
        state[at + ANSWER_US] = state[at + ANSWER_US]! + cost * (now - since)
        state[at + SQUARES] = state[at + SQUARES]! + cost * (now - since) ** 2
      }
    } else if (ending === 'unknown') {
      const counted = now - Math.max(since, from)
      if (counted > 0) state[at + AREA] = Math.max(0, state[at + AREA]! - cost * counted)
    }
    if (now - from >= LEAST_WINDOW_US && state[at + GOOD]! > 0) this.#closeWindow(state, at, now)
  }

  /** The moment from which the estimate is forgotten. */
  idleAt(state: Float64Array, at: number): number {
    if (state[at + FROM] === 0) return 0
    return state[at + IN_FLIGHT]! > 0 ? Number.POSITIVE_INFINITY : state[at + CHANGED_AT]! + FORGET_US
  }

  #limitOf(state: Float64Array, at: number, now: number): number {
    const limit = state[at + LIMIT]!
    if (limit === 0 || (state[at + IN_FLIGHT] === 0 && now >= state[at + CHANGED_AT]! + FORGET_US)) return this.#max
    return limit > this.#max ? this.#max : limit < this.#min ? this.#min : limit
  }

  #spentAt(state: Float64Array, at: number, now: number, limit: number): number {
    const excess = state[at + IN_FLIGHT]! - limit
    const elapsed = now - state[at + CHANGED_AT]!
    if (elapsed <= 0) return state[at + SPENT]!
    if (excess > 0)
      return Math.min(CREDIT_US, state[at + SPENT]! + (excess / this.#burstOf(state, at, limit)) * elapsed)
    const returns = state[at + LIMITING] === 1 && state[at + STREAK] === 0 ? 0 : CREDIT_RETURN * elapsed
    return Math.max(0, state[at + SPENT]! - returns)
  }

  #burstOf(state: Float64Array, at: number, limit: number): number {
    return Math.min(this.#max, Math.max(limit * BURST_FACTOR, state[at + PER_US]! * BURST_US))
  }

  /** Lets time pass to `now`. */
  #advance(state: Float64Array, at: number, now: number): void {
    const elapsed = now - state[at + CHANGED_AT]!
    if (elapsed <= 0) return
    const limit = this.#limitOf(state, at, now)
    const inFlight = state[at + IN_FLIGHT]!
    state[at + SPENT] = this.#spentAt(state, at, now, limit)
    const measured = now - Math.max(state[at + CHANGED_AT]!, state[at + FROM]!)
    if (measured > 0) {
      state[at + AREA] = state[at + AREA]! + inFlight * measured
      // calls of a lower priority than were admitted lately are refused a little earlier
      const lowest = state[at + FLOOR]! > 0 ? Math.max(this.#min, Math.floor(limit * UNDER_FLOOR)) : limit
      if (inFlight + 1 > lowest) state[at + FULL_US] = state[at + FULL_US]! + measured
    }
    state[at + CHANGED_AT] = now
  }

  /** Begins to measure at `from`, when what was before has settled. */
  #startWindow(state: Float64Array, at: number, now: number, from: number): void {
    state[at + CHANGED_AT] = now
    state[at + FROM] = from
    state[at + AREA] = 0
    state[at + GOOD] = 0
    state[at + FULL_US] = 0
    state[at + ANSWER_US] = 0
    state[at + SQUARES] = 0
    state[at + LOWEST] = 1
  }

  #closeWindow(state: Float64Array, at: number, now: number): void {
    const elapsed = now - state[at + FROM]!
    const good = state[at + GOOD]!
    const baseUs = state[at + BASE_US]!
    if (elapsed < LONGEST_WINDOW_US) {
      const isSearching = state[at + LIMITING] === 1 && !isTrusted(state, at)
      const isFull = state[at + FULL_US]! > 0.3 * elapsed
      // the first window is short: if it begins in overload, a queue grows meanwhile
      const firstUs = isFull ? 0 : (FIRST_TIMES * state[at + ANSWER_US]!) / good
      const leastUs = baseUs > 0 ? (isSearching ? 1 : WINDOW_TIMES) * baseUs : firstUs
      if (good < LEAST_ANSWERS || elapsed < leastUs) return
      // answers that take very different times say little: more of them are needed, but within bounds
      const isExact = good * PRECISION * PRECISION >= variationOf(state, at)
      if (!isExact && baseUs > 0 && elapsed < Math.max(SLOW_WINDOW_US, 2 * WINDOW_TIMES * baseUs)) return
    }
    if (good >= LEAST_ANSWERS) this.#learner.learn(state, at, elapsed)
    this.#startWindow(state, at, now, now + Math.min(state[at + BASE_US]!, LONGEST_WINDOW_US))
  }
}
