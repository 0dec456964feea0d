import { fullAt, type Meter, type Overrun } from '../../algorithms/algorithm.ts'
import { type CatchUp, catchUpLevel, dueOf } from '../catch-up.ts'
import { LEASE_MS } from '../held-slots.ts'
import { NETWORK_LEASES } from '../leases/lease-terms.ts'
import { Reservations } from '../leases/reservations.ts'
import { book, delayBeside, type LevelState } from '../memory/delay-beside.ts'
import type { FleetCharge, FleetCounter, FleetRefund, FleetSettlement, LeaseAnswer, LeaseRequest } from '../store.ts'
import { Entries, type Entry, type LedgerRule, levelsOf } from './entries.ts'
import { type HeldBy, type LedgerRecord, type Reserved, writeLedger } from './ledger-text.ts'

/** The concurrency slots of a process that has renewed nothing for this time are released. */
const SLOT_US = LEASE_MS * 1000
/** Calls that hold a slot may last for so long, and still release no slot of others after a reset. */
const HELD_US = 600_000_000
/** A reset is remembered for so long at least. */
const RESET_US = 60_000_000
/** So long it is known that a reservation was settled after its end. */
const SETTLED_US = 60_000_000
/** More reservations of one caller are counted, and released only when they are settled. */
const MOST_RESERVED = 1024
/** Nothing is kept for longer than 300 years. */
const LONGEST_US = 1e16

/** What one ledger answers to a charge. */
export interface ChargeAnswer {
  readonly delays: readonly number[]
  readonly wait: number
  readonly fits: boolean
  remaining: readonly number[]
  resets: readonly number[]
}

/** The moment of a move, and the process that makes it. */
export interface MoveBy {
  readonly now: number
  readonly holder: string
}

/**
 * All that one rule knows of one caller: the limits that the caller has had with their numbers, what is reserved, leased and held, and
 * the last reset. Each move is the same as in Redis (decide.lua, settlements.lua, leases.lua).
 */
export class Ledger {
  readonly #now: number
  readonly #holder: string
  readonly #entries: Entries
  readonly #leases: Reservations<string>
  readonly #slots: Map<string, HeldBy>
  #since: number
  #known: number
  #reserved: Reserved[]
  #unlisted: number
  #isChanged = false

  /** `rule` is the first one that asks: what has ended is released by it. */
  constructor(record: LedgerRecord, rule: LedgerRule, { now, holder }: MoveBy) {
    // a process whose clock is behind that of another one
    this.#now = Math.max(now, record.at)
    this.#holder = holder
    this.#entries = new Entries([...record.entries], rule, this.#now)
    this.#leases = new Reservations(NETWORK_LEASES, (_, cost) => this.#bookInOthers(cost), record.leases)
    this.#slots = new Map(Array.from(record.slots, ([other, held]) => [other, { ...held }]))
    this.#since = record.since
    this.#known = record.known
    this.#reserved = [...record.reserved]
    this.#unlisted = record.unlisted
    this.#bookEnded()
    this.#releaseEnded()
    this.#releaseSlots()
    // a store may delete it by now, or keep it
    if (this.#lasts <= this.#now) this.#entries.list = []
  }

  /** The rule whose move is made next. */
  set rule(rule: LedgerRule) {
    this.#entries.rule = rule
  }

  /** Returns how long each level lets a charge wait. */
  measure({ cost, mayWait }: FleetCharge): ChargeAnswer {
    const held = this.#leases.held.amount
    const levels = levelStatesOf(this.#entries.own)
    const { own } = this.#entries
    const delays = levels.map(level => this.#entries.delayOwing(own, cost, delayBeside(held, level, this.#now, cost)))
    const fits = delays.every((delay, i) => delay === 0 || (mayWait && delay <= levels[i]!.meter.maxWaitUs))
    return { delays, wait: Math.max(0, ...delays), fits, remaining: [], resets: [] }
  }

  /** Counts a charge that passes after `wait`. */
  take({ counter, cost, holdUs, reservation }: FleetCharge, wait: number): void {
    const { own } = this.#entries
    this.#entries.use(own)
    this.#entries.joinOthers(own)
    for (const { meter, state, at } of levelStatesOf(own)) meter.take(state, at, this.#now, cost, wait)
    this.#entries.recordInOthers(own, cost, wait)
    if (holdUs > 0) this.#reserve(reservation, this.#now + holdUs, cost, this.#now + wait)
    if (counter.needsRelease) this.#hold((this.#slots.get(this.#holder)?.amount ?? 0) + cost)
    this.#isChanged = true
  }

  /** Stores of a call that is not admitted what it changes all the same: a limit that the caller has now, and when it was first seen. */
  begin(): void {
    const { own } = this.#entries
    const isMoved = this.#entries.list.length > 0 && !this.#entries.list.includes(own)
    const begun = levelStatesOf(own).filter(({ meter, state, at }) => meter.rate?.start?.begin(state, at, this.#now))
    if (!isMoved && begun.length === 0) return
    if (!this.#entries.list.includes(own)) this.#entries.use(own)
    this.#isChanged = true
  }

  /** Adds to an answer what each level has left. */
  report(answer: ChargeAnswer): void {
    const held = this.#leases.held.amount
    const levels = levelStatesOf(this.#entries.own)
    const { own } = this.#entries
    answer.remaining = levels.map(({ meter, state, at }) => {
      return Math.max(0, this.#entries.remainingOwing(own, meter.remaining(state, at, this.#now)) - held)
    })
    answer.resets = levels.map(({ meter, state, at }) => {
      return Math.max(0, fullAt(meter, state, at) - this.#now)
    })
  }

  /** Takes back a charge, unless the caller was reset since. */
  refund({ counter, cost, moment, wait = 0 }: FleetRefund): void {
    if (moment - wait < this.#since) return
    const held = this.#slots.get(this.#holder)?.amount ?? 0
    const amount = counter.needsRelease ? Math.min(cost, held) : cost
    if (amount === 0) return
    this.#entries.continueChanged()
    this.#entries.refund(this.#now, amount, moment)
    if (counter.needsRelease) this.#hold(held - amount)
    this.#isChanged = true
  }

  /** Settles a reservation, once; after its end it was refunded, and all that was used is counted. */
  settle({ reservation: id, cost, moment, wait = 0, actual, until, overrun }: FleetSettlement): void {
    const place = id > 0 ? this.#reserved.findIndex(one => one.id === id) : -1
    const found = this.#reserved[place]
    if (found && found.amount > 0) this.#reserved.splice(place, 1)
    this.#isChanged ||= found !== undefined
    if (found?.amount === 0 || moment - wait < this.#since) return
    if (!found && until > this.#now && this.#unlisted <= this.#now) return
    const isLate = !found && until <= this.#now
    if (isLate && id > 0) this.#reserve(id, this.#now + SETTLED_US, 0, moment)
    const counted = isLate ? 0 : cost
    this.#isChanged = true
    this.#entries.continueChanged()
    if (actual < counted) this.#entries.refund(this.#now, counted - actual, moment)
    else if (actual > counted) this.#overdraw(actual - counted, overrun)
  }

  /** Reports permits that the process has used in advance, and leases others. */
  lease(request: LeaseRequest<FleetCounter>): LeaseAnswer {
    const { own } = this.#entries
    this.#entries.use(own)
    this.#isChanged = true
    return this.#leases.request(this.#holder, request, levelStatesOf(own), this.#now)
  }

  /** Counts what the store has missed, as far as it fits; returns what does not fit into each level. */
  catchUp({ levels: missed }: CatchUp<unknown>): number[] {
    const { own, rule } = this.#entries
    this.#entries.use(own)
    this.#isChanged = true
    const held = this.#leases.held.amount
    const most = Math.max(0, ...missed.map(({ missing }) => missing))
    const unfit = levelStatesOf(own).map((one, level) => {
      const { known, missing, later } = missed[level] ?? { known: 0, missing: 0 }
      if (rule.stated === undefined) return catchUpLevel(one, { known, missing, later }, this.#now, held)
      const { due } = dueOf(one, { known, missing }, this.#now, held)
      const left = catchUpLevel(one, { known, missing }, this.#now, held)
      // the other limits of the caller learn of the same calls
      if (due > left) this.#entries.recordInOthers(own, due - left, 0)
      return left
    })
    // other versions get what is known to be used from their own processes
    if (most > 0 && rule.stated === undefined) this.#recordBeside(own, most)
    return unfit
  }

  /** Forgets the caller, and remembers when, as long as charges of before could be refunded. */
  reset({ needsRelease }: FleetCounter): void {
    const idleAt = Math.min(this.#entries.idleAt, this.#now + LONGEST_US)
    const least = this.#now + (needsRelease ? HELD_US : RESET_US)
    this.#known = Math.max(least, this.#known, needsRelease ? 0 : idleAt)
    this.#since = this.#now
    this.#entries.list = []
    this.#reserved = []
    this.#slots.clear()
    this.#isChanged = true
  }

  /** Lets a changed limit continue the counts, and renews the slots of the process: it holds at least and at most so many. */
  renew({ needsRelease }: FleetCounter, least: number, most: number): void {
    const { own } = this.#entries
    this.#entries.use(own)
    this.#isChanged = true
    if (!needsRelease) return
    const held = this.#slots.get(this.#holder)?.amount ?? 0
    const amount = Math.max(least, Math.min(most, held))
    for (const entry of this.#entries.list) {
      for (const { meter, state, at } of levelStatesOf(entry)) {
        if (amount > held) meter.take(state, at, this.#now, amount - held, 0)
        else if (amount < held) meter.refund(state, at, this.#now, held - amount, this.#now)
      }
    }
    this.#hold(amount)
  }

  /** The text to be stored, and until when it matters; no text if it does not matter any more; undefined if nothing was changed. */
  get saved(): { readonly text: string | undefined; readonly until: number } | undefined {
    if (!this.#isChanged) return undefined
    const until = this.#lasts
    if (until <= this.#now) return { text: undefined, until }
    const text = writeLedger({
      at: this.#now,
      since: this.#since,
      known: this.#known,
      entries: this.#entries.list,
      reserved: this.#reserved,
      unlisted: this.#unlisted,
      leases: this.#leases.all,
      slots: this.#slots,
    })
    return { text, until }
  }

  get #lasts(): number {
    const slotsUntil = Math.max(0, ...Array.from(this.#slots.values(), ({ until }) => until))
    const idleAt = slotsUntil > 0 ? slotsUntil : this.#entries.idleAt
    const reservedUntil = Math.max(this.#unlisted, ...this.#reserved.map(({ endsAt }) => endsAt))
    return Math.min(this.#now + LONGEST_US, Math.max(this.#known, idleAt, reservedUntil, this.#idleWithLeases))
  }

  /** From when on nothing matters if all that is leased counts as used when it ends. */
  get #idleWithLeases(): number {
    let idleAt = 0
    if (this.#leases.endings.length === 0) return idleAt
    for (const { meter, state, at } of this.#entries.list.flatMap(levelStatesOf)) {
      const copy = { meter, state: state.slice(at, at + meter.slots), at: 0 }
      for (const { until, amount } of this.#leases.endings) {
        if (amount > 0) book([copy], until - 1, amount)
        idleAt = Math.max(idleAt, until)
      }
      idleAt = Math.max(idleAt, meter.idleAt(copy.state, 0))
    }
    return idleAt
  }

  /** Counts the permits of processes that have not reported in time, before anything else is done. */
  #bookEnded(): void {
    if (!this.#leases.hasEnded(this.#now)) return
    if (this.#entries.list.length === 0) this.#entries.use(this.#entries.own)
    this.#leases.bookEnded(levelStatesOf(this.#entries.list[0]!), this.#now)
    this.#isChanged = true
  }

  /** Refunds what was not settled in time, each as of its end. */
  #releaseEnded(): void {
    const ended = this.#reserved.filter(({ endsAt }) => endsAt <= this.#now)
    if (ended.length === 0) return
    this.#reserved = this.#reserved.filter(({ endsAt }) => endsAt > this.#now)
    ended.sort((one, other) => one.endsAt - other.endsAt)
    for (const { endsAt, amount, moment } of ended) if (amount > 0) this.#entries.refund(endsAt, amount, moment)
    this.#isChanged = true
  }

  /** Releases the slots of processes that have renewed nothing. */
  #releaseSlots(): void {
    for (const [holder, { amount, until }] of this.#slots) {
      if (until > this.#now) continue
      this.#entries.refund(this.#now, amount, this.#now)
      this.#slots.delete(holder)
      this.#isChanged = true
    }
  }

  #hold(amount: number): void {
    if (amount > 0) this.#slots.set(this.#holder, { amount, until: this.#now + SLOT_US })
    else this.#slots.delete(this.#holder)
  }

  #reserve(id: number, endsAt: number, amount: number, moment: number): void {
    if (this.#reserved.length < MOST_RESERVED) this.#reserved.push({ id, endsAt, amount, moment })
    else this.#unlisted = Math.max(this.#unlisted, endsAt)
  }

  /** Counts what was used beyond a reservation: beyond the limit, or up to it. */
  #overdraw(cost: number, overrun: Overrun): void {
    const { own } = this.#entries
    const roomIn = ({ meter, state, at }: LevelState): number => meter.remaining(state, at, this.#now)
    const amount = overrun === 'debt' ? cost : Math.min(cost, ...levelStatesOf(own).map(roomIn))
    if (amount <= 0) return
    this.#entries.use(own)
    for (const entry of this.#entries.list) {
      for (const level of levelStatesOf(entry)) {
        const { meter, state, at } = level
        if (overrun === 'debt' && meter.migrate?.overdraw) meter.migrate.overdraw(state, at, this.#now, amount)
        else if (entry !== own) this.#entries.recordPart(own, entry, [meter, at], amount)
        else if (roomIn(level) > 0) meter.take(state, at, this.#now, Math.min(amount, roomIn(level)), 0)
      }
    }
  }

  #bookInOthers(cost: number): void {
    const [first] = this.#entries.list
    if (first) this.#recordBeside(first, cost)
  }

  #recordBeside(own: Entry, cost: number): void {
    for (const entry of this.#entries.list) if (entry !== own) this.#entries.record(entry, own, cost, 0)
  }
}

function levelStatesOf(entry: Entry): (LevelState & { readonly meter: Meter })[] {
  return levelsOf(entry).map(([meter, at]) => ({ meter, state: entry.state, at }))
}
