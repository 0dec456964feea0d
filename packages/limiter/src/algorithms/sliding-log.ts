import type { Algorithm, Limit, Meter, MeterMigration, MeterRate, MeterRedis, WaitOptions } from './algorithm.ts'
import { InvalidLimitError, maxWaitUsOf, windowReportUs } from './algorithm.ts'
import type { Envelope } from './envelope.ts'

/*
 * Sliding log: the moment of every admitted call is kept until it has left the window. Exact to the microsecond, at
 * eight bytes a call.
 *
 *          |<------ period ------>|
 *   ..x....|.x...xx......x........|now       count = what lies between
 *
 * The log is a ring of `count` entries, each the moment at which its call leaves. The entry to be written next
 * is the oldest one: a call passes when that one has left, and waits for just that moment if it may.
 * Older calls without an entry, because others wait for them to leave or the limit was lowered, are `dropped`:
 * only their number is kept, for they leave before all others. When a rule changes, the newest calls are kept, as many as
 * the new limit covers, and leave after the new period.
 */
const NEXT = 0
const RING = 1
const LARGEST = 1000
/** The first number of a state is the entry to be written next plus, in steps of this, how many calls were dropped. */
const DROPPED = 1024

export const slidingLog: Algorithm = {
  name: 'sliding-log',
  limit: 'rate',
  options: {},
  meter(limit: Limit, _options: object, waitOptions?: WaitOptions): Meter {
    if (limit.count > LARGEST) {
      throw new InvalidLimitError(
        'limit',
        `keeps every call, so at most ${LARGEST} per period; use algorithm: sliding-window`,
      )
    }
    return new SlidingLog(limit, maxWaitUsOf(waitOptions))
  },
}

class SlidingLog implements Meter, MeterRate, MeterMigration {
  readonly slots: number
  readonly maxWaitUs: number
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly redis: MeterRedis
  readonly scale: readonly number[]
  readonly perUs: number
  readonly windowUs: number
  readonly reportUs: number | undefined
  readonly envelope: Envelope
  readonly #count: number
  readonly #places: number
  readonly #periodUs: number

  constructor(limit: Limit, maxWaitUs: number) {
    // with a limit of 0 one entry remembers when the last call leaves, in case the limit changes
    this.#places = Math.max(1, limit.count)
    this.slots = RING + this.#places
    this.maxWaitUs = maxWaitUs
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.perUs = limit.count / this.#periodUs
    this.windowUs = this.#periodUs
    this.reportUs = windowReportUs(this.#periodUs)
    const window = { kind: 'window', units: limit.count, periodUs: this.#periodUs } as const
    this.envelope = { largest: limit.count, ceiling: window, floor: window }
    this.scale = [this.#periodUs]
    const numbers = { count: this.#count, places: this.#places, periodUs: this.#periodUs }
    this.redis = { lua: { name: 'sliding-log' }, numbers }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    return Math.max(0, state[at + RING + this.#place(state, at, cost - 1)]! - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    // a clock that steps back must not write a call before the ones already there
    const leaves = Math.max(now + delay + this.#periodUs, state[at + RING + this.#place(state, at, -1)]!)
    for (let place = 0; place < cost; place++) state[at + RING + this.#place(state, at, place)] = leaves
    // if a kept call has left, so have all that were dropped
    const dropped = delay === 0 ? 0 : Math.min(LARGEST, droppedIn(state[at + NEXT]!) + cost)
    state[at + NEXT] = this.#place(state, at, cost) + dropped * DROPPED
  }

  record(state: Float64Array, at: number, now: number, cost: number, delay: number, carries: boolean): void {
    const fitsIn = carries && cost <= this.#count ? this.delay(state, at, now, cost) : 0
    const leaves = Math.max(
      now + Math.max(delay, fitsIn) + this.#periodUs,
      state[at + RING + this.#place(state, at, -1)]!,
    )
    let dropped = this.#isFull(state, at, now) ? droppedIn(state[at + NEXT]!) : 0
    const places = Math.min(cost, this.#places)
    for (let offset = 0; offset < places; offset++) {
      const place = at + RING + this.#place(state, at, offset)
      if (state[place]! > now) dropped++
      state[place] = leaves
    }
    dropped = Math.min(LARGEST, dropped + cost - places)
    state[at + NEXT] = (((state[at + NEXT]! % DROPPED) + places) % this.#places) + dropped * DROPPED
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    if (this.#count > 0) this.record(state, at, now, cost, 0, false)
  }

  insert(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    const leaves = moment + this.#periodUs
    let older = 0
    while (older < this.#places && state[at + RING + this.#place(state, at, older)]! <= leaves) older++
    // the oldest entries make room; calls older than all others have none
    const places = Math.min(cost, older)
    let dropped = (this.#isFull(state, at, now) ? droppedIn(state[at + NEXT]!) : 0) + cost - places
    for (let offset = 0; offset < older; offset++) {
      const entry = at + RING + this.#place(state, at, offset)
      if (offset < places && state[entry]! > now) dropped++
      state[entry] = offset + places < older ? state[at + RING + this.#place(state, at, offset + places)]! : leaves
    }
    state[at + NEXT] = (state[at + NEXT]! % DROPPED) + Math.min(LARGEST, dropped) * DROPPED
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    if (moment + this.#periodUs <= now) return
    for (let undone = 0; undone < cost && this.#remove(state, at, now, moment, changedAt); undone++);
  }

  remaining(state: Float64Array, at: number, now: number): number {
    let [low, high] = [0, this.#count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (state[at + RING + this.#place(state, at, middle)]! <= now) low = middle + 1
      else high = middle
    }
    return low
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const oldPlaces = old.length - RING
    const leavesAt = (age: number): number => old[RING + (((old[NEXT]! % DROPPED) - age + oldPlaces) % oldPlaces)]!
    let dropped = leavesAt(oldPlaces) > now ? droppedIn(old[NEXT]!) : 0
    const known = oldPlaces + Math.min(dropped, Math.max(0, this.#places - oldPlaces))
    dropped -= known - oldPlaces
    for (let age = 1; age <= known; age++) {
      const leaves = leavesAt(Math.min(age, oldPlaces))
      if (leaves <= now) break
      if (age > this.#places) dropped++
      else state[at + RING + this.#places - age] = leaves + this.#periodUs - oldScale[0]!
    }
    state[at + NEXT] = dropped * DROPPED
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + RING + this.#place(state, at, -1)]!
  }

  /** Takes one call admitted at `moment` out of the log; the older ones move up to fill its entry. */
  #remove(state: Float64Array, at: number, now: number, moment: number, changedAt: number): boolean {
    const leaves = moment + this.#periodUs
    let offset = this.#places - 1
    while (offset >= 0 && state[at + RING + this.#place(state, at, offset)]! > leaves) offset--
    if (offset < 0 && moment > changedAt && droppedIn(state[at + NEXT]!) > 0) {
      // older than all entries: it is one of those that have none
      state[at + NEXT] = state[at + NEXT]! - DROPPED
      return true
    }
    if (offset < 0 || state[at + RING + this.#place(state, at, offset)] !== leaves) return false
    for (; offset > 0; offset--) {
      state[at + RING + this.#place(state, at, offset)] = state[at + RING + this.#place(state, at, offset - 1)]!
    }
    if (droppedIn(state[at + NEXT]!) > 0) {
      state[at + NEXT] = state[at + NEXT]! - DROPPED
      // a dropped call has an entry again, and leaves no later than the next one
      if (moment <= now) return true
    }
    // the call once overwritten by this one had left by `moment`, and came before all that are still here
    const oldest = at + RING + this.#place(state, at, 0)
    const second = this.#places > 1 ? state[at + RING + this.#place(state, at, 1)]! : moment
    state[oldest] = Math.min(moment, second)
    return true
  }

  #isFull(state: Float64Array, at: number, now: number): boolean {
    return state[at + RING + this.#place(state, at, 0)]! > now
  }

  #place(state: Float64Array, at: number, offset: number): number {
    const place = (state[at + NEXT]! % DROPPED) + offset
    if (place < 0) return place + this.#places
    return place < this.#places ? place : place - this.#places
  }
}

function droppedIn(next: number): number {
  return Math.floor(next / DROPPED)
}
