import type { SharedCharge } from '../shared-charge.ts'
import type { FleetCounter } from '../store.ts'
import type { LeaseAnswer, LeaseRequest, Use } from './lease-request.ts'
import { LEASE_US, LEAST_SHARE, type LeaseTerms, RECLAIM_US } from './lease-terms.ts'
import { UseLog } from './use-log.ts'

/** Permits are wanted for so long ahead; if the limit is nearly reached, for little longer than until the next report. */
const AHEAD_US = 250_000
const REPORTS_AHEAD = 1.15
/** The limit is nearly reached if less than this part of it is left. */
const SCARCE = 0.25
/** If it is not, reports come so many times less often. */
const RARELY = 5
/** Permits that were not used for so long are given back. */
const IDLE_US = 250_000
/** The rate of use is averaged over about so long. */
const AVERAGED_US = 300_000
/** The highest rate is remembered for about so long: a key whose limit was reached is not used for a while. */
const PEAK_US = 2_000_000
/** More permits are asked for when this part of the last grant is left. */
const LOW = 0.3
const LOW_WHEN_SCARCE = 0.1
/** How often a process asks again that got nothing, or no answer. */
const ASK_AGAIN_US = 25_000
/** A process that got no permits does not ask again sooner than this. */
const LEAST_CLOSED_US = 3000
/** How often it asks if the limit is nearly reached and a lease does not pay. */
const ASK_SELDOM_US = 50_000
/** If the limit is nearly reached, reports come often; a lease of fewer permits than these for each report does not pay. */
const LEAST_PER_REPORT = 16
/** So long after it was sent, a request can have no effect in the store any more. */
const FORGOTTEN_US = LEASE_US + 4 * RECLAIM_US
/** A call waits no longer than this for permits that were asked for, and then asks the store itself. */
const LONGEST_WAIT_US = 20_000
/** The moments of so many reports are known, to refund permits that they contained. */
const KNOWN_REPORTS = 64

/** What an earlier lease has used is not known any more. */
const ALL_USED: readonly Use[] = [{ amount: Number.POSITIVE_INFINITY, ageUs: 0 }]

interface Sent {
  readonly request: LeaseRequest<FleetCounter>
  readonly at: number
  hasFailed: boolean
  /** What was refunded of the permits that it reports. */
  refunded: number
}

/** The permits of one key that this process holds. Moments are microseconds by the clock of this process. */
export class Lease {
  readonly counter: FleetCounter
  readonly key: string
  /** A charge of the rule, for what follows the answers of the store. */
  readonly like: Pick<SharedCharge, 'table' | 'whenStoreDown'>
  readonly #terms: LeaseTerms
  #left = 0
  /** What was used since the last request. */
  readonly #uses: UseLog
  /** What the store itself has decided since. */
  #usedElsewhere = 0
  #validUntil = 0
  /** Until then the limit is reached, and calls are refused without asking. */
  #closedUntil = 0
  #askAfter = 0
  #low = 0
  #askedAt: number
  #usedAt: number
  #usePerUs: number
  #peakPerUs = 0
  #sent: Sent | undefined
  /** What the store holds for this process, as it last said. */
  #held = 0
  /** The store may hold permits of an earlier lease, and which of them were used is not known any more. */
  #isFirst = true
  #isEnding = false
  /** The number of the next report, and when the last ones were counted by the clock of the store. */
  #report = 0
  readonly #moments: number[] = []
  #coming: Promise<void> | undefined
  #arrived: (() => void) | undefined
  #remaining: readonly number[] = []
  #resetsAt: readonly number[] = []

  constructor(
    counter: FleetCounter,
    key: string,
    like: Pick<SharedCharge, 'table' | 'whenStoreDown'>,
    perUs: number,
    now: number,
  ) {
    this.counter = counter
    this.key = key
    this.like = like
    this.#terms = counter.lease!
    this.#uses = new UseLog(this.#terms.reportUs * RARELY)
    this.#usePerUs = perUs
    this.#askedAt = now
    this.#usedAt = now
  }

  /** How many permits the store holds for this process, used or not. */
  get held(): number {
    return this.#held
  }

  covers(cost: number, now: number): boolean {
    return cost <= this.#left && now < this.#validUntil
  }

  /** Whether the limit is known to be reached for the moment. */
  refuses(now: number): boolean {
    return now < this.#closedUntil
  }

  /** Uses permits for a charge, which `covers` has said are there. Returns whether more should be asked for. */
  spend(charge: SharedCharge, now: number): boolean {
    const { cost, delays, remaining, resets } = charge
    this.#left -= cost
    this.#uses.add(cost, now)
    this.#usedAt = now
    charge.lease = this
    charge.report = this.#report
    charge.countedBy = 'lease'
    charge.moment = now
    charge.wait = 0
    charge.fits = true
    for (let level = 0; level < this.#remaining.length; level++) {
      delays[level] = 0
      remaining[level] = this.#remaining[level]! + this.#left
      resets[level] = Math.max(0, this.#resetsAt[level]! - now)
    }
    return this.#left <= this.#low && now >= this.#askAfter && this.#sent === undefined
  }

  /** Adds the permits that are left to what the store says of a charge. */
  look(charge: SharedCharge, now: number): void {
    if (!this.covers(Math.max(1, charge.cost), now)) return
    charge.wait = 0
    charge.fits = true
    for (let level = 0; level < charge.remaining.length; level++) {
      charge.delays[level] = 0
      charge.remaining[level]! += this.#left
    }
  }

  /** Fills in a charge that is refused because the limit is reached. */
  refuse(charge: SharedCharge, now: number): void {
    charge.fits = false
    charge.wait = this.#closedUntil - now
    for (let level = 0; level < this.#remaining.length; level++) {
      charge.delays[level] = level === 0 ? charge.wait : 0
      charge.remaining[level] = 0
      charge.resets[level] = Math.max(charge.wait, this.#resetsAt[level]! - now)
    }
  }

  /**
   * Takes back permits that a charge has used. If they were reported, returns the moment at which the store has counted them; or
   * undefined if there is nothing to refund there.
   */
  refund(cost: number, report: number): number | undefined {
    if (report === this.#report) {
      this.#left += this.#uses.remove(cost)
      return undefined
    }
    if (this.#sent && report === this.#report - 1) {
      this.#sent.refunded += cost
      return undefined
    }
    return this.#report - report <= KNOWN_REPORTS ? this.#moments[report % KNOWN_REPORTS] : undefined
  }

  /** The store is asked about a call of the key. */
  met(cost: number, now: number): void {
    this.#usedAt = now
    this.#usedElsewhere += cost
  }

  /** Whether a call that the store decides is a reason to ask for permits. */
  mayAsk(now: number): boolean {
    return this.#sent === undefined && now >= this.#askAfter && now >= this.#closedUntil && !this.#isEnding
  }

  /** Resolves when permits that were asked for have come, or soon; undefined if none were. */
  get coming(): Promise<void> | undefined {
    if (!this.#sent || this.#isEnding || this.#hasNothingToWaitFor) return undefined
    this.#coming ??= new Promise(resolve => {
      this.#arrived = resolve
    })
    return this.#coming
  }

  /** Calls wait no longer for permits. */
  arrived(): void {
    this.#coming = undefined
    this.#arrived?.()
  }

  /** Lets calls go to the store if permits take too long to come. */
  hurry(now: number): void {
    if (this.#coming && this.#sent && now - this.#sent.at >= LONGEST_WAIT_US) this.arrived()
  }

  /** What there is to do at `now`: ask, send the last request again, give all permits back, forget the lease, or nothing. */
  due(now: number): 'ask' | 'resend' | 'end' | 'forget' | undefined {
    const sent = this.#sent
    if (sent) {
      if (now - sent.at >= FORGOTTEN_US) return 'forget'
      return sent.hasFailed && now < this.#validUntil ? 'resend' : undefined
    }
    if (this.#held > 0 && (this.#isEnding || now - this.#usedAt >= IDLE_US)) return 'end'
    if (this.#isEnding || now - this.#usedAt >= FORGOTTEN_US) return 'forget'
    return this.#uses.amount > 0 && now - this.#askedAt >= this.#reportUs ? 'ask' : undefined
  }

  /** Makes the next request, or the last one if it failed. */
  ask(sequence: number, now: number, givesBack = false): LeaseRequest<FleetCounter> {
    if (this.#sent) {
      this.#sent.hasFailed = false
      return this.#sent.request
    }
    if (now >= this.#validUntil && this.#left > 0) this.#left = 0
    const elapsedUs = Math.max(1000, now - this.#askedAt)
    const weight = 1 - Math.exp(-elapsedUs / AVERAGED_US)
    const perUs = (this.#uses.amount + this.#usedElsewhere) / elapsedUs
    this.#usePerUs += (perUs - this.#usePerUs) * weight
    this.#peakPerUs = Math.max(perUs, this.#peakPerUs * Math.exp(-elapsedUs / PEAK_US))
    const isWorthIt = !this.#isScarce || this.#peakPerUs * this.#terms.reportUs >= LEAST_PER_REPORT
    const isGivingBack = givesBack || !isWorthIt
    const need =
      Math.ceil(this.#usePerUs * (this.#isScarce ? this.#terms.reportUs * REPORTS_AHEAD : AHEAD_US)) + LEAST_SHARE
    const kept = isGivingBack ? 0 : Math.min(this.#left, need * 2)
    const wanted = isGivingBack ? 0 : Math.max(0, need - kept)
    const used = this.#isFirst ? ALL_USED : this.#uses.report(now)
    const request = { counter: this.counter, key: this.key, sequence, used, kept, wanted }
    this.#sent = { request, at: now, hasFailed: false, refunded: 0 }
    this.#isFirst = false
    this.#left = kept
    this.#uses.clear()
    this.#usedElsewhere = 0
    this.#report++
    this.#askedAt = now
    return request
  }

  /** The store has answered the last request. Returns how many of the permits it counted are to be refunded there. */
  answered(answer: LeaseAnswer, now: number): number {
    const { amount, lastsUs, retryUs, isClosed, now: countedAt, remaining, resets } = answer
    const sent = this.#sent!
    this.#sent = undefined
    this.#moments[(this.#report - 1) % KNOWN_REPORTS] = countedAt
    this.#held = amount
    this.#left = this.#isEnding ? 0 : Math.max(0, amount - this.#uses.amount)
    this.#validUntil = sent.at + lastsUs
    this.#askAfter = this.#nextAskAt(sent, amount, retryUs, now)
    this.#closedUntil = isClosed ? this.#askAfter : 0
    this.#remaining = remaining
    this.#low = Math.floor(amount * (this.#isScarce ? LOW_WHEN_SCARCE : LOW))
    this.#resetsAt = resets.map(us => sent.at + us)
    return sent.refunded
  }

  #nextAskAt({ at, request }: Sent, amount: number, retryUs: number, now: number): number {
    if (request.wanted === 0) return amount === 0 ? at + ASK_SELDOM_US : 0
    if (amount > request.kept) return 0
    return retryUs > 0 ? Math.max(at + retryUs, now + LEAST_CLOSED_US) : at + ASK_AGAIN_US
  }

  /** The last request was not answered: the store may have counted it or not. */
  failed(): void {
    if (this.#sent) this.#sent.hasFailed = true
  }

  /** Nothing more is used of what is held. */
  stop(): void {
    this.#left = 0
    this.#validUntil = 0
    this.#closedUntil = 0
    this.#isEnding = true
  }

  /** What this process has used, or may use yet, and has not reported. */
  get unreported(): number {
    return Math.max(this.#held, this.#left + this.#uses.amount)
  }

  /** No permits are wanted, or they have not come for a while. */
  get #hasNothingToWaitFor(): boolean {
    const { request, hasFailed } = this.#sent!
    return request.wanted === 0 || hasFailed
  }

  get #isScarce(): boolean {
    return this.#remaining.some(left => left < this.#terms.capacity * SCARCE)
  }

  get #reportUs(): number {
    return this.#isScarce ? this.#terms.reportUs : Math.min(LEASE_US / 2, this.#terms.reportUs * RARELY)
  }
}
