import type { Overrun, Part } from '../../algorithms/algorithm.ts'
import { attempt } from '../../common/background.ts'
import { warnOnce } from '../../common/warn-once.ts'
import { TooLate, within } from '../../common/within.ts'
import type { Arrival, Lease } from '../leases/lease.ts'
import { LeaseBook } from '../leases/lease-book.ts'
import { Fleet } from '../membership/fleet.ts'
import { Heartbeat } from '../membership/heartbeat.ts'
import type { MembershipRegistry } from '../membership/registry.ts'
import type { KeyState } from '../memory/key-state.ts'
import type { MemoryStore } from '../memory/memory-store.ts'
import type { Table } from '../memory/table.ts'
import { isCountedHere, type SharedCharge, sharedCharge } from '../shared-charge.ts'
import type { LeaseAnswer, LeaseRequest } from '../store.ts'
import {
  type Answered,
  type FleetCharge,
  type FleetCounter,
  type FleetRule,
  fleetCharge,
  type SharedStore,
  takeBack,
} from '../store.ts'
import { CountsLost, classifyError, type StoreError } from '../store-error.ts'
import { AskedCall, type AskedCallEvents } from './asked-call.ts'
import { Backlog } from './backlog.ts'
import { Breaker } from './circuit-breaker.ts'
import { Deadline } from './deadline.ts'
import { DenyCache } from './deny-cache.ts'
import { LocalFallback } from './local-fallback.ts'
import { Recovery } from './recovery.ts'
import { remind } from './remind.ts'
import { Settlements, settlementOf } from './settlements.ts'
import { StoreHealth, type StoreStats, type StoreStatus } from './store-health.ts'

export interface FailoverStoreOptions {
  /** How long a call waits for the store. */
  readonly timeoutMs: number
  /** Where the processes know of each other; none: this one counts alone. */
  readonly registry?: MembershipRegistry | undefined
  /** How many processes there are, as long as the roll has not told. */
  readonly assumedFleet?: number | undefined
  /** The store has parts that fail one by one, such as the nodes of a Cluster. */
  readonly hasParts?: boolean | undefined
  readonly reconnect?: (() => void) | undefined
  /** Calls the listener whenever there is a new connection. */
  readonly onReady?: ((listener: () => void) => void) | undefined
  /** Calls the listener whenever a connection is lost. */
  readonly onLost?: ((listener: () => void) => void) | undefined
  /** Why the way to the store is closed, where it is. */
  readonly lastError?: (() => unknown) | undefined
  /** Whole microseconds, by the clock that counts here. */
  readonly now: () => number
  /** The rules that are counted in the store. */
  readonly rules: () => readonly string[]
  readonly onPart: (part: Part) => void
  readonly onChange: (status: StoreStatus) => void
}

const SETTLE_MS = 20
/** An error is told sooner than this after a question, unless this process was stalled. */
const STALL_US = 20_000
/** A store that has answered nothing for so long, or for as long as a call waits, is away. */
const LEAST_SILENT_MS = 200
/** No call waits for a step on the way back, and who stumbles begins again. */
const LEAST_STEP_MS = 250
/** A call waits at most so many times for permits of leases: twice for each, and few rules of a call are leased. */
const MOST_ROUNDS = 8
/** The store is asked at most so often about a call: permits that it holds for this process may cover it, or are reported first. */
const MOST_TRIES = 3
const ALONE: MembershipRegistry = {
  register: async () => ({ era: '', size: 1, rank: 0, heard: 1, back: 1 }),
  leave: async () => {},
}

/**
 * Counts in a store that the whole fleet shares, and in this process where the store cannot be asked: a call waits for it
 * no longer than `timeoutMs`, none fails because of it, and after some have waited in vain none waits at all.
 */
export class FailoverStore {
  readonly #store: SharedStore
  readonly #options: FailoverStoreOptions
  readonly #fallback: LocalFallback
  readonly #silentMs: number
  readonly #deadline: Deadline
  readonly #breaker: Breaker
  readonly #fleet: Fleet
  readonly #backlog = new Backlog()
  readonly #denials = new DenyCache()
  readonly #health = new StoreHealth()
  readonly #leases: LeaseBook
  readonly #recovery: Recovery
  readonly #heartbeat: Heartbeat<StoreError>
  /** The store can be asked, and others may not know it yet. */
  readonly #settlements: Settlements
  #isRejoining = false
  /** This process has begun to report to it what it missed. */
  #isReporting = false
  /** Until then no process had begun to report. */
  #unreportedAt = 0
  #isStarted = false
  #isClosed = false
  /** How many calls the store has answered. */
  #answers = 0
  /** How many calls it was asked about, and how many were decided without it and without leases. */
  #asked = 0
  #decidedHere = 0
  /** The life of the store in which this process has told it what it had forgotten. */
  #remindedEra: string | undefined
  /** The life of the store in which the fleet gathers. */
  #gatheredEra = ''
  /** The store has lost what it had counted, and is yet to be reminded. */
  #hasLost = false
  #settling: NodeJS.Timeout | undefined
  /** When answers were last read: those of one batch are read at one moment, and the clock only once. */
  #lastRead = { atMs: Number.NaN, at: 0 }
  readonly #events: AskedCallEvents = {
    late: asked => this.#late(asked),
    givenUp: asked => this.#givenUp(asked),
    answered: (asked, answer) => this.#answered(asked, answer),
    failed: (asked, error) => this.#unanswered(asked, error),
  }
  /** The permits that were used in advance and not reported when the store went away, and what was counted before. */
  #usedLeases: { readonly charge: SharedCharge; readonly before: KeyState | undefined }[] = []
  /** Charges as the store was last asked about, to ask it again. */
  #latest: readonly SharedCharge[] = []

  constructor(store: SharedStore, memory: MemoryStore, options: FailoverStoreOptions) {
    const { timeoutMs, registry = ALONE, assumedFleet = 1, onPart } = options
    this.#store = store
    this.#options = options
    this.#silentMs = Math.max(LEAST_SILENT_MS, timeoutMs)
    this.#deadline = new Deadline({
      timeoutMs,
      silentMs: this.#silentMs,
      onSilent: askedAt => this.#switch(classifyError(new TooLate(this.#silentMs)), askedAt),
    })
    this.#breaker = new Breaker({ quietMs: timeoutMs * 2 })
    this.#fleet = new Fleet(registry, {
      assumed: assumedFleet,
      onChange: (part, before) => {
        onPart(part)
        if (part.size < before.size) this.#fallback.reshare(options.now())
      },
    })
    this.#fallback = new LocalFallback(memory, this.#backlog, this.#fleet)
    this.#heartbeat = new Heartbeat<StoreError>(this.#fleet, {
      timeoutMs,
      classify: classifyError,
      isPaused: () => !this.#health.isHealthy,
      mayAnswer: trouble => this.#mayAnswer(trouble),
      answers: () => this.#answers,
      onTrouble: trouble => this.#switch(trouble),
      onForgotten: () => this.#lost(),
    })
    this.#leases = new LeaseBook({
      request: request => this.#requestLease(request),
      mayAsk: () => store.lease !== undefined && this.#health.isHealthy && !this.#isRejoining,
      processes: () => this.#fleet.part.size,
      now: options.now,
      isDenied: (charge, now) => this.#denials.denies(charge, now),
      onReport: (lease, used, answer, askedAt) => this.#followLease(lease, used, answer, askedAt),
      onRefund: refund => {
        this.#denials.forget(refund.counter, refund.key, options.now())
        this.#store.giveBack([refund])
      },
    })
    this.#settlements = new Settlements({
      settle: settlements => within(this.#store.settle!(settlements), timeoutMs),
      isAway: () => !this.#health.isHealthy,
      now: options.now,
    })
    this.#store.watch?.({
      countsLost: () => this.#lost(),
      clockStepped: byMs => this.#clockStepped(byMs),
      recalled: (counter, key) => this.#leases.recall(counter, key),
    })
    this.#recovery = new Recovery({
      fleetSize: () => this.#fleet.part.size,
      probe: () => this.#probe(),
      gather: withinMs => this.#gather(withinMs),
      rejoin: withinMs => this.#rejoin(withinMs),
      failed: error => this.#failedAgain(error),
      reconnect: () => this.#options.reconnect?.(),
      recovered: () => this.#recovered(),
    })
    options.onReady?.(() => this.#recovery.wake())
    options.onLost?.(() => this.#connectionLost())
  }

  /** Joins the fleet; resolves soon, also where the store cannot be asked. */
  async start(): Promise<void> {
    await this.#heartbeat.start()
    this.#isStarted = true
  }

  /** All processes notice an outage together, also those that no caller asks; else they would not return together. */
  #connectionLost(): void {
    if (this.#isStarted && !this.#isClosed) void this.#heartbeat.beat()
  }

  get #stepMs(): number {
    return Math.max(LEAST_STEP_MS, this.#options.timeoutMs)
  }

  createCounter(rule: FleetRule): FleetCounter {
    return this.#store.createCounter(rule)
  }

  /** This process's part of every limit. */
  get part(): Part {
    return this.#fleet.part
  }

  get status(): StoreStatus {
    const { isHealthy, since, trouble, outages, clockSteps } = this.#health
    const fleet = { ...this.#fleet.part, known: this.#fleet.isKnown }
    const rules = isHealthy ? [] : this.#options.rules()
    return { healthy: isHealthy, since, ...trouble, fleet, rules, ...this.stats, outages, clockSteps }
  }

  get stats(): StoreStats {
    return { asked: this.#asked, decidedHere: this.#decidedHere, leases: this.#leases.stats }
  }

  /** How many permits of a rule this process holds in advance, of one key or of all; undefined if it never does. */
  leasedOf(counter: FleetCounter, key?: string): number | undefined {
    return counter.lease && this.#leases.heldOf(counter, key)
  }

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly SharedCharge[], now: number): boolean | Promise<boolean> {
    const rest = this.#leases.take(charges, now, true)
    return 'answered' in rest ? this.#takeOnArrival(charges, rest) : this.#join(charges, rest, now)
  }

  /** The same after permits have come that a call has waited for, or have not. */
  async #takeOnArrival(charges: readonly SharedCharge[], first: Arrival): Promise<boolean> {
    let arrival = first
    for (let rounds = 1; ; rounds++) {
      const askedAt = await arrival.answered
      const now = this.#options.now()
      const rest = this.#leases.take(charges, now, !arrival.isLast && rounds < MOST_ROUNDS)
      if (!('answered' in rest)) {
        // the store was asked for these permits and had none, though one may be free by now
        const isRefused = arrival.isLast && askedAt !== undefined && this.#denials.refuses(rest, askedAt)
        if (!isRefused) return this.#join(charges, rest, now)
        this.#decidedHere++
        this.#leases.unspend(charges)
        return false
      }
      arrival = rest
    }
  }

  /**
   * Lets the store decide the charges that are not paid from leases; those that are paid are taken back if it refuses. A refusal is
   * not final as long as the store holds permits for this process that no call has used.
   */
  #join(
    charges: readonly SharedCharge[],
    rest: readonly SharedCharge[],
    now: number,
    tries = 1,
  ): boolean | Promise<boolean> {
    if (rest.length === 0) return true
    const askedBefore = this.#asked
    const answer = this.#takeUnleased(rest, now)
    const isAsked = this.#asked !== askedBefore
    if (!isAsked) this.#decidedHere++
    const end = (allowed: boolean): boolean | Promise<boolean> => {
      if (allowed) return true
      if (rest !== charges) this.#leases.unspend(charges)
      const again = isAsked && tries < MOST_TRIES ? this.#leases.afterRefusal(rest, this.#options.now()) : undefined
      return again?.then(() => this.#takeAgain(charges, tries)) ?? false
    }
    return typeof answer === 'boolean' ? end(answer) : answer.then(end)
  }

  #takeAgain(charges: readonly SharedCharge[], tries: number): boolean | Promise<boolean> {
    const now = this.#options.now()
    // the call is counted as decided by what decides it in the end
    this.#asked--
    const rest = this.#leases.take(charges, now, false)
    return 'answered' in rest ? false : this.#join(charges, rest, now, tries + 1)
  }

  #takeUnleased(charges: readonly SharedCharge[], now: number): boolean | Promise<boolean> {
    if (this.#denials.refuses(charges, now)) return false
    if (this.#health.isHealthy) {
      this.#latest = charges
      const answer = this.#ask(charges, now)
      this.#leases.meet(charges, now)
      return answer
    }
    if (!this.#isRejoining) return this.#takeHere(charges, now)
    // others may still count by themselves: this process keeps to its part, and the store knows of all it admits
    const before = charges.map(charge => this.#backlog.stateBefore(charge))
    if (!this.#fallback.take(charges, now)) return false
    const isAsked = charges.map(({ counter }) => this.#isReporting || !(this.#isReminding || refills(counter)))
    const pick = <T>(all: readonly T[], asked: boolean): T[] => all.filter((_, i) => isAsked[i] === asked)
    const owe = (): true => this.#owe(pick(charges, false), pick(before, false))
    if (!isAsked.includes(true)) return owe()
    const answer = this.#ask(pick(charges, true), now, pick(before, true))
    return isAsked.includes(false) ? answer.then(allowed => allowed && owe()) : answer
  }

  /** Judges all charges without counting any. */
  async look(charges: readonly SharedCharge[], now: number): Promise<boolean> {
    if (!this.#health.isHealthy) return this.#fallback.look(charges, now)
    try {
      await within(this.#store.look(charges), this.#options.timeoutMs)
      this.#heardInTime(performance.now())
      this.#leases.look(charges, this.#options.now())
      return charges.every(({ fits, enforced }) => fits || !enforced)
    } catch (error) {
      this.#failed(classifyError(error))
      return this.#fallback.look(charges, now)
    }
  }

  get keepsReservations(): boolean {
    return this.#store.settle !== undefined
  }

  /** Settles a reservation, as soon as the store can be asked. Resolves when that is done, or the reservation has ended. */
  settle(charge: SharedCharge, actual: number, overrun: Overrun): Promise<void> {
    const { counter, key, cost, countedBy } = charge
    this.#denials.forget(counter, key, this.#options.now())
    if (actual < cost) this.#unfollow(charge, cost - actual)
    return countedBy === 'lease' && actual <= cost
      ? Promise.resolve(this.#leases.refund(charge, cost - actual))
      : this.#settlements.send(settlementOf(charge, actual, overrun), charge.holdUs)
  }

  /** A reservation was not settled in time: the store refunds it by itself, unless it does not know of it. */
  expire(charge: SharedCharge): void {
    const { counter, key, cost, countedBy } = charge
    this.#denials.forget(counter, key, this.#options.now())
    this.#unfollow(charge, cost)
    if (countedBy === 'lease') this.#leases.refund(charge, cost)
    else if (countedBy === 'fleet' && !this.keepsReservations) this.giveBack(charge, cost)
  }

  #unfollow(charge: SharedCharge, cost: number): void {
    if (charge.countedBy === 'fleet') this.#fallback.giveBack(charge, cost, this.#options.now())
  }

  giveBack(charge: SharedCharge, cost: number): void {
    if (charge.holdUs > 0 && this.keepsReservations && charge.countedBy === 'fleet') {
      void this.settle(charge, charge.cost - cost, 'clip')
      return
    }
    const { counter, key, moment, wait, countedBy, resetsBefore } = charge
    this.#denials.forget(counter, key, this.#options.now())
    const now = this.#options.now()
    if (countedBy === 'lease') this.#leases.refund(charge, cost)
    if (countedBy === 'fleet') this.#store.giveBack([{ counter, key, cost, moment, wait, resetsBefore }])
    if (countedBy === 'fleet' && !counter.needsRelease) this.#fallback.giveBack(charge, cost, now)
    if (!counter.needsRelease) return
    this.#backlog.cancel(charge, now)
    this.#fallback.release(charge, now)
  }

  /** The keys of a counter, at most so many; those that are known here while the store cannot be asked. */
  async keys(counter: FleetCounter, table: Table, most: number): Promise<string[]> {
    if (this.#health.isHealthy && this.#store.keys) {
      try {
        return await within(this.#store.keys(counter, most), this.#stepMs)
      } catch (error) {
        this.#failed(classifyError(error))
      }
    }
    return Array.from(table.entries(), ([key]) => key).slice(0, most)
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    this.#denials.forget(counter, key, this.#options.now())
    this.#backlog.forget(counter, key)
    this.#fallback.forget(counter, key)
    await this.#leases.release(counter, key, this.#options.now())
    await this.#store.reset(counter, key)
    // what was asked meanwhile was answered by the counts of before
    this.#denials.forget(counter, key, this.#options.now())
  }

  /** The rules have changed: what was known of their keys may be wrong. */
  reconsider(): void {
    this.#denials.clear(this.#options.now())
    this.#leases.renewAll(this.#options.now())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#heartbeat.stop()
    clearTimeout(this.#settling)
    this.#recovery.stop()
    await this.#settlements.close()
    await within(this.#leases.close(), this.#options.timeoutMs).catch(() => {})
    if (this.#health.isHealthy) await this.#fleet.leave().catch(() => {})
  }

  /**
   * Asks the store within the deadline. If the call is counted in this process already, `before` is what was counted there
   * until then.
   */
  #ask(charges: readonly SharedCharge[], now: number, before?: readonly (KeyState | undefined)[]): Promise<boolean> {
    this.#asked++
    return new Promise(resolve => {
      const asked = new AskedCall(this.#events, charges, now, before, resolve)
      this.#deadline.add(asked)
      if (this.#store.takeFor) this.#store.takeFor(asked, charges)
      else
        this.#store.take(charges).then(
          answer => asked.answered(answer),
          error => asked.failed(error),
        )
    })
  }

  #late(asked: AskedCall): void {
    this.#failed(classifyError(new TooLate(this.#options.timeoutMs)))
    const now = this.#options.now()
    if (asked.before || !this.#health.isHealthy) this.#decideHere(asked)
    else if (asked.isAdmitted === undefined && this.#fallback.knows(asked.charges, now))
      asked.decide(this.#takeLate(asked.charges, now))
  }

  #givenUp(asked: AskedCall): void {
    if (asked.before || !this.#health.isHealthy) this.#decideHere(asked)
    else if (asked.isAdmitted === undefined) asked.decide(this.#takeLate(asked.charges, this.#options.now()))
  }

  #answered(asked: AskedCall, answer: Answered): void {
    const { charges, before, isAdmitted } = asked
    if (isAdmitted !== undefined) {
      this.#heardSomething()
      this.#heardLate(charges, answer, isAdmitted)
      return
    }
    const heardAt = this.#heard(charges, answer, asked.askedAt)
    this.#fallback.follow(charges, answer.allowed, before !== undefined, heardAt)
    if (before && !answer.allowed) for (const charge of charges) this.#fallback.release(charge, heardAt)
    asked.decide(answer.allowed)
  }

  #unanswered(asked: AskedCall, error: unknown): void {
    if (asked.isAdmitted !== undefined) return
    this.#failed(classifyError(error))
    this.#decideHere(asked)
  }

  #decideHere(asked: AskedCall): void {
    const { charges, before, isAdmitted } = asked
    if (isAdmitted !== undefined) return
    asked.decide(before ? this.#owe(charges, before) : this.#takeHere(charges, this.#options.now()))
  }

  #heardSomething(): void {
    this.#answers++
    this.#deadline.heard()
  }

  #heardInTime(atMs: number): void {
    this.#heardSomething()
    this.#breaker.succeeded(atMs)
  }

  /** Returns when the answer was read: the store has counted the call no later, and has forgotten what is forgotten here. */
  #heard(charges: readonly SharedCharge[], answer: Answered, askedAt: number): number {
    const { allowed, now: judgedAt, readAtMs = performance.now() } = answer
    if (readAtMs !== this.#lastRead.atMs) this.#lastRead = { atMs: readAtMs, at: this.#options.now() }
    this.#heardInTime(readAtMs)
    for (const charge of charges) {
      charge.countedBy = 'fleet'
      charge.moment = judgedAt + charge.wait
    }
    if (!allowed) {
      const final = charges.filter(charge => !this.#leases.holdsBack(charge))
      this.#denials.learn(final, askedAt)
    }
    this.#leases.heard(charges, askedAt)
    return this.#lastRead.at
  }

  async #requestLease(request: LeaseRequest<FleetCounter>): Promise<LeaseAnswer> {
    try {
      const answer = await this.#store.lease!(request)
      this.#heardInTime(performance.now())
      return answer
    } catch (error) {
      this.#failed(classifyError(error))
      throw error
    }
  }

  /** Follows permits that were used in advance, as if the store had just decided their calls; if none were, as if it had refused one. */
  #followLease({ counter, key, like }: Lease, used: number, answer: LeaseAnswer, askedAt: number): void {
    const { table, whenStoreDown, enforced } = like
    const { remaining, resets, delays } = answer
    const charge = sharedCharge(counter, table, whenStoreDown)
    Object.assign(charge, {
      key,
      cost: 1,
      enforced,
      remaining: [...remaining],
      resets: [...resets],
      delays: [...delays],
    })
    charge.fits = !delays.some(delay => delay > 0)
    // permits that this process holds may cover a later call, so the key is not used up yet
    if (charge.fits || answer.amount > 0) this.#denials.allow(counter, key)
    else this.#denials.learn([charge], askedAt)
    Object.assign(charge, { cost: Math.max(1, used), fits: true })
    this.#fallback.follow([charge], used > 0, false, this.#options.now())
  }

  /** Counts the permits that were used in advance here, too: the store has set them aside, and the share is of what is left beside them. */
  #suspendLeases(): void {
    const now = this.#options.now()
    this.#usedLeases = this.#leases.suspend(now).map(({ lease, used }) => {
      const { table, whenStoreDown } = lease.like
      const charge = Object.assign(sharedCharge(lease.counter, table, whenStoreDown), { key: lease.key, cost: used })
      const before = this.#backlog.stateBefore(charge)
      this.#fallback.hold(charge, now)
      return { charge, before }
    })
  }

  /**
   * The store has lost what it had set aside. Other processes saw that as counted, but a bucket may have refilled it since, before it was
   * used: so the uses are owed.
   */
  #oweLeases(): void {
    for (const { charge, before } of this.#usedLeases) {
      if (isCountedHere(charge) && refills(charge.counter)) this.#backlog.addEarlier(charge, before)
    }
    this.#usedLeases = []
    this.#leases.forgetAll(this.#options.now())
  }

  /** Judges a call whose answer is late, though the store is not away, by what it last said is left. */
  #takeLate(charges: readonly SharedCharge[], now: number): boolean {
    const before = charges.map(charge => this.#backlog.stateBefore(charge))
    return this.#fallback.takeLate(charges, now) && this.#owe(charges, before)
  }

  #takeHere(charges: readonly SharedCharge[], now: number): boolean {
    const before = charges.map(charge => this.#backlog.stateBefore(charge))
    const allowed = this.#fallback.take(charges, now) && this.#owe(charges, before)
    this.#health.judged(allowed, charges.every(isCountedHere))
    return allowed
  }

  /** Remembers to tell the store of charges that were counted here. */
  #owe(charges: readonly SharedCharge[], before: readonly (KeyState | undefined)[]): true {
    charges.forEach((charge, i) => {
      if (charge.countedBy === 'memory' && charge.fits && charge.cost > 0) this.#backlog.add(charge, before[i])
    })
    return true
  }

  /** The call was judged here meanwhile: if it passed, this is its count; if not, the count is nobody's. */
  #heardLate(charges: readonly SharedCharge[], { allowed, now }: Answered, isAdmitted: boolean): void {
    if (!allowed) return
    const unwanted = charges.filter(({ counter }) => !isAdmitted || counter.needsRelease)
    takeBack(this.#store, unwanted, now)
    if (!isAdmitted) return
    const here = this.#options.now()
    for (const charge of charges) {
      if (charge.counter.needsRelease || !isCountedHere(charge)) continue
      // it is settled here, and stays there as it was reserved
      if (charge.holdUs > 0 && this.keepsReservations) {
        const kept = { ...charge, moment: now + charge.wait, countedBy: 'fleet' } as const
        void this.#settlements.send(settlementOf(kept, charge.cost, 'clip'), charge.holdUs)
      }
      this.#backlog.cancel(charge, here)
      this.#fallback.see(charge, here)
    }
  }

  #failed(trouble: StoreError): void {
    const now = performance.now()
    const isHopeless = trouble.isSilent ? this.#breaker.late(now) : this.#breaker.failed(now)
    // of parts, one may fail while the others answer
    const isPlain = !trouble.isSilent && trouble.kind !== 'bug' && !this.#options.hasParts
    if (isHopeless || isPlain) this.#switch(trouble)
    // an answer that is only late may still count its call
    else this.#settleSoon(trouble.isSilent ? this.#silentMs : SETTLE_MS)
  }

  /** From now on this process judges calls; the store was away at the moment given, or is now. */
  #switch(trouble: StoreError, awayAt?: number): void {
    if (!this.#health.isHealthy || this.#isClosed) return
    this.#health.begin(this.#causeOf(trouble))
    const now = this.#options.now()
    const askedAt = this.#deadline.waitingSince ?? now
    // an error that comes long after the question: this process was stalled, and does not know what it has missed
    this.#suspendLeases()
    this.#fallback.begin(awayAt ?? now, awayAt === undefined && now - askedAt > STALL_US)
    this.#recovery.begin()
    // the store can be asked
    if (this.#hasLost) this.#recovery.wake()
    this.#deadline.giveUpAll()
    this.#options.onChange(this.status)
  }

  /** What the store had counted is told to it again, by all processes together as after any outage. */
  #lost(): void {
    this.#hasLost = true
    this.#switch(classifyError(new CountsLost()))
  }

  #clockStepped(byMs: number): void {
    this.#health.clockStepped(byMs)
    warnOnce('DIANA_CLOCK_STEPPED', `that of Redis, ${byMs < 0 ? 'back' : 'forward'} by ${Math.abs(byMs) / 1000} s`)
  }

  async #probe(): Promise<void> {
    const { timeoutMs } = this.#options
    // others add what they have admitted as soon as they have heard of all, and that is not to be taken for what was lost
    const { era: present, hasForgotten } = await within(this.#fleet.readEra(), timeoutMs)
    const isLost = this.#hasLost || hasForgotten
    if (isLost) await this.#remind(present)
    this.#unreportedAt = this.#options.now()
    const { era } = await within(this.#fleet.probeMembers(0), timeoutMs)
    if (isLost) this.#remindedEra = era
    if (this.#latest.length > 0) await within(this.#store.look(copiesOf(this.#latest)), timeoutMs)
  }

  async #gather(withinMs: number): Promise<boolean> {
    const askedAt = this.#options.now()
    const { isComplete, era, hasForgotten } = await within(this.#fleet.probeMembers(withinMs), this.#stepMs)
    if (!isComplete) this.#unreportedAt = askedAt
    this.#isRejoining = true
    this.#isReporting = false
    this.#gatheredEra = era
    if (!this.#hasLost && (!hasForgotten || this.#remindedEra === era)) return isComplete
    await this.#remind(era)
    this.#remindedEra = era
    return false
  }

  /** Reports to the store what it had counted, before any process adds what it has never known. */
  async #remind(era: string | undefined): Promise<void> {
    this.#hasLost = false
    this.#oweLeases()
    this.#backlog.recall(era)
    await remind(this.#store, this.#fallback.known(this.#options.now)).catch(error => {
      this.#hasLost = true
      throw error
    })
  }

  async #rejoin(withinMs: number): Promise<boolean> {
    await within(Promise.resolve(this.#store.renew?.()), this.#stepMs)
    if (this.#hasLost) throw new CountsLost()
    this.#isReporting = true
    this.#health.exceeded(await this.#settle(Math.max(0, this.#options.now() - this.#unreportedAt)))
    if (this.#hasLost) throw new CountsLost()
    // a process that is back stays back: were it to knock again, others would see it as not back
    return await within(this.#fleet.return(this.#gatheredEra, withinMs), this.#stepMs)
  }

  #settle(reportedForUs = 0): Promise<number> {
    return this.#backlog.settle(this.#store, this.#options.now, { reportedForUs, era: this.#gatheredEra })
  }

  /** What was reported is among what the store has counted. */
  #confirmReports(): void {
    for (const { catchUp, table } of this.#backlog.confirm()) this.#fallback.told(catchUp, table, this.#options.now())
  }

  #failedAgain(error: unknown): void {
    this.#isRejoining = false
    const isNews = this.#health.explain(this.#causeOf(classifyError(error)))
    if (isNews) this.#options.onChange(this.status)
  }

  /** A way that is closed has a reason, which the next to use it is not told. */
  #causeOf(trouble: StoreError): StoreError {
    const reason = trouble.kind === 'down' && !trouble.isSilent ? this.#options.lastError?.() : undefined
    return reason === undefined ? trouble : classifyError(reason)
  }

  /** Whether the store may only be slow: a connection is being opened, or was not answered. */
  #mayAnswer(trouble: StoreError): boolean {
    const { lastError } = this.#options
    if (trouble.isSilent || (lastError && lastError() === undefined)) return true
    const { code, message } = this.#causeOf(trouble)
    return code === 'STORE_SILENT' || message.includes('ETIMEDOUT')
  }

  /**
   * True if the store has lost its counts, and not all processes are known to have reported what it had counted. It takes the largest of
   * these reports, so what it counts of a call before is lost with the next report.
   */
  get #isReminding(): boolean {
    return this.#hasLost || this.#remindedEra === this.#gatheredEra
  }

  #recovered(): void {
    this.#isRejoining = false
    this.#remindedEra = undefined
    this.#usedLeases = []
    this.#confirmReports()
    this.#breaker.reset()
    this.#health.end()
    this.#settleSoon()
    void this.#heartbeat.beat()
    this.#options.onChange(this.status)
  }

  /** Tells the store of calls that were judged here though it could be asked. */
  #settleSoon(ms = SETTLE_MS): void {
    if (this.#settling) return
    this.#settling = setTimeout(async () => {
      this.#settling = undefined
      if (!this.#health.isHealthy || this.#backlog.isEmpty) return
      const over = await this.#settle().catch(() => 0)
      attempt('calls that the store missed', () => {
        if (this.#health.isHealthy) this.#confirmReports()
        this.#health.exceeded(over)
      })
      if (!this.#backlog.isEmpty) this.#settleSoon()
    }, ms).unref()
  }
}

/** Whether time brings back what is used: what is counted before all have reported is brought back before they have. */
function refills({ meters }: FleetCounter): boolean {
  return meters.every(meter => meter.rate?.drain !== undefined)
}

function copiesOf(charges: readonly SharedCharge[]): FleetCharge[] {
  return charges.map(({ counter, key, cost, enforced, mayWait }) => {
    return Object.assign(fleetCharge(counter), { key, cost, enforced, mayWait })
  })
}
