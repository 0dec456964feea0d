import { attempt, visitAll } from '../../common/background.ts'
import { isBlock } from '../catch-up.ts'
import type { SharedCharge } from '../shared-charge.ts'
import type { FleetCounter, FleetRefund, LeaseAnswer, LeaseRequest } from '../store.ts'
import { Demand } from './demand.ts'
import { type Arrival, Lease } from './lease.ts'
import { LEAST_SHARE, shareOf } from './lease-terms.ts'

export interface LeaseBookOptions {
  readonly request: (request: LeaseRequest<FleetCounter>) => Promise<LeaseAnswer>
  /** Whether the store can be asked. */
  readonly mayAsk: () => boolean
  /** How many processes count together. */
  readonly processes: () => number
  /** Whole microseconds, by the clock of this process. */
  readonly now: () => number
  /** Runs something later; default: a timer of this process. */
  readonly schedule?: ((run: () => void, ms: number) => unknown) | undefined
  /** True if the store has said that a charge does not fit at this moment. */
  readonly isDenied: (charge: SharedCharge, now: number) => boolean
  /** The store has counted `used` permits of a lease, and answered a request that was sent at `askedAt`. */
  readonly onReport: (lease: Lease, used: number, answer: LeaseAnswer, askedAt: number) => void
  /** Refunds permits that the store has counted. */
  readonly onRefund: (refund: FleetRefund) => void
}

/** What leases save, and what they hold. */
export interface LeaseStats {
  /** Keys of which this process holds permits, and how many it holds. */
  readonly keys: number
  readonly permits: number
  /** Calls that were admitted by permits held here, without asking the store. */
  readonly decided: number
  /** Requests that reported and renewed them. */
  readonly requests: number
}

const MOST_LEASES = 5000
const TICK_MS = 5
/** If the store said that no rule blocks a caller, it is not asked again for so long. */
const CLEAR_US = 500_000
const MOST_CLEAR = 10_000

/** Nothing is left to ask the store. */
export const ALL_LEASED: readonly SharedCharge[] = []

/** The permits that this process holds in advance, of keys that it meets often, so that their calls need not ask the store. */
export class LeaseBook {
  readonly #options: LeaseBookOptions
  readonly #leases = new Map<FleetCounter, Map<string, Lease>>()
  readonly #demand = new Demand()
  readonly #asking = new Set<Lease>()
  /** Callers that are not blocked, and until when that is taken for granted. */
  readonly #clear = new Map<FleetCounter, Map<string, number>>()
  #clears = 0
  #size = 0
  #sequence = 0
  #decided = 0
  #requests = 0
  /** No lease begins before this moment. */
  #quietUntil = 0
  /** In how long all leases are looked after; Infinity if no timer runs. */
  #tickMs = Number.POSITIVE_INFINITY
  /** The number of ticks between two looks if nothing is awaited. */
  #rarely = 1
  #isClosed = false

  constructor(options: LeaseBookOptions) {
    this.#options = options
  }

  get stats(): LeaseStats {
    let permits = 0
    for (const lease of this.#all()) permits += lease.held
    return { keys: this.#size, permits, decided: this.#decided, requests: this.#requests }
  }

  /** How many permits of a rule this process holds, of one key or of all. */
  heldOf(counter: FleetCounter, key?: string): number {
    const leases = this.#leases.get(counter)
    if (key !== undefined) return leases?.get(key)?.held ?? 0
    let permits = 0
    for (const lease of leases?.values() ?? []) permits += lease.held
    return permits
  }

  /**
   * Decides charges by permits that are held here. Returns those that the store must decide, none if all are paid; or, if
   * `mayWait` is true and permits are on their way or can be asked for, what to wait for before trying again. If the store refuses
   * the rest, `unspend` takes the paid ones back.
   */
  take(charges: readonly SharedCharge[], now: number, mayWait: boolean): readonly SharedCharge[] | Arrival {
    if (this.#size === 0) return charges
    let covered = 0
    for (const charge of charges) if (this.#covers(charge, now)) covered++
    if (mayWait && covered < charges.length) {
      const arrival = this.#arrivalFor(charges, now)
      if (arrival) return arrival
    }
    if (covered === 0) return charges
    const rest = covered === charges.length ? ALL_LEASED : charges.filter(charge => !this.#covers(charge, now))
    for (const charge of charges) if (rest.length === 0 || !rest.includes(charge)) this.#spend(charge, now)
    if (rest.length === 0) this.#decided++
    return rest
  }

  /** What charges wait for that no permits cover; undefined if the store decides them. */
  #arrivalFor(charges: readonly SharedCharge[], now: number): Arrival | undefined {
    const open = charges.filter(charge => charge.cost > 0 && !this.#covers(charge, now))
    const isDenied = open.some(charge => charge.enforced && this.#options.isDenied(charge, now))
    for (const charge of open) {
      const lease = this.#find(charge)
      if (!lease || (isDenied && !lease.isAsking) || !this.#options.mayAsk()) continue
      const arrival = lease.waitFor(charge.cost, now)
      if (arrival) {
        if (lease.mayAsk(now)) this.#askSoon(lease)
        this.#tickSoon()
        // the answer says again until when the limit is reached
        return isDenied ? { ...arrival, isLast: true } : arrival
      }
      // nothing is worth waiting for: this gives back what is left, and finds out how much there is
      if (lease.mayAsk(now)) attempt('leases', () => this.#ask(lease, now))
    }
    return undefined
  }

  /**
   * The store has refused charges. If it holds permits of them for this process that were not used, or was asked for some meanwhile,
   * this resolves when it has answered that, and the call is decided again; undefined if the refusal is final.
   */
  afterRefusal(charges: readonly SharedCharge[], now: number): Promise<void> | undefined {
    const answers: Promise<unknown>[] = []
    for (const charge of charges) {
      const lease = !charge.fits && charge.enforced && charge.cost > 0 ? this.#find(charge) : undefined
      if (!lease?.holdsBack || !this.#options.mayAsk()) continue
      const isCovered = lease.covers(charge.cost, now)
      answers.push(isCovered ? Promise.resolve() : lease.nextAnswer)
      if (!isCovered && !lease.hasSent) attempt('leases', () => this.#ask(lease, now, true))
    }
    return answers.length === 0 ? undefined : Promise.all(answers).then(() => {})
  }

  /** True if the store counts permits of a key as held by this process: what it says of the key may change when they are reported. */
  holdsBack(charge: SharedCharge): boolean {
    return this.#size > 0 && (this.#find(charge)?.holdsBack ?? false)
  }

  /** Adds permits that are held here to what the store says is left. */
  look(charges: readonly SharedCharge[], now: number): void {
    for (const charge of charges) this.#find(charge)?.look(charge, now)
  }

  /** Takes back what was paid for a call that another rule refuses. */
  unspend(charges: readonly SharedCharge[]): void {
    for (const charge of charges) {
      if (charge.countedBy !== 'lease') continue
      if (charge.cost > 0) this.refund(charge, charge.cost)
      charge.countedBy = 'none'
    }
  }

  refund({ permits, counter, key }: SharedCharge, cost: number): void {
    const moment = permits?.refund(cost)
    if (moment !== undefined) this.#options.onRefund({ counter, key, cost, moment })
  }

  /** The store is asked about charges: those of keys that are met often get a lease. */
  meet(charges: readonly SharedCharge[], now: number): void {
    for (const charge of charges) {
      const { counter, key, cost } = charge
      if (cost > 0) this.#clear.get(counter)?.delete(key)
      if (!counter.lease || cost === 0) continue
      const lease = this.#find(charge)
      const perUs = this.#demand.meet(key, now, counter.lease.policy.perSecond)
      if (lease) lease.met(cost, now)
      else if (perUs > 0 && this.#mayBegin(counter, now)) {
        const begun = this.#begin(charge, perUs, now)
        attempt('leases', () => this.#ask(begun, now))
      }
    }
  }

  /** The store has answered charges; `askedAt` is when it was asked. */
  heard(charges: readonly SharedCharge[], askedAt: number): void {
    if (this.#size === 0) return
    for (const { counter, key, cost, delays } of charges) {
      if (cost > 0 || !(delays[0] === 0) || !isBlock(counter.meters[0]!)) continue
      if (this.#clears >= MOST_CLEAR) this.#forgetClear()
      const known = this.#clear.get(counter) ?? new Map<string, number>()
      this.#clear.set(counter, known)
      this.#clears++
      known.set(key, askedAt + CLEAR_US)
    }
  }

  /** The rules have changed: all permits are given back, and new ones reserved by the new rules. */
  renewAll(now: number): void {
    this.#forgetClear()
    if (this.#size === 0) return
    this.#stopAll(now)
    this.#tick()
  }

  /** The counts of a key are reset: its permits are given back first. */
  async release(counter: FleetCounter, key: string, now: number): Promise<void> {
    this.#clear.get(counter)?.delete(key)
    const lease = this.#leases.get(counter)?.get(key)
    if (!lease) return
    lease.stop()
    if (lease.due(now) === 'end') await this.#ask(lease, now, true)
  }

  /** The store has lost all it had counted, what it held for this process among it. */
  forgetAll(now: number): void {
    this.#stopAll(now)
    this.#leases.clear()
    this.#forgetClear()
    this.#size = 0
  }

  /** The store needs the permits of a key for a call of another process. */
  recall(counter: FleetCounter, key: string): void {
    const lease = this.#leases.get(counter)?.get(key)
    if (!lease) return
    lease.stop()
    // an answer that is on its way may bring permits: they are given back when it is there
    if (lease.hasSent) void lease.nextAnswer.then(() => this.#giveBack(lease))
    else this.#giveBack(lease)
  }

  #giveBack(lease: Lease): void {
    const now = this.#options.now()
    if (lease.due(now) === 'end') attempt('leases', () => this.#ask(lease, now, true))
  }

  /** No lease begins before those that there are have ended in the store. */
  #stopAll(now: number): void {
    for (const lease of this.#all()) {
      lease.stop()
      this.#quietUntil = Math.max(this.#quietUntil, now + lease.forgottenUs)
    }
  }

  *#all(): Generator<Lease> {
    for (const leases of this.#leases.values()) yield* leases.values()
  }

  /**
   * Stops the use of all permits, since this process decides by its share from now on, and returns those that were used and not reported.
   * The rest is given back when the store can be asked again.
   */
  suspend(now: number): { lease: Lease; used: number }[] {
    const suspended = Array.from(this.#all(), lease => ({ lease, used: lease.used }))
    this.#stopAll(now)
    return suspended.filter(({ used }) => used > 0)
  }

  /** Gives all permits back. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (!this.#options.mayAsk()) return
    const now = this.#options.now()
    const ending = [...this.#all()].filter(lease => {
      lease.stop()
      return lease.due(now) === 'end'
    })
    await Promise.all(ending.map(lease => this.#ask(lease, now, true)))
  }

  #find({ counter, key }: SharedCharge): Lease | undefined {
    return this.#leases.get(counter)?.get(key)
  }

  #covers(charge: SharedCharge, now: number): boolean {
    if (charge.cost === 0) return now < (this.#clear.get(charge.counter)?.get(charge.key) ?? 0)
    return this.#find(charge)?.covers(charge.cost, now) ?? false
  }

  #spend(charge: SharedCharge, now: number): void {
    if (charge.cost === 0) {
      charge.countedBy = 'lease'
      fillClear(charge)
      return
    }
    const lease = this.#find(charge)!
    if (lease.spend(charge, now)) this.#askSoon(lease)
  }

  #mayBegin({ lease }: FleetCounter, now: number): boolean {
    if (this.#isClosed || now < this.#quietUntil || this.#size >= MOST_LEASES || !this.#options.mayAsk()) return false
    return shareOf(lease!.capacity, this.#options.processes(), lease!.policy) >= LEAST_SHARE
  }

  #begin(charge: SharedCharge, perUs: number, now: number): Lease {
    const { counter, key, table, whenStoreDown, enforced } = charge
    const lease = new Lease(counter, key, { table, whenStoreDown, enforced }, perUs, now)
    this.#rarely = counter.lease!.policy.stretch
    const leases = this.#leases.get(counter) ?? new Map<string, Lease>()
    this.#leases.set(counter, leases)
    leases.set(key, lease)
    this.#size++
    this.#tickSoon()
    return lease
  }

  #drop(lease: Lease): void {
    const leases = this.#leases.get(lease.counter)
    if (leases?.get(lease.key) !== lease) return
    lease.arrived()
    leases.delete(lease.key)
    if (leases.size === 0) this.#leases.delete(lease.counter)
    this.#size--
    if (this.#size === 0) this.#quietUntil = 0
  }

  /** Asks at the end of this turn, for all calls that wait by then. */
  #askSoon(lease: Lease): void {
    if (this.#asking.has(lease)) return
    this.#asking.add(lease)
    queueMicrotask(() => {
      this.#asking.delete(lease)
      const now = this.#options.now()
      if (lease.mayAsk(now) && this.#options.mayAsk()) attempt('leases', () => this.#ask(lease, now))
    })
  }

  async #ask(lease: Lease, now: number, isEnding = false): Promise<void> {
    const request = this.#requestOf(lease, now, isEnding)
    this.#requests++
    this.#tickSoon()
    let isAnswered = false
    try {
      const answer = await this.#options.request(request)
      const used = Math.min(
        lease.held,
        request.used.reduce((sum, { amount }) => sum + amount, 0),
      )
      const refunded = lease.answered(answer, this.#options.now())
      isAnswered = true
      this.#options.onReport(lease, used, answer, now)
      const { counter, key } = lease
      for (const { refunded: cost, countedAt } of refunded) {
        this.#options.onRefund({ counter, key, cost, moment: countedAt! })
      }
    } catch {
      lease.failed()
    }
    lease.arrived(isAnswered ? now : undefined)
  }

  #requestOf(lease: Lease, now: number, isEnding: boolean): LeaseRequest<FleetCounter> {
    try {
      return lease.ask(++this.#sequence, now, isEnding)
    } catch (error) {
      this.#drop(lease)
      throw error
    }
  }

  /** Looks after all leases soon, or in a while if nothing is awaited. */
  #tickSoon(isAwaited = true): void {
    const ms = isAwaited ? TICK_MS : TICK_MS * this.#rarely
    if (this.#tickMs <= ms) return
    this.#tickMs = ms
    const { schedule = (run, ms) => setTimeout(run, ms).unref() } = this.#options
    schedule(() => {
      // another one was needed sooner
      if (this.#tickMs !== ms) return
      this.#tickMs = Number.POSITIVE_INFINITY
      if (!this.#isClosed && !attempt('leases', () => this.#tick())) this.#tickSoon()
    }, ms)
  }

  #tick(): void {
    const now = this.#options.now()
    const mayAsk = this.#options.mayAsk()
    let isAwaited = false
    const look = (lease: Lease): void => {
      lease.hurry()
      isAwaited ||= lease.isAwaited
      if (!mayAsk) lease.arrived()
      const due = lease.due(now)
      if (due === 'forget') this.#drop(lease)
      else if (due !== undefined && mayAsk) attempt('leases', () => this.#ask(lease, now, due === 'end'))
    }
    visitAll('leases', this.#all(), look, lease => this.#drop(lease))
    if (this.#size > 0) this.#tickSoon(isAwaited)
  }

  #forgetClear(): void {
    this.#clear.clear()
    this.#clears = 0
  }
}

/** What a charge says that refuses nothing. */
function fillClear(charge: SharedCharge): void {
  charge.wait = 0
  charge.fits = true
  charge.counter.meters.forEach((_, level) => {
    charge.delays[level] = 0
    charge.remaining[level] = 1
    charge.resets[level] = 0
  })
}
