import type { ReportedLimit } from './read-limits.ts'

/*
 * What a client knows of one limit of a server, and how fast it may go.
 *
 * A server reports what remains, and others may use the same limit. So a client needs no knowledge of them: all see the same number. Each
 * plans a rate at which what remains would last, times its share of it, and corrects the share by what it sees:
 *
 *   windows that end   rate = share × remaining ÷ time left               share × planned ÷ observed
 *   sliding windows    rate = share × refill, less if little remains      share × wanted use ÷ use of the last window, slowly
 *   buckets            rate = share × (refill + (level - wanted) ÷ time)  share × planned ÷ observed
 *
 * Fifty clients that begin with a share of 1 see the number fall fifty times as fast as planned, and have a fiftieth each from then on.
 * Apart from the rate, no call is sent while what remains, less the calls under way, would not cover it.
 */

/** A reset that moves by more is that of a limit that refills, or of the next window. */
const SLACK_MS = 2500
/** A reset that has stayed for this many times the slack is that of a window. */
const STAYS = 4
/** Until it is known how a server counts, a limit is used up no faster. */
const FIRST_WINDOW_MS = 60_000
/** A reset so late is that of another window. */
const PART_OF_WINDOW = 0.5
/** The part of a limit that is left to others if there are any: they cannot see this client's calls under way. */
const MARGIN = 0.015
/** The part of a sliding window that clients leave unused; below half of it they are slower. */
const WANTED = 0.03
/** The part of a bucket that clients leave unused; no permit of a bucket is lost by that. */
const WANTED_OF_BUCKET = 0.55
const LEAST_SHARE = 1e-4
const LEAST_OF_FLEET = 0.7
/** The largest share of a limit whose refill is a guess. */
const LARGEST_SHARE = 1e4
/** The time in which the use of all processes gives the share of this one; later the level of a limit that refills gives it. */
const YOUNG_MS = 6000
/** The largest steps of a share of a sliding window in the time of a window, as powers of e. */
const LARGEST_STEP = 0.75
const LARGEST_STEP_UP = 1.5
/** A share grows faster if the logarithm of what is wanted to what was used exceeds this: the wanted use is far. */
const FAR = 0.15
/** A bucket gets to its wanted level in this part of its window, or in this many intervals between the calls of one client. */
const LEVEL_WINDOWS = 0.5
const LEVEL_INTERVALS = 1.2
/** A share of a bucket follows what is observed by this power, as soon as that many calls were planned or observed. */
const USE_GAIN = 0.4
const LEAST_OBSERVED = 6
/** The most by which a share grows at once when a window has ended that was hardly used. */
const LARGEST_GROWTH = 4
/** The time in which a limit is assumed to refill whose server does not say. */
const ASSUMED_WINDOW_MS = 20_000

export interface QuotaOptions {
  /** No wait is longer. */
  readonly maxWaitMs: number
  /** True if the rate is that of all callers: something else divides it among them. */
  readonly isPacedByFleet?: boolean | undefined
}

export class Quota {
  readonly #maxWaitMs: number
  readonly #isPacedByFleet: boolean
  #limit = 1
  #windowMs = ASSUMED_WINDOW_MS
  #isWindowReported = false
  #remaining = 0
  #heardAt = 0
  /** The last answer that reported the limit. */
  #reportedAt = 0
  #resetAt = Number.POSITIVE_INFINITY
  /** The end of a window of which the answers since then have not been compared with the plan. */
  #endedAt: number | undefined
  /** Counts the moves of the reset before it came; a limit that refills does that with every answer. */
  #moves = 0
  /** The reset has stayed for long enough to be that of a window. */
  #isWindow = false
  /** A reset as it was first reported, and when. */
  #anchor = { at: 0, resetAt: 0 }
  #share = 1
  /** The rate of all callers together since the last observation that was compared. */
  #since = { at: 0, remaining: 0, plan: 0 }
  #inFlight = 0
  #sentSince = 0
  #nextAt = 0
  #unitsPerCall = 1
  readonly #countsCalls: boolean
  readonly #bornAt: number

  constructor(reported: ReportedLimit, nowMs: number, { maxWaitMs, isPacedByFleet = false }: QuotaOptions) {
    this.#isPacedByFleet = isPacedByFleet
    this.#maxWaitMs = maxWaitMs
    this.#countsCalls = reported.countsCalls
    this.#bornAt = nowMs
    this.#reportedAt = nowMs
    this.#limit = Math.max(1, reported.limit ?? reported.remaining)
    if (reported.windowMs !== undefined) this.#setWindow(reported.windowMs, true)
    else if (reported.resetMs !== undefined) this.#setWindow(Math.max(FIRST_WINDOW_MS, reported.resetMs), false)
    this.#note(reported, nowMs)
    this.#anchor = { at: nowMs, resetAt: this.#resetAt }
    if (reported.resetMs === undefined) this.#moves = 2
    this.#since = { at: nowMs, remaining: reported.remaining, plan: this.#plan(nowMs) }
  }

  /** The units that remain, as far as it is known. */
  get remaining(): number {
    return this.#remaining
  }

  get limit(): number {
    return this.#limit
  }

  /** Returns the milliseconds until it begins again, or is full; undefined if that is not known. */
  resetMs(nowMs: number): number | undefined {
    return this.#resetAt === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.#resetAt - nowMs)
  }

  /** Calls per millisecond of this client, or of the whole fleet if the fleet shares it. */
  rate(nowMs: number): number {
    return (this.#share * this.#plan(nowMs)) / this.#unitsPerCall
  }

  /** Returns the milliseconds that a call has to wait; 0 if it may be sent. */
  waitMs(nowMs: number): number {
    this.#renew(nowMs)
    const waitMs = this.#plannedWaitMs(nowMs)
    if (this.#inFlight > 0) return waitMs
    // no report holds for longer: one call is sent, to hear again
    return Math.min(waitMs, Math.max(0, this.#reportedAt + this.#maxWaitMs - nowMs))
  }

  #plannedWaitMs(nowMs: number): number {
    const expected = this.#expected(nowMs)
    const free = expected - this.#margin() - this.#inFlight * this.#unitsPerCall
    if (free < this.#unitsPerCall) return this.#bounded(this.#refillMs(this.#unitsPerCall - free, nowMs))
    return this.#bounded(Math.max(0, this.#nextAt - nowMs))
  }

  /** Counts a call that is sent. The next one follows at the rate, less or more by chance, so that clients do not keep in step. */
  sent(nowMs: number, random: number): void {
    this.#inFlight++
    this.#sentSince++
    if (this.#isPacedByFleet) return
    const intervalMs = (0.75 + random / 2) / Math.max(1e-12, this.rate(nowMs))
    this.#nextAt = Math.max(this.#nextAt, nowMs - intervalMs) + intervalMs
  }

  /** Counts a call that has ended, with an answer or without. */
  ended(): void {
    this.#inFlight = Math.max(0, this.#inFlight - 1)
  }

  /** Hears of the limit by an answer. */
  hear(reported: ReportedLimit, nowMs: number): void {
    const wasFixed = this.#isFixed
    this.#reportedAt = nowMs
    if (reported.limit !== undefined) this.#limit = Math.max(1, reported.limit)
    else this.#limit = Math.max(this.#limit, reported.remaining)
    if (reported.windowMs !== undefined) this.#setWindow(reported.windowMs, true)
    const resetAt = reported.resetMs === undefined ? Number.POSITIVE_INFINITY : nowMs + this.#bounded(reported.resetMs)
    this.#watchReset(resetAt, nowMs)
    const before = this.#resetAt
    const isNew = resetAt > before + Math.max(this.#slackMs, this.#windowMs * PART_OF_WINDOW) || nowMs >= before
    if (!this.#isFixed) {
      this.#learnRefill(reported)
      this.#note(reported, nowMs)
      this.#resetAt = resetAt
      this.#correct(nowMs)
      return
    }
    const endedAt = this.#endedAt ?? (nowMs >= before ? before : undefined)
    this.#endedAt = undefined
    if (wasFixed && endedAt !== undefined) this.#correctAfterEnd(reported, nowMs - endedAt)
    if (isNew || !wasFixed) {
      if (!this.#isWindowReported && reported.resetMs !== undefined) this.#setWindow(reported.resetMs, false)
      this.#note(reported, nowMs)
      this.#resetAt = resetAt
      this.#compareFrom(nowMs)
      return
    }
    this.#resetAt = Math.min(before, resetAt)
    if (endedAt !== undefined) {
      this.#note(reported, nowMs)
      this.#compareFrom(nowMs)
      return
    }
    // an answer that was overtaken by a later one reports more than there is
    if (reported.remaining > this.#remaining) return
    this.#note(reported, nowMs)
    this.#correct(nowMs)
  }

  /** Hears that the server has refused a call: nothing remains for that time. */
  refused(afterMs: number, nowMs: number): void {
    this.#remaining = 0
    this.#heardAt = nowMs
    this.#nextAt = Math.max(this.#nextAt, nowMs + this.#bounded(afterMs))
    if (!this.#isPacedByFleet) this.#share = Math.max(LEAST_SHARE, this.#share * 0.8)
    if (this.#resetAt === Number.POSITIVE_INFINITY) return
    this.#resetAt = Math.max(this.#resetAt, this.#isFixed ? nowMs + this.#bounded(afterMs) : 0)
  }

  /** Watches the reset: one that moves before it comes is that of a limit that refills; one that stays for long is that of a window. */
  #watchReset(resetAt: number, nowMs: number): void {
    if (resetAt === Number.POSITIVE_INFINITY) {
      this.#moves = 2
      return
    }
    const anchor = this.#anchor
    if (resetAt > anchor.resetAt + this.#slackMs) {
      if (nowMs < anchor.resetAt - this.#slackMs / 10) this.#moves++
      this.#anchor = { at: nowMs, resetAt }
    } else if (nowMs - anchor.at > STAYS * this.#slackMs) {
      this.#moves = 0
      this.#isWindow = true
      anchor.resetAt = Math.min(anchor.resetAt, resetAt)
    }
  }

  get #slackMs(): number {
    return Math.min(SLACK_MS, Math.max(this.#windowMs * 0.1, 100))
  }

  /** Computes the time in which a limit refills, if only its reset is known: the missing permits will be there by then. */
  #learnRefill({ remaining, resetMs }: ReportedLimit): void {
    const missing = this.#limit - remaining
    if (this.#isWindowReported || resetMs === undefined || missing < Math.max(3, this.#limit * 0.02)) return
    this.#setWindow((resetMs * this.#limit) / missing, false)
  }

  /** True if the limit begins again at one moment; others refill all the time. */
  get #isFixed(): boolean {
    return this.#resetAt !== Number.POSITIVE_INFINITY && this.#moves < 2
  }

  #setWindow(ms: number, isReportedLimit: boolean): void {
    this.#windowMs = Math.max(1, this.#bounded(ms))
    this.#isWindowReported = isReportedLimit
  }

  #note(reported: ReportedLimit, nowMs: number): void {
    if (!this.#countsCalls && this.#sentSince > 0) {
      const used = Math.max(1, this.#remaining - reported.remaining) / this.#sentSince
      this.#unitsPerCall = Math.min(this.#limit, 0.8 * this.#unitsPerCall + 0.2 * used)
    }
    this.#sentSince = 0
    this.#remaining = reported.remaining
    this.#heardAt = nowMs
    if (reported.resetMs !== undefined && this.#resetAt === Number.POSITIVE_INFINITY && this.#moves === 0) {
      this.#resetAt = nowMs + this.#bounded(reported.resetMs)
    }
  }

  /** Renews a window that has ended without an answer of the next one: all is there, and the rate is that of a whole window. */
  #renew(nowMs: number): void {
    if (!this.#isFixed || nowMs < this.#resetAt) return
    this.#remaining = this.#limit
    this.#heardAt = nowMs
    this.#endedAt ??= this.#resetAt
    const windows = Math.floor((nowMs - this.#resetAt) / this.#windowMs) + 1
    this.#resetAt += windows * this.#windowMs
    this.#compareFrom(nowMs)
    // not all at once: a part of the interval that each would have between its calls
    this.#nextAt = Math.max(this.#nextAt, nowMs)
  }

  /** Computes the rate of all callers together that would use up the limit, in units per millisecond. */
  #plan(nowMs: number): number {
    const expected = this.#expected(nowMs)
    if (!this.#isFixed) return this.#planOfRefill(expected)
    const plan = Math.max(0, expected - this.#margin()) / Math.max(1, this.#resetAt - nowMs)
    if (this.#isWindow) return plan
    return Math.min(plan, this.#limit / (this.#isWindowReported ? this.#windowMs : FIRST_WINDOW_MS))
  }

  #planOfRefill(expected: number): number {
    const refill = this.#limit / this.#windowMs
    const most = 1 + ((this.#isWindowReported ? 0.1 : 3) * expected) / this.#limit
    const level = Math.max(0, expected - this.#floor()) / this.#wanted()
    // the rate of a fleet is set by many who have heard of the level at other times
    if (this.#isPacedByFleet) return refill * Math.max(LEAST_OF_FLEET, Math.min(level, most))
    if (this.#isWindowReported) return refill * Math.min(2 * level, most)
    // all others have heard of the level about an interval ago: what corrects it faster than they hear makes it swing
    const intervalMs = this.#unitsPerCall / (refill * Math.min(1, this.#share))
    const towardsMs = Math.max(LEVEL_WINDOWS * this.#windowMs, LEVEL_INTERVALS * intervalMs)
    return Math.max(0, Math.min(refill * most, refill + (expected - this.#wanted()) / towardsMs))
  }

  /** Estimates the permits that remain now, after what others have used and what has refilled since the last answer. */
  #expected(nowMs: number): number {
    const sinceMs = Math.max(0, nowMs - this.#heardAt)
    if (this.#isFixed) {
      const others = Math.max(0, 1 - this.#share) * this.#since.plan
      return Math.max(0, this.#remaining - others * sinceMs)
    }
    // others take what refills, as far as this client has no share in it
    const own = Math.min(1, this.#share) * (this.#limit / this.#windowMs)
    return Math.min(this.#limit, this.#remaining + own * sinceMs)
  }

  #margin(): number {
    if (this.#share > 0.9 || !this.#isFixed) return this.#floor()
    // a whole limit has room for one call
    return Math.min(Math.max(0, this.#limit - this.#unitsPerCall), Math.max(1, Math.ceil(this.#limit * MARGIN)))
  }

  #floor(): number {
    return this.#share > 0.9 ? 0 : Math.min(1, this.#limit / 4)
  }

  #wanted(): number {
    return Math.max(2, this.#limit * (this.#isWindowReported ? WANTED : WANTED_OF_BUCKET))
  }

  #refillMs(units: number, nowMs: number): number {
    if (this.#isFixed) return this.#inFlight > 0 ? Math.min(50, this.#resetAt - nowMs) : this.#resetAt - nowMs
    return Math.max(10, (units * this.#windowMs) / (this.#limit * Math.min(1, this.#share)))
  }

  /** Corrects the share by what all have used, as soon as that is enough to say something. */
  #correct(nowMs: number): void {
    const { at, remaining, plan } = this.#since
    const sinceMs = nowMs - at
    if (sinceMs <= 0 || this.#isPacedByFleet) return
    if (!this.#isFixed && nowMs - this.#bornAt > YOUNG_MS) {
      if (this.#isWindowReported) this.#correctByLastWindow(nowMs)
      else this.#correctByUse(nowMs)
      return
    }
    const used = remaining - this.#remaining
    const planned = plan * sinceMs
    if (planned <= 0) this.#compareFrom(nowMs)
    if (Math.max(used, planned) < 3) return
    const ratio = planned / Math.max(0.5, used)
    const factor = Math.max(0.02, Math.min(1.25, ratio < 0.5 ? ratio : Math.sqrt(ratio)))
    this.#share = Math.max(LEAST_SHARE, Math.min(1, this.#share * factor))
    this.#compareFrom(nowMs)
  }

  /** Corrects the share of a sliding window, of which all that is missing was used in the time of the last window. */
  #correctByLastWindow(nowMs: number): void {
    const used = Math.max(1, this.#limit - this.#remaining)
    const by = Math.log((this.#limit - this.#wanted()) / used)
    const step = Math.max(-LARGEST_STEP, Math.min(LARGEST_STEP_UP, by + 2 * Math.max(0, by - FAR)))
    const power = step * Math.min(0.25, (nowMs - this.#since.at) / this.#windowMs)
    this.#share = Math.max(LEAST_SHARE, Math.min(1, this.#share * Math.exp(power)))
    this.#compareFrom(nowMs)
  }

  /** Corrects the share of a bucket by what all have used: what has refilled, and by how much the level has fallen. */
  #correctByUse(nowMs: number): void {
    const { at, remaining, plan } = this.#since
    const sinceMs = nowMs - at
    const used = remaining - this.#remaining + (this.#limit / this.#windowMs) * sinceMs
    const planned = plan * sinceMs
    if (Math.max(used, planned) < LEAST_OBSERVED) return
    const ratio = Math.max(0.2, Math.min(4, planned / Math.max(0.5, used)))
    this.#share = Math.max(LEAST_SHARE, Math.min(LARGEST_SHARE, this.#share * ratio ** USE_GAIN))
    this.#compareFrom(nowMs)
  }

  /**
   * Lets the share grow by the first answer after the end of a window, if less was used than planned. A small share needs this: its calls
   * are windows apart, and so are the answers.
   */
  #correctAfterEnd({ remaining, resetMs = 0 }: ReportedLimit, pauseMs: number): void {
    if (this.#isPacedByFleet) return
    const used = this.#limit - remaining
    const begunMs = Math.min(pauseMs, Math.max(0, this.#windowMs - resetMs))
    const planned = (this.#limit / this.#windowMs) * begunMs
    if (planned < 3 || planned <= used) return
    const factor = Math.min(LARGEST_GROWTH, Math.sqrt(planned / Math.max(1, used)))
    this.#share = Math.min(1, this.#share * factor)
  }

  #compareFrom(nowMs: number): void {
    this.#since = { at: nowMs, remaining: this.#remaining, plan: this.#plan(nowMs) }
  }

  #bounded(ms: number): number {
    return Math.max(0, Math.min(this.#maxWaitMs, ms))
  }
}
