import type { Meter } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../failover/catch-up.ts'
import type { LeaseAnswer, LeaseRequest } from './lease-request.ts'
import {
  CHUNK_US,
  CLOCK_MARGIN,
  LEASE_US,
  LEAST_SHARE,
  RECLAIM_US,
  SHARE_OF_ROOM,
  SOON_US,
  shareOf,
  TURN_US,
} from './lease-terms.ts'

/** Multiples of it, without their whole parts, are spread evenly. */
const GOLDEN = 0.618033988749895

/** One level of a limit with the numbers of a key. */
export interface LevelState {
  readonly meter: Meter
  readonly state: Float64Array
  readonly at: number
}

/** Reservations that end at one moment. */
interface Ending {
  readonly until: number
  amount: number
  holders: number
}

/** The last answer to a holder. */
interface Reservation {
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
 * with a thousand holders as with one. The Lua form is reservations.lua.
 */
export class Reservations<Holder> {
  /** In the order in which they end. */
  #endings: Ending[] = []
  readonly #reservations = new Map<Holder, Reservation>()

  get held(): Held {
    const amount = this.#endings.reduce((sum, ending) => sum + ending.amount, 0)
    return { amount, until: this.#endings.at(-1)?.until ?? 0 }
  }

  /** Counts the permits of holders that have not reported in time; before anything else is done at `now`. */
  bookEnded(levels: readonly LevelState[], now: number): void {
    for (let first = this.#endings[0]; first && first.until <= now; first = this.#endings[0]) {
      // at the last moment before a window ends, so that the next one has nothing of it
      if (first.amount > 0) book(levels, first.until - 1, first.amount)
      this.#endings.shift()
    }
    for (const [holder, { until }] of this.#reservations) if (until <= now) this.#reservations.delete(holder)
  }

  /** Answers a request, after `bookEnded`. */
  request(holder: Holder, request: LeaseRequest<unknown>, levels: readonly LevelState[], now: number): LeaseAnswer {
    const known = this.#reservations.get(holder)
    const { amount, until, retryUs, isClosed } =
      known && known.sequence >= request.sequence
        ? { ...known, amount: known.sequence === request.sequence ? known.amount : 0, retryUs: 0, isClosed: false }
        : this.#renew(holder, known, request, levels, now)
    const held = this.held.amount
    return {
      amount,
      lastsUs: amount === 0 ? 0 : lastsUs(until, now),
      retryUs,
      isClosed,
      now,
      remaining: levels.map(({ meter, state, at }) => Math.max(0, meter.remaining(state, at, now) - held)),
      resets: levels.map(({ meter, state, at }) => {
        return Math.max(0, (meter.fullAt ? meter.fullAt(state, at) : meter.idleAt(state, at)) - now)
      }),
    }
  }

  #renew(
    holder: Holder,
    known: Reservation | undefined,
    { sequence, used, kept, wanted }: LeaseRequest<unknown>,
    levels: readonly LevelState[],
    now: number,
  ): { amount: number; until: number; retryUs: number; isClosed: boolean } {
    const before = known?.amount ?? 0
    if (known) this.#release(known)
    let left = before
    for (const { amount, ageUs } of used) {
      const counted = Math.min(amount, left)
      left -= counted
      if (counted > 0) book(levels, now - Math.floor(ageUs * (1 - CLOCK_MARGIN)), counted)
    }
    const stays = Math.min(kept, left)
    const holders = this.#endings.reduce((sum, ending) => sum + ending.holders, 1)
    const until = endOf(levels, now)
    const { granted, ...rest } = grant({
      levels,
      sequence,
      held: this.held.amount,
      kept: stays,
      wanted,
      holders,
      until,
      now,
    })
    const amount = stays + granted
    this.#reserve(until, amount)
    this.#reservations.set(holder, { sequence, amount, until })
    return { amount, until, ...rest }
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

/** How long until `cost` fits beside permits that are held. */
export function delayBeside(
  { amount, until }: Held,
  { meter, state, at }: LevelState,
  now: number,
  cost: number,
): number {
  if (amount === 0 || cost === 0) return meter.delay(state, at, now, cost)
  const delay = meter.delay(state, at, now, cost + amount)
  if (delay !== Number.POSITIVE_INFINITY) return delay
  // as much as is held never fits beside it; the permits held end before that matters
  return Math.max(meter.delay(state, at, now, cost), until - now)
}

/** Counts permits that were used no later than `moment`. */
function book(levels: readonly LevelState[], moment: number, cost: number): void {
  for (const { meter, state, at } of levels) {
    if (meter.record) meter.record(state, at, moment, cost, 0, false)
    else meter.take(state, at, moment, cost, 0)
  }
}

/** When a reservation made now ends: soon, and with the window in which it was made. */
function endOf(levels: readonly LevelState[], now: number): number {
  const soon = Math.ceil((now + LEASE_US + RECLAIM_US) / RECLAIM_US) * RECLAIM_US
  return Math.min(soon, ...levels.map(({ meter, state, at }) => meter.endsAt?.(state, at, now) ?? soon))
}

function lastsUs(until: number, now: number): number {
  return Math.max(0, Math.min(LEASE_US, Math.floor((until - now) * (1 - CLOCK_MARGIN))))
}

/** How many permits are granted at a time if the limit is reached. */
function chunkOf({ perUs = 0, reportUs = 0 }: Meter): number {
  return Math.max(LEAST_SHARE, Math.ceil(perUs * Math.min(CHUNK_US, reportUs / 2)))
}

/** How long a holder waits for others, if all of them wait: some less and some longer, so that they do not ask all at once. */
function turnUs(chunk: number, holders: number, { perUs = 1 }: Meter, sequence: number): number {
  const turn = (sequence * GOLDEN) % 1
  return Math.floor(turn * Math.max(((holders - 1) * chunk) / perUs, holders * TURN_US))
}

interface GrantOptions {
  readonly levels: readonly LevelState[]
  readonly sequence: number
  /** What others hold. */
  readonly held: number
  readonly kept: number
  readonly wanted: number
  readonly holders: number
  readonly until: number
  readonly now: number
}

/** How many more permits a holder gets; or, if there are too few, after how long it can get some. */
function grant({ levels, sequence, held, kept, wanted, holders, until, now }: GrantOptions): {
  granted: number
  retryUs: number
  isClosed: boolean
} {
  let granted = until > now ? wanted : 0
  let retryUs = 0
  let isClosed = false
  for (const { meter, state, at } of levels) {
    const capacity = capacityOf(meter)
    const taken = held + kept
    const room = meter.remaining(state, at, now) - taken
    const share = Math.max(shareOf(capacity, holders), Math.floor((room * SHARE_OF_ROOM) / holders))
    const most = shareOf(capacity, holders) < LEAST_SHARE ? 0 : Math.min(granted, share - kept)
    const chunk = Math.min(most, chunkOf(meter))
    let part = Math.floor(room / (2 * holders))
    if (part < chunk) {
      const wait = meter.delay(state, at, now, taken + chunk)
      if (wait === 0) part = chunk
      else if (wait <= SOON_US) {
        // soon there is more, and a few permits at a time save nothing
        part = 0
        isClosed = true
        retryUs = Math.max(retryUs, wait + turnUs(chunk, holders, meter, sequence))
      } else retryUs = Math.max(retryUs, wait)
    }
    granted = Math.max(0, Math.min(most, part))
  }
  if (granted >= LEAST_SHARE || wanted === 0) return { granted, retryUs: 0, isClosed: false }
  return { granted: 0, retryUs: Math.min(retryUs, LEASE_US), isClosed }
}
