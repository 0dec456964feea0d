import type { Meter, Overrun } from '../algorithms/algorithm.ts'
import type { CatchUp } from './catch-up.ts'
import { type Charge, perLevel } from './charge.ts'

/** The parts of a rule that its counts depend on. */
export interface FleetRule {
  readonly id: string
  readonly meters: readonly Meter[]
  readonly algorithm: string
  readonly by?: readonly string[] | undefined
  readonly enforced: boolean
  /** Whether processes may hold permits in advance; default: auto, if it pays. */
  readonly lease?: 'auto' | 'off' | undefined
  /** For a rule whose limit depends on the caller, the meters of all limits that it states; `meters` is one of them, or of another limit. */
  readonly limitMeters?: readonly Meter[] | undefined
  /** What the meters were made of, for a store that makes its own of them. */
  readonly terms?: readonly unknown[] | undefined
}

/** The counts of one rule. Each store creates its own, and only gets those. */
export interface FleetCounter {
  readonly meters: readonly Meter[]
  /** A charge to it lasts until it is refunded. */
  readonly needsRelease: boolean
  /** How its permits are leased; undefined if they are not. */
  readonly lease?: LeaseTerms | undefined
}

/** What a process needs to know of a rule to lease its permits. */
export interface LeaseTerms {
  /** The most that the rule admits at once. */
  readonly capacity: number
  /** For how long permits that were used may go unreported when the limit is nearly reached. */
  readonly reportUs: number
  readonly policy: LeasePolicy
}

/** How freely a store leases permits. */
export interface LeasePolicy {
  /** The part of a limit that all leases of a key may hold together. */
  readonly share: number
  /** Multiplies the durations of leases. */
  readonly stretch: number
  /** A key that is met more often gets a lease. */
  readonly perSecond: number
  /** For how long ahead permits are requested of a key that is met often. */
  readonly aheadUs: number
  /** True if more permits are asked for when few are left, false if at the next tick, together with those of other keys. */
  readonly asksAtOnce: boolean
}

/** A charge to one key's counts. */
export interface FleetCharge extends Charge {
  counter: FleetCounter
}

export function fleetCharge(counter: FleetCounter): FleetCharge {
  const levels = counter.meters.length
  return {
    counter,
    key: '',
    cost: 0,
    enforced: true,
    mayWait: true,
    delays: [],
    wait: 0,
    fits: true,
    remaining: perLevel(levels),
    resets: perLevel(levels),
    holdUs: 0,
    reservation: 0,
  }
}

/** A charge that was counted as admitted at `moment`, by the clock of the store, and is taken back. */
export interface FleetRefund {
  readonly counter: FleetCounter
  readonly key: string
  readonly cost: number
  readonly moment: number
  /** How long before that moment it was charged; 0 if left out. */
  readonly wait?: number | undefined
  /** How many keys had been reset in this process when it was charged: after a later reset of its key nothing is refunded. */
  readonly resetsBefore?: number | undefined
}

/** What was really used of a charge that was counted as admitted at `moment`. */
export interface FleetSettlement extends FleetRefund {
  /** The id of the reservation; 0 if there was none, and `actual` is counted in addition. */
  readonly reservation: number
  /** When the reservation ends, by the clock of the store. */
  readonly until: number
  readonly actual: number
  readonly overrun: Overrun
}

/** What releases a reservation that was made at `now`. */
function releaseOf(charge: FleetCharge, now: number): FleetSettlement {
  const { counter, key, cost, wait, holdUs, reservation } = charge
  const until = now + holdUs
  return { counter, key, cost, moment: now + wait, wait, reservation, until, actual: 0, overrun: 'clip' }
}

/** Takes back what a store has charged a call at `now`, by its clock; what was reserved is released by its id. */
export function takeBack(
  store: Pick<SharedStore, 'giveBack' | 'settle'>,
  charges: readonly FleetCharge[],
  now: number,
): void {
  const all = charges.filter(({ cost, fits }) => cost > 0 && fits)
  const isReserved = ({ holdUs }: FleetCharge): boolean => holdUs > 0 && store.settle !== undefined
  const reserved = all.filter(isReserved)
  if (reserved.length > 0) store.settle!(reserved.map(charge => releaseOf(charge, now))).catch(() => {})
  const counted = all.filter(charge => !isReserved(charge))
  store.giveBack(counted.map(({ counter, key, cost, wait }) => ({ counter, key, cost, moment: now + wait, wait })))
}

/** A store's answer: whether the call may pass, by which clock. */
export interface Answered {
  readonly allowed: boolean
  readonly now: number
  /** When this process read it, by `performance.now()`: the same number for answers that were read together. */
  readonly readAtMs?: number | undefined
}

/** Gets the answer to one question, or why there is none. */
export interface AnswerListener {
  answered(answer: Answered): void
  failed(error: unknown): void
}

/** One request of a process for the permits that it holds of a key: to report, to keep, to give back and to get some. */
export interface LeaseRequest<Counter> {
  readonly counter: Counter
  readonly key: string
  /** Larger than that of the request before. A number that is repeated is answered as before, and counts nothing again. */
  readonly sequence: number
  /** Permits that were used since the request before, the oldest first. */
  readonly used: readonly Use[]
  /** Permits that are not used yet, and are kept. What is neither used nor kept is given back. */
  readonly kept: number
  /** Calls wait for this many more: all of them are granted that are free. */
  readonly needed: number
  /** How many more are wanted for calls to come: they are granted if enough is left for other processes. */
  readonly wanted: number
}

/** Permits that were used, the last of them so long before they were reported. */
export interface Use {
  /** Infinity if it is not known how many. */
  readonly amount: number
  readonly ageUs: number
}

export interface LeaseAnswer {
  /** How many permits the process holds now, those it has kept among them. */
  readonly amount: number
  /** For how long, from before it asked. */
  readonly lastsUs: number
  /** Too little is left to grant all that is wanted in advance: the process asks again no sooner than after this time; else 0. */
  readonly retryUs: number
  /** When the store answered, by its own clock: used permits are counted as of this moment, less their age. */
  readonly now: number
  /** A window counts no call before the newest that it has: permits that were used before this moment are counted as of it. */
  readonly newest: number
  /** For each level what is left beside all leases, the microseconds until all of it is, and until one permit is free. */
  readonly remaining: readonly number[]
  readonly resets: readonly number[]
  readonly delays: readonly number[]
}

/** What a store reports of itself, besides its answers. */
export interface StoreWatcher {
  /** What the store had counted is gone; nothing is counted there before this process has heard of it. */
  countsLost(): void
  /** The clock of the store has stepped, forward if the number is positive. */
  clockStepped(byMs: number): void
  /** The store asks for the permits that this process holds of a key: a call of another process needs them. */
  recalled(counter: FleetCounter, key: string): void
}

/** Where several processes count together: Redis, or any other store that decides all charges of a call at once. */
export interface SharedStore {
  createCounter(rule: FleetRule): FleetCounter
  /** Decides all charges at once and writes the answer of each level into them: all are counted, or, if one refuses, none. */
  take(charges: readonly FleetCharge[]): Promise<Answered>
  /** The same without a promise of its own, for a store that answers many calls at once. */
  takeFor?(listener: AnswerListener, charges: readonly FleetCharge[]): void
  /** Decides all charges without counting any. */
  look(charges: readonly FleetCharge[]): Promise<Answered>
  /** Takes charges back, without an answer. */
  giveBack(refunds: readonly FleetRefund[]): void
  /**
   * Makes charges count as what was really used, each once, by the ids of their reservations. A store that has this keeps
   * reservations, and refunds those that end unsettled; in others, a charge is settled by refunds and by further charges.
   */
  settle?(settlements: readonly FleetSettlement[]): Promise<void>
  /** Reports permits that this process has used in advance, and reserves others; a store without this leases none. */
  lease?(request: LeaseRequest<FleetCounter>): Promise<LeaseAnswer>
  /** Counts calls that the store has missed, as far as they fit, and writes into `unfit` what does not. */
  catchUp(missed: CatchUp<FleetCounter>): Promise<void>
  /** Keys with counts, at most `most`; some may be idle already. A store without this cannot list them. */
  keys?(counter: FleetCounter, most: number): Promise<string[]>
  /** Forgets what is counted for one key of a rule. */
  reset(counter: FleetCounter, key: string): Promise<void>
  /** Renews the leases of this process, so that the store does not release them. A promise says when it has. */
  renew?(): unknown
  /** Reports to one watcher from now on. */
  watch?(watcher: StoreWatcher): void
  close(): void
}
