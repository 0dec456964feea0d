import type { UsedPermits } from '../shared-charge.ts'
import type { Use } from '../store.ts'
import { CLOCK_MARGIN } from './lease-terms.ts'

/** Uses are put together if they come within this part of the longest time between two reports. */
const SLICE = 0.08
const MOST_SLICES = 12

/** Permits of a lease that were used at about one moment: dated when the last of them was used, never earlier. */
export class UsedSlice implements UsedPermits {
  readonly #log: UseLog
  readonly begin: number
  end: number
  amount = 0
  ageUs = 0
  /** What was refunded while the store was asked to count it. */
  refunded = 0
  /** As of when the store has counted it, by the clock of the store; undefined if it has not. */
  countedAt: number | undefined
  #isReported = false

  constructor(log: UseLog, now: number) {
    this.#log = log
    this.begin = now
    this.end = now
  }

  refund(cost: number): number | undefined {
    if (this.countedAt !== undefined) return this.countedAt
    if (this.#isReported) this.refunded += cost
    else this.#log.remove(this, cost)
    return undefined
  }

  /** Reports it at `now`, by the clock of this process. */
  report(now: number): void {
    this.#isReported = true
    this.ageUs = Math.max(0, Math.round(now - this.end))
  }

  /** The store has counted it at `now`, after a call at `newest`. */
  counted(now: number, newest: number): void {
    this.countedAt = Math.max(newest, now - countedBeforeUs(this.ageUs))
  }
}

/** The permits of a lease that were used since its last report, and about when. */
export class UseLog {
  readonly #sliceUs: number
  readonly #onRemoved: (amount: number) => void
  #slices: UsedSlice[] = []
  #amount = 0

  /** `onRemoved` gets permits that were taken back before they were reported. */
  constructor(longestUs: number, onRemoved: (amount: number) => void) {
    this.#sliceUs = longestUs * SLICE
    this.#onRemoved = onRemoved
  }

  get amount(): number {
    return this.#amount
  }

  add(amount: number, now: number): UsedSlice {
    const slice = this.#sliceAt(now)
    this.#amount += amount
    slice.amount += amount
    slice.end = now
    return slice
  }

  /** Takes back permits of a slice that is not reported yet. */
  remove(slice: UsedSlice, amount: number): void {
    const removed = Math.min(amount, slice.amount)
    slice.amount -= removed
    this.#amount -= removed
    this.#onRemoved(removed)
  }

  /** What was used, to be sent at `now`; the log is empty then. */
  report(now: number): UsedSlice[] {
    const reported = this.#slices.filter(({ amount }) => amount > 0)
    for (const slice of this.#slices) slice.report(now)
    this.#slices = []
    this.#amount = 0
    return reported
  }

  #sliceAt(now: number): UsedSlice {
    const last = this.#slices.at(-1)
    if (last && (now - last.begin < this.#sliceUs || this.#slices.length === MOST_SLICES)) return last
    const slice = new UsedSlice(this, now)
    this.#slices.push(slice)
    return slice
  }
}

/** How long before a report the store counts a use of this age: clocks may run at different speeds. */
export function countedBeforeUs(ageUs: Use['ageUs']): number {
  return Math.floor(ageUs * (1 - CLOCK_MARGIN))
}
