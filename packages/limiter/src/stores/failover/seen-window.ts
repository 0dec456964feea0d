import type { Meter, MeterMigration, MeterRate } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../../algorithms/algorithm.ts'
import { WINDOW_SLICES } from '../catch-up.ts'

/*
 * The calls of a window as one process learns of them from what the store says is left: the sum, not the moments.
 *
 *   slices    | 3 | 9 | 10 | 8 | ... | 12 | 4 |      each a 20th of the period, one more than are in it
 *               ^ some of these have left            ^ now
 *
 * A call of this process is counted at its moment. Calls of others, which show in the sum, were made since the answer before this one:
 * they are spread evenly over that time, or over the period if there was no answer before. The process that made them knows better, and
 * the store keeps the later moments of both. If the sum is less than the slices have, calls have left the oldest slice; and if it has
 * too few, calls were refunded elsewhere, mostly soon after they were made, so they are taken from the newest slice.
 */
/** The number of the newest slice, plus 1; 0 if nothing was seen. */
const NEWEST = 0
const SEEN_AT = 1
const TOTAL = 2
const RING = 3
const PLACES = WINDOW_SLICES + 1

/** A meter whose counts are what a store was seen to have counted. */
export interface SeenMeter extends Meter {
  /** The store counts `used`, of which `own` is a call of this process that it has just counted. */
  see?(state: Float64Array, at: number, now: number, used: number, own: number): void
  /** The same if others are still to report to the store: it counts at least so much. */
  seeAtLeast?(state: Float64Array, at: number, now: number, used: number): void
  /** How much still counts at moments to come, in microseconds from now. */
  later?(state: Float64Array, at: number, now: number): { readonly afterUs: number; readonly used: number }[]
}

export class SeenWindow implements SeenMeter, MeterRate, MeterMigration {
  readonly slots: number = RING + PLACES
  readonly maxWaitUs = 0
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly perUs: number
  readonly most: number
  readonly windowUs: number
  readonly scale: readonly number[]
  readonly #sliceUs: number

  constructor(meter: Meter) {
    this.most = capacityOf(meter)
    this.windowUs = meter.rate!.windowUs!
    this.perUs = this.most / this.windowUs
    this.scale = [this.windowUs]
    this.#sliceUs = this.windowUs / WINDOW_SLICES
  }

  see(state: Float64Array, at: number, now: number, used: number, own: number): void {
    this.seeAtLeast(state, at, now, used, own)
    const surplus = state[at + TOTAL]! - used
    if (surplus > 0) this.#takeOut(state, at, surplus)
  }

  seeAtLeast(state: Float64Array, at: number, now: number, used: number, own = 0): void {
    const seenAt = Math.max(state[at + SEEN_AT]!, now - this.windowUs)
    this.#advance(state, at, now)
    const made = Math.min(own, used)
    if (made > 0) this.#add(state, at, state[at + NEWEST]!, made)
    const others = used - state[at + TOTAL]!
    if (others > 0) this.#spread(state, at, Math.min(seenAt, now), others)
    state[at + SEEN_AT] = now
  }

  take(state: Float64Array, at: number, now: number, cost: number): void {
    const slice = this.#sliceOf(now)
    if (slice > state[at + NEWEST]!) this.#advance(state, at, now)
    if (slice > state[at + NEWEST]! - PLACES) this.#add(state, at, slice, cost)
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    this.#advance(state, at, now)
    const slice = this.#sliceOf(moment)
    if (slice > state[at + NEWEST]! - PLACES) this.#remove(state, at, slice, cost)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    let used = state[at + TOTAL]!
    const newest = state[at + NEWEST]!
    const last = Math.min(this.#sliceOf(now), newest + PLACES)
    for (let slice = newest + 1; slice <= last; slice++) used -= state[at + RING + (slice % PLACES)]!
    return Math.max(0, this.most - used)
  }

  later(state: Float64Array, at: number, now: number): { readonly afterUs: number; readonly used: number }[] {
    const newest = state[at + NEWEST]!
    const first = Math.max(newest - WINDOW_SLICES, this.#sliceOf(now) - WINDOW_SLICES)
    let used = this.most - this.remaining(state, at, now)
    const all: { readonly afterUs: number; readonly used: number }[] = []
    for (let slice = first; slice <= newest && used > 0; slice++) {
      const calls = state[at + RING + (slice % PLACES)]!
      if (calls === 0) continue
      used = Math.max(0, used - calls)
      // the calls of a slice were made before it ended
      const madeAt = Math.min(now, Math.ceil(slice * this.#sliceUs))
      all.push({ afterUs: madeAt + this.windowUs - now, used })
    }
    return all
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    return this.remaining(state, at, now) >= cost ? 0 : this.windowUs
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + NEWEST]! * this.#sliceUs + this.windowUs
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const newest = old[NEWEST]!
    const sliceUs = oldScale[0]! / WINDOW_SLICES
    for (let slice = Math.max(1, newest - WINDOW_SLICES); slice <= newest; slice++) {
      const calls = old[RING + (slice % PLACES)]!
      if (calls > 0) this.take(state, at, Math.min(now, Math.ceil(slice * sliceUs) - 1), calls)
    }
    state[at + SEEN_AT] = old[SEEN_AT]!
  }

  #sliceOf(moment: number): number {
    return Math.floor(moment / this.#sliceUs) + 1
  }

  /** Forgets the slices that have left the window. A clock that steps back stays in the slice that it had reached. */
  #advance(state: Float64Array, at: number, now: number): void {
    const newest = state[at + NEWEST]!
    const slice = this.#sliceOf(now)
    if (slice <= newest) return
    for (let next = Math.max(newest + 1, slice - WINDOW_SLICES); next <= slice; next++) {
      const place = at + RING + (next % PLACES)
      state[at + TOTAL] = state[at + TOTAL]! - state[place]!
      state[place] = 0
    }
    state[at + NEWEST] = slice
  }

  #add(state: Float64Array, at: number, slice: number, cost: number): void {
    state[at + RING + (slice % PLACES)]! += cost
    state[at + TOTAL]! += cost
  }

  #remove(state: Float64Array, at: number, slice: number, cost: number): number {
    const place = at + RING + (slice % PLACES)
    const removed = Math.min(cost, state[place]!)
    state[place]! -= removed
    state[at + TOTAL]! -= removed
    return removed
  }

  /** Counts calls that were made between a moment and now. */
  #spread(state: Float64Array, at: number, from: number, cost: number): void {
    const newest = state[at + NEWEST]!
    const first = Math.max(this.#sliceOf(from), newest - WINDOW_SLICES + 1)
    const slices = newest - first + 1
    let counted = 0
    for (let i = 1; i <= slices; i++) {
      // what cannot be divided was made later
      const calls = Math.floor((cost * i) / slices) - counted
      counted += calls
      if (calls > 0) this.#add(state, at, first + i - 1, calls)
    }
  }

  #takeOut(state: Float64Array, at: number, cost: number): void {
    const newest = state[at + NEWEST]!
    let left = cost - this.#remove(state, at, newest - WINDOW_SLICES, cost)
    for (let slice = newest; left > 0 && slice > newest - WINDOW_SLICES; slice--) {
      left -= this.#remove(state, at, slice, left)
    }
  }
}
