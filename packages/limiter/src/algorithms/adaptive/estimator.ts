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
 *
 * A short excess is not overload: after a pause of the service, calls above the limit are admitted from a credit, the product of
 * excess and time, which comes back while nothing is refused.
 */

/** Where the numbers of one key are, from the first of its state. */
const IN_FLIGHT = 0
const LIMIT = 1
const BASE_US = 2
const PER_US = 3
const LIMITING = 4
const CHANGED_AT = 5
const FROM = 6
const AREA = 7
const GOOD = 8
const FULL_US = 9
const SPENT = 10
const LAST_FLIGHT = 11
const LAST_US = 12
const WINDOWS = 13
const STREAK = 14
const FLOOR = 15
const LOWEST = 16
const ANSWER_US = 17
const SQUARES = 18
const DESCENT = 19
const TRUST = 20

/** How many numbers a key needs. */
export const ESTIMATE_SLOTS = 21

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
/** With credit left, up to so many times the limit is admitted, or what the service answers in this time. */
const BURST_FACTOR = 3
const BURST_US = 220_000
/** The credit: the whole burst for this long; it comes back in five times that. */
const CREDIT_US = 1_000_000
const CREDIT_RETURN = 0.2
/** How far calls of the highest priority may exceed the limit. */
const PRIORITY_ROOM = 3
const UNDER_FLOOR = 0.9
/** So many windows without a refusal open the limit again. */
const CALM_WINDOWS = 8
/** So many windows without a queue make the time of an answer reliable. */
const TRUSTED_WINDOWS = 8
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

  constructor(min: number, max: number) {
    this.#min = min
    this.#max = max
  }

  /** How many calls may be in flight for a call of this priority, from 0 (lowest) to 1, to be admitted. */
  allowed(state: Float64Array, at: number, now: number, priority: number): number {
    const limit = this.#limitOf(state, at, now)
    const above = priority - state[at + FLOOR]!
    const room = above > 0 ? limit * (1 + PRIORITY_ROOM * above) : above < 0 ? limit * UNDER_FLOOR : limit
    const burst = this.#spentAt(state, at, now, limit) < CREDIT_US ? this.#burstOf(state, at, limit) : 0
    return Math.min(this.#max, Math.max(1, Math.floor(Math.max(room, burst))))
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
      if (inFlight + 1 > limit) state[at + FULL_US] = state[at + FULL_US]! + measured
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
      // the first window is short: if it begins in overload, a queue grows meanwhile
      const leastUs = baseUs > 0 ? WINDOW_TIMES * baseUs : (FIRST_TIMES * state[at + ANSWER_US]!) / good
      if (good < LEAST_ANSWERS || elapsed < leastUs) return
      // answers that take very different times say little: more of them are needed, but within bounds
      const isExact = good * PRECISION * PRECISION >= variationOf(state, at)
      if (!isExact && baseUs > 0 && elapsed < Math.max(SLOW_WINDOW_US, 2 * WINDOW_TIMES * baseUs)) return
    }
    if (good >= LEAST_ANSWERS) this.#learn(state, at, elapsed)
    this.#startWindow(state, at, now, now + Math.min(state[at + BASE_US]!, LONGEST_WINDOW_US))
  }

  #learn(state: Float64Array, at: number, elapsed: number): void {
    const perUs = state[at + GOOD]! / elapsed
    const flight = state[at + AREA]! / elapsed
    const timeUs = flight / perUs
    const full = state[at + FULL_US]! / elapsed
    const noise = Math.min(0.1, Math.sqrt(Math.max(0, variationOf(state, at)) / state[at + GOOD]!))
    const lowest = state[at + LOWEST]!
    // calls of a lower priority than were admitted before are admitted at once; it takes a window without any to leave them
    state[at + FLOOR] = lowest
    if (state[at + BASE_US] === 0) {
      state[at + BASE_US] = state[at + ANSWER_US]! / state[at + GOOD]!
      state[at + PER_US] = perUs
      state[at + LAST_FLIGHT] = flight
      state[at + LAST_US] = timeUs
    }
    const isLimiting = state[at + LIMITING] === 1
    let weight = 1
    if (isLimiting) weight = this.#learnLimiting(state, at, flight, timeUs, perUs, full, noise)
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
        // a base that was measured in overload is too large: look below at once
        state[at + WINDOWS] = state[at + TRUST]! < TRUSTED_WINDOWS ? Number.MAX_SAFE_INTEGER : 0
        this.#setLimit(state, at, this.#near(state, at))
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

  #learnLimiting(
    state: Float64Array,
    at: number,
    flight: number,
    timeUs: number,
    perUs: number,
    full: number,
    noise: number,
  ): number {
    const baseUs = state[at + BASE_US]!
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
      return 1
    }
    state[at + STREAK] = 0
    // few calls are refused, and little waits
    if (full <= 0.5 && timeUs < 1.12 * baseUs) {
      if (perUs > known) state[at + PER_US] = perUs
      this.#setLimit(state, at, Math.max(state[at + LIMIT]!, this.#near(state, at)) * 1.05)
      return 1
    }
    const change = Math.log(flight / state[at + LAST_FLIGHT]!)
    const slowed = Math.log(timeUs / state[at + LAST_US]!)
    // no queue explains this: the service has changed during the window, so the next window decides
    if (slowed > Math.max(0, change) + SHIFT + noise || slowed < Math.min(0, change) - SHIFT - noise) return 1
    const response = slowed / change
    const isExperiment = Math.abs(change) > 0.06 + noise
    let low = LOW_PART
    if (isExperiment && change < 0) {
      state[at + WINDOWS] = 0
      if (response < RESPONDS) {
        // n has fallen and the time has not: nothing was waiting
        state[at + DESCENT] = 0
        state[at + BASE_US] = timeUs > 1.3 * baseUs ? timeUs : baseUs + 0.5 * (timeUs - baseUs)
        // a much larger base is verified soon
        if (timeUs > 1.3 * baseUs) state[at + WINDOWS] = LOW_EVERY - 3
      } else if (timeUs < (0.97 - noise) * baseUs) {
        // still above the knee: look further down at once
        state[at + DESCENT] = state[at + DESCENT]! + 1
        state[at + BASE_US] = baseUs + (state[at + DESCENT]! > 1 ? 1 : 0.5) * (timeUs - baseUs)
        state[at + WINDOWS] = Number.MAX_SAFE_INTEGER
        low = Math.max(0.6, LOW_PART - 0.13 * state[at + DESCENT]!)
      } else state[at + DESCENT] = 0
      if (perUs > known) state[at + PER_US] = perUs
    } else {
      if (timeUs < (0.85 - noise) * baseUs) state[at + BASE_US] = timeUs
      if (perUs > known) state[at + PER_US] = known + 0.8 * (perUs - known)
      // below the knee, throughput says nothing of the capacity
      else if (full > 0.5 && timeUs > (1.03 + noise) * state[at + BASE_US]!) {
        state[at + PER_US] = known + (perUs < 0.85 * known ? 1 : 0.5) * (perUs - known)
      }
      state[at + WINDOWS] = state[at + WINDOWS]! + 1
    }
    const knee = state[at + PER_US]! * state[at + BASE_US]!
    const lower = Math.max(1, Math.floor((low - noise) * knee))
    const every = Math.max(LOW_EVERY, (1 - lower / knee) / LOW_COST)
    if (state[at + WINDOWS]! >= every) {
      state[at + WINDOWS] = 0
      this.#setLimit(state, at, lower)
    } else {
      const hasRoom = full > 0.5 && timeUs < (1.02 + noise) * state[at + BASE_US]!
      const near = this.#near(state, at)
      this.#setLimit(state, at, hasRoom ? Math.max(near, Math.round(1.08 * flight + 0.7)) : near)
    }
    return isExperiment ? 1 : 0.3
  }

  /** A little more than the knee. */
  #near(state: Float64Array, at: number): number {
    return Math.round(LIMITING_GAIN * state[at + PER_US]! * state[at + BASE_US]! + 0.5)
  }

  #setLimit(state: Float64Array, at: number, limit: number): void {
    state[at + LIMIT] = Math.min(this.#max, Math.max(this.#min, limit))
  }
}

/** The square of the coefficient of variation of the times of a window's answers. */
function variationOf(state: Float64Array, at: number): number {
  const good = state[at + GOOD]!
  const meanUs = state[at + ANSWER_US]! / good
  return state[at + SQUARES]! / good / (meanUs * meanUs) - 1
}
