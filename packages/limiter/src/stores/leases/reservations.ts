import { capacityOf, fullAt } from '../../algorithms/algorithm.ts'
import { book, delayBeside, type LevelState } from '../memory/delay-beside.ts'
import type { LeaseAnswer, LeasePolicy, LeaseRequest } from '../store.ts'
import {
  CLOCK_MARGIN,
  LEASE_US,
  LEAST_SHARE,
  LONGEST_TURN_US,
  NETWORK_LEASES,
  RECLAIM_US,
  SHARE_OF_ROOM,
  shareOf,
  TURN_US,
} from './lease-terms.ts'
import { countedBeforeUs } from './use-log.ts'

/** Reservations that end at one moment. */
interface Ending {
  readonly until: number
  amount: number
  holders: number
}

/** The last answer to a holder. */
export interface Reservation {
  readonly sequence: number
  readonly amount: number
  readonly until: number
}

/** Permits that are held beside a key's count: how many, and until when at most. */
export interface Held {
  readonly amount: number
  readonly until: number
}

/**
 * Permits of one key that holders were granted in advance. Until a holder reports which it has used, all of them are inside
 * the limit: a call is judged as if it cost as many more.
 *
 *   count   |######            |      used permits are counted as of their report, less the time since they were used:
 *   held          |========|          no earlier than they were; those that are given back are free at once;
 *   free                   |...|      and those of a holder that does not report are counted as used when they end
 *
 * So in each interval no more is used than what was held at its beginning and what was free or granted since: no more than
 * the limit, whatever the algorithm. The sums are kept by the moment at which they end, so that a request costs the same
 * with a thousand holders as with one. The Lua form is leases.lua.
 */
export class Reservations<Holder> {
  /** In the order in which they end. */
  #endings: Ending[] = []
  readonly #reservations = new Map<Holder, Reservation>()
  readonly #policy: LeasePolicy
  readonly #onCounted: (moment: number, cost: number) => void

  /** `onCounted` is called for what is counted, after the numbers of the key have changed; `known` are reservations that were stored. */
  constructor(
    policy: LeasePolicy = NETWORK_LEASES,
    onCounted: (moment: number, cost: number) => void = () => {},
    known: Iterable<readonly [Holder, Reservation]> = [],
  ) {
    this.#policy = policy
    this.#onCounted = onCounted
    for (const [holder, reservation] of known) {
      this.#reservations.set(holder, reservation)
      this.#reserve(reservation.until, reservation.amount)
    }
  }

  /** The last answer to each holder. */
  get all(): ReadonlyMap<Holder, Reservation> {
    return this.#reservations
  }

  /** Sums of permits by the moment at which they end, the first one first. */
  get endings(): readonly Held[] {
    return this.#endings
  }

  /** True if no holder has asked lately, or holds anything. */
  get isEmpty(): boolean {
    return this.#reservations.size === 0 && this.#endings.length === 0
  }

  /** The holders that have permits now. */
  holders(): Holder[] {
    return [...this.#reservations].filter(([, { amount }]) => amount > 0).map(([holder]) => holder)
  }

  get held(): Held {
    const amount = this.#endings.reduce((sum, ending) => sum + ending.amount, 0)
    return { amount, until: this.#endings.at(-1)?.until ?? 0 }
  }

  /** True if permits are to be counted whose time is over. */
  hasEnded(now: number): boolean {
    return this.#endings.length > 0 && this.#endings[0]!.until <= now
  }

  /** Counts the permits of holders that have not reported in time; before anything else is done at `now`. */
  bookEnded(levels: readonly LevelState[], now: number): void {
    for (let first = this.#endings[0]; first && first.until <= now; first = this.#endings[0]) {
      // at the last moment before a window ends, so that the next one has nothing of it
      if (first.amount > 0) this.#count(levels, first.until - 1, first.amount)
      this.#endings.shift()
    }
    for (const [holder, { until }] of this.#reservations) if (until <= now) this.#reservations.delete(holder)
  }

  /** Answers a request, after `bookEnded`. */
  request(holder: Holder, request: LeaseRequest<unknown>, levels: readonly LevelState[], now: number): LeaseAnswer {
    const known = this.#reservations.get(holder)
    const { amount, until, retryUs, newest } =
      known && known.sequence >= request.sequence
        ? { ...known, amount: known.sequence === request.sequence ? known.amount : 0, retryUs: 0, newest: 0 }
        : this.#renew(holder, known, request, levels, now)
    const held = this.held.amount
    return {
      amount,
      lastsUs: amount === 0 ? 0 : this.#lastsUs(until, now),
      retryUs,
      now,
      newest,
      remaining: levels.map(({ meter, state, at }) => Math.max(0, meter.remaining(state, at, now) - held)),
      resets: levels.map(({ meter, state, at }) => {
        return Math.max(0, fullAt(meter, state, at) - now)
      }),
      delays: levels.map(level => delayBeside(held, level, now, 1, amount)),
    }
  }

  #renew(
    holder: Holder,
    known: Reservation | undefined,
    { sequence, used, kept, needed, wanted }: LeaseRequest<unknown>,
    levels: readonly LevelState[],
    now: number,
  ): { amount: number; until: number; retryUs: number; newest: number } {
    const newest = newestOf(levels, now)
    const before = known?.amount ?? 0
    if (known) this.#release(known)
    let left = before
    for (const { amount, ageUs } of used) {
      const counted = Math.min(amount, left)
      left -= counted
      if (counted > 0) this.#count(levels, now - countedBeforeUs(ageUs), counted)
    }
    const stays = Math.min(kept, left)
    const holders = this.#endings.reduce((sum, ending) => sum + ending.holders, 1)
    const until = this.#endOf(levels, now)
    const held = this.held.amount
    const { granted, retryUs } = grant({
      levels,
      held,
      kept: stays,
      needed,
      wanted,
      holders,
      until,
      now,
      policy: this.#policy,
    })
    const amount = stays + granted
    this.#reserve(until, amount)
    this.#reservations.set(holder, { sequence, amount, until })
    return { amount, until, retryUs, newest }
  }

  #count(levels: readonly LevelState[], moment: number, cost: number): void {
    book(levels, moment, cost)
    this.#onCounted(moment, cost)
  }

  /** Returns when a reservation that is made now ends: soon, and with the window in which it was made. */
  #endOf(levels: readonly LevelState[], now: number): number {
    const soon = Math.ceil((now + this.#leaseUs + RECLAIM_US) / RECLAIM_US) * RECLAIM_US
    return Math.min(soon, ...levels.map(({ meter, state, at }) => meter.rate?.endsAt?.(state, at, now) ?? soon))
  }

  #lastsUs(until: number, now: number): number {
    return Math.max(0, Math.min(this.#leaseUs, Math.floor((until - now) * (1 - CLOCK_MARGIN))))
  }

  get #leaseUs(): number {
    return LEASE_US * this.#policy.stretch
  }

  #release({ amount, until }: Reservation): void {
    const ending = this.#endings.find(other => other.until === until)
    if (!ending) return
    ending.amount -= amount
    ending.holders--
    if (ending.holders === 0) this.#endings = this.#endings.filter(other => other !== ending)
  }

  #reserve(until: number, amount: number): void {
    const ending = this.#endings.find(other => other.until === until)
    if (ending) {
      ending.amount += amount
      ending.holders++
    } else {
      this.#endings.push({ until, amount, holders: 1 })
      this.#endings.sort((a, b) => a.until - b.until)
    }
  }
}

/** The moment of the newest call that a window counts; 0 if there is none. */
function newestOf(levels: readonly LevelState[], now: number): number {
  let newest = 0
  for (const { meter, state, at } of levels) {
    const windowUs = meter.rate?.windowUs
    if (windowUs === undefined) continue
    const idleAt = meter.idleAt(state, at)
    if (idleAt > now) newest = Math.max(newest, idleAt - windowUs)
  }
  return newest
}

interface GrantOptions {
  readonly levels: readonly LevelState[]
  /** What others hold. */
  readonly held: number
  readonly kept: number
  readonly needed: number
  readonly wanted: number
  readonly holders: number
  readonly until: number
  readonly now: number
  readonly policy: LeasePolicy
}

/** How many more permits a holder gets; and, if too little is left to grant all that it wants in advance, after how long it asks again. */
function grant({ levels, held, kept, needed, wanted, holders, until, now, policy }: GrantOptions): {
  granted: number
  retryUs: number
} {
  let [must, ahead] = until > now ? [needed, wanted] : [0, 0]
  let isScarce = until <= now
  for (const { meter, state, at } of levels) {
    const least = shareOf(capacityOf(meter), holders, policy)
    const room = Math.max(0, meter.remaining(state, at, now) - held - kept)
    must = Math.min(must, room)
    const share = Math.max(least, Math.floor((room * SHARE_OF_ROOM) / holders)) - kept
    ahead = least < LEAST_SHARE ? 0 : Math.max(0, Math.min(ahead, share))
    // as much is left for the others; of the last permits none are granted in advance, for others could not use them
    const part = Math.floor((room - must) / (2 * holders))
    if (part < ahead) isScarce = true
    ahead = Math.min(ahead, part < LEAST_SHARE ? 0 : part)
  }
  const retryUs = isScarce ? Math.min((holders + 3) * TURN_US, LONGEST_TURN_US) : 0
  return { granted: must + ahead, retryUs }
}
