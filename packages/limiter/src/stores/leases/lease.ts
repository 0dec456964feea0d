import type { SharedCharge } from '../shared-charge.ts'
import type { FleetCounter, LeaseAnswer, LeaseRequest, LeaseTerms, Use } from '../store.ts'
import { CLOCK_MARGIN, LEASE_US, LEAST_SHARE, RECLAIM_US } from './lease-terms.ts'
import { type UsedSlice, UseLog } from './use-log.ts'

/** How far ahead permits are requested; if the limit is nearly reached, for little longer than until the next report. */
const AHEAD_US = 250_000
const REPORTS_AHEAD = 1.15
/** A key that needs fewer permits than these within that time gets them for longer. */
const FEW_PERMITS = 16
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
/** How often it asks if the limit is nearly reached and a lease does not pay. */
const ASK_SELDOM_US = 50_000
/** If the limit is nearly reached, reports come often; a lease of fewer permits than these for each report does not pay. */
const LEAST_PER_REPORT = 16
/**
 * A call waits no longer than so many ticks for permits that were asked for, and then asks the store itself. A process that was
 * stalled counts that as one tick.
 */
const LONGEST_WAIT_TICKS = 10

/** What an earlier lease has used is not known any more. */
const ALL_USED: readonly Use[] = [{ amount: Number.POSITIVE_INFINITY, ageUs: 0 }]

interface Sent {
  readonly request: LeaseRequest<FleetCounter>
  readonly at: number
  /** What it reports. */
  readonly slices: readonly UsedSlice[]
  hasFailed: boolean
  /** It was sent more than once: the store may have counted it long before it answered. */
  isRepeated: boolean
  ticks: number
  /** Calls do not wait for it any longer. */
  isLate: boolean
}

/** What a call waits for: the answer to a request for permits. */
export interface Arrival {
  /** When the request was sent that was answered; undefined if none was. */
  readonly answered: Promise<number | undefined>
  /** The request asks for the permits of the call, too: what the answer does not grant is not there. */
  readonly isLast: boolean
}

/** The parts of a charge by which answers of the store to a lease are followed. */
export type LeaseLike = Pick<SharedCharge, 'table' | 'whenStoreDown' | 'enforced'>

/** The permits of one key that this process holds. Moments are microseconds by the clock of this process. */
export class Lease {
  readonly counter: FleetCounter
  readonly key: string
  /** A charge of the rule, for what follows the answers of the store. */
  readonly like: LeaseLike
  readonly #terms: LeaseTerms
  #left = 0
  /** What was used since the last request. */
  readonly #uses: UseLog
  /** What the store itself has decided since. */
  #usedElsewhere = 0
  #validUntil = 0
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
  /** The permits that calls wait for, and that no request has asked for yet. */
  #waitedFor = 0
  /** Resolves when permits have come that calls wait for, or too much time has passed. */
  readonly #coming = new Ending()
  readonly #answer = new Ending()
  #waitingTicks = 0
  #remaining: readonly number[] = []
  #resetsAt: readonly number[] = []

  constructor(counter: FleetCounter, key: string, like: LeaseLike, perUs: number, now: number) {
    this.counter = counter
    this.key = key
    this.like = like
    this.#terms = counter.lease!
    this.#uses = new UseLog(this.#terms.reportUs * RARELY, amount => {
      this.#left += amount
    })
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

  /** Uses permits for a charge, which `covers` has said are there. Returns whether more should be asked for. */
  spend(charge: SharedCharge, now: number): boolean {
    const { cost, delays, remaining, resets } = charge
    this.#left -= cost
    this.#usedAt = now
    charge.permits = this.#uses.add(cost, now)
    charge.countedBy = 'lease'
    charge.moment = now
    charge.wait = 0
    charge.fits = true
    for (let level = 0; level < this.#remaining.length; level++) {
      delays[level] = 0
      remaining[level] = this.#remaining[level]! + this.#left
      resets[level] = Math.max(0, this.#resetsAt[level]! - now)
    }
    return (
      this.#isLow(now) && (this.#terms.policy.asksAtOnce || this.#usePerUs * this.#terms.policy.aheadUs > FEW_PERMITS)
    )
  }

  #isLow(now: number): boolean {
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

  /** The store is asked about a call of the key. */
  met(cost: number, now: number): void {
    this.#usedAt = now
    this.#usedElsewhere += cost
  }

  /** True if permits can be asked for at `now`. */
  mayAsk(now: number): boolean {
    return this.#sent === undefined && now >= this.#askAfter && !this.#isEnding
  }

  /** True if a request is not answered yet. */
  get hasSent(): boolean {
    return this.#sent !== undefined
  }

  /** True if permits were asked for, and the answer is awaited. */
  get isAsking(): boolean {
    if (!this.#sent || this.#sent.hasFailed || this.#sent.isLate) return false
    return this.#sent.request.needed + this.#sent.request.wanted > 0
  }

  /** True if the store does not know yet what this process has used of what it holds, and what it does not need. */
  get holdsBack(): boolean {
    return this.#sent ? !this.#sent.hasFailed : this.#held > 0
  }

  /** True if an answer is awaited, by calls or by the lease itself. */
  get isAwaited(): boolean {
    return this.#sent !== undefined || this.#waitedFor > 0
  }

  /** Lets a call wait for permits; undefined if there is nothing to wait for, and the store decides the call itself. */
  waitFor(cost: number, now: number): Arrival | undefined {
    if (this.#isEnding || (this.#sent ? !this.isAsking : !this.#isWorthIt)) return undefined
    this.#usedAt = now
    if (!this.#sent) this.#waitedFor += cost
    return { answered: this.#coming.promise, isLast: this.#sent === undefined }
  }

  /** Resolves when the store has answered, or will not. */
  get nextAnswer(): Promise<unknown> {
    return this.#answer.promise
  }

  /** Calls wait no longer for an answer; `askedAt` is when the request was sent that the store has answered. */
  arrived(askedAt?: number): void {
    this.#waitedFor = 0
    this.#coming.end(askedAt)
    this.#answer.end(askedAt)
  }

  /** Lets calls go to the store if permits take too long to come; called at each tick. */
  hurry(): void {
    this.#waitingTicks = this.#waitedFor > 0 ? this.#waitingTicks + 1 : 0
    // a clock may stand still
    if (this.#waitingTicks >= LONGEST_WAIT_TICKS) this.#askAfter = 0
    if (!this.#sent || this.#sent.isLate || ++this.#sent.ticks < LONGEST_WAIT_TICKS) return
    this.#sent.isLate = true
    this.#waitedFor = 0
    this.#coming.end()
  }

  /** What there is to do at `now`: ask, send the last request again, give all permits back, forget the lease, or nothing. */
  due(now: number): 'ask' | 'resend' | 'end' | 'forget' | undefined {
    const sent = this.#sent
    if (sent) {
      if (now - sent.at >= this.forgottenUs) return 'forget'
      return sent.hasFailed && now < this.#validUntil ? 'resend' : undefined
    }
    if (this.#waitedFor > 0 && now >= this.#askAfter) return 'ask'
    if (this.#held > 0 && (this.#isEnding || now - this.#usedAt >= IDLE_US * this.#stretch)) return 'end'
    if (this.#isEnding || now - this.#usedAt >= this.forgottenUs) return 'forget'
    if (!this.#terms.policy.asksAtOnce && now < this.#validUntil && this.#uses.amount > 0 && this.#isLow(now))
      return 'ask'
    const isDue = now - this.#askedAt >= this.#reportUs && now >= this.#askAfter
    return isDue && this.#uses.amount > 0 ? 'ask' : undefined
  }

  /** Makes the next request, or the last one if it failed. */
  ask(sequence: number, now: number, givesBack = false): LeaseRequest<FleetCounter> {
    if (this.#sent) {
      this.#sent.hasFailed = false
      this.#sent.isRepeated = true
      return this.#sent.request
    }
    if (now >= this.#validUntil && this.#left > 0) this.#left = 0
    const elapsedUs = Math.max(1000, now - this.#askedAt)
    const weight = 1 - Math.exp(-elapsedUs / this.#forFew(AVERAGED_US))
    const perUs = (this.#uses.amount + this.#usedElsewhere) / elapsedUs
    this.#usePerUs += (perUs - this.#usePerUs) * weight
    this.#peakPerUs = Math.max(perUs, this.#peakPerUs * Math.exp(-elapsedUs / (PEAK_US * this.#stretch)))
    const isGivingBack = givesBack || !this.#isWorthIt
    const need = Math.ceil(this.#usePerUs * this.#aheadUs) + LEAST_SHARE
    const kept = isGivingBack ? 0 : Math.min(this.#left, this.#isScarce ? need : need * 2)
    const wanted = isGivingBack ? 0 : Math.max(0, need - kept)
    const needed = isGivingBack ? 0 : this.#waitedFor
    const slices = this.#uses.report(now)
    const used = this.#isFirst ? ALL_USED : slices.map(({ amount, ageUs }) => ({ amount, ageUs }))
    const request = { counter: this.counter, key: this.key, sequence, used, kept, needed, wanted }
    this.#sent = { request, at: now, slices, hasFailed: false, isRepeated: false, ticks: 0, isLate: false }
    this.#isFirst = false
    this.#left = kept
    this.#waitedFor = 0
    this.#waitingTicks = 0
    this.#usedElsewhere = 0
    this.#askedAt = now
    return request
  }

  /** The store has answered the last request. Returns what is to be refunded there of the permits that it has counted. */
  answered(answer: LeaseAnswer, now: number): readonly UsedSlice[] {
    const { amount, lastsUs, retryUs, remaining, resets } = answer
    const { at, request, slices, isRepeated } = this.#sent!
    this.#sent = undefined
    // the store may have counted a repeated request when it was sent first
    const countedAt = isRepeated ? answer.now - Math.ceil((now - at) * (1 + CLOCK_MARGIN)) : answer.now
    for (const slice of slices) slice.counted(countedAt, isRepeated ? 0 : answer.newest)
    this.#held = amount
    this.#left = this.#isEnding ? 0 : Math.max(0, amount - this.#uses.amount)
    this.#validUntil = at + lastsUs
    const isGivenBack = request.needed + request.wanted === 0 && amount === 0
    this.#askAfter = isGivenBack ? at + ASK_SELDOM_US : retryUs > 0 ? now + retryUs : 0
    this.#remaining = remaining
    this.#low = Math.floor(amount * (this.#isScarce ? LOW_WHEN_SCARCE : LOW))
    this.#resetsAt = resets.map(us => at + us)
    return slices.filter(({ refunded }) => refunded > 0)
  }

  /** The last request was not answered: the store may have counted it or not. */
  failed(): void {
    if (this.#sent) this.#sent.hasFailed = true
  }

  /** Nothing more is used of what is held. */
  stop(): void {
    this.#left = 0
    this.#validUntil = 0
    this.#isEnding = true
    this.arrived()
  }

  /** Returns how many permits this process may have used of those that the store holds for it. */
  get used(): number {
    return Math.max(0, this.#held - this.#left)
  }

  /** If the limit is nearly reached, a lease of few calls does not pay: the store decides each. */
  get #isWorthIt(): boolean {
    return !this.#isScarce || this.#peakPerUs * this.#terms.reportUs >= LEAST_PER_REPORT
  }

  get #isScarce(): boolean {
    return this.#remaining.some(left => left < this.#terms.capacity * SCARCE)
  }

  get #reportUs(): number {
    if (this.#isScarce) return this.#terms.reportUs
    return Math.min((LEASE_US * this.#stretch) / 2, this.#terms.reportUs * RARELY)
  }

  /** Permits for a few calls are requested for a longer time, so that a process which is killed holds few that it has not used. */
  get #aheadUs(): number {
    if (this.#isScarce) return this.#terms.reportUs * REPORTS_AHEAD
    return Math.min(AHEAD_US * this.#stretch, this.#forFew(this.#terms.policy.aheadUs))
  }

  /** Returns a duration, or that of a few calls if it is longer. */
  #forFew(us: number): number {
    return this.#stretch === 1 ? us : Math.max(us, FEW_PERMITS / this.#usePerUs)
  }

  get #stretch(): number {
    return this.#terms.policy.stretch
  }

  /** How long after it was sent a request can have an effect in the store. */
  get forgottenUs(): number {
    return LEASE_US * this.#stretch + 4 * RECLAIM_US
  }
}

/** A promise that resolves at the next end; after that there is another one. */
class Ending {
  #promise: Promise<number | undefined> | undefined
  #resolve: ((askedAt: number | undefined) => void) | undefined

  get promise(): Promise<number | undefined> {
    this.#promise ??= new Promise(resolve => {
      this.#resolve = resolve
    })
    return this.#promise
  }

  end(askedAt?: number): void {
    if (!this.#promise) return
    this.#promise = undefined
    this.#resolve!(askedAt)
  }
}
