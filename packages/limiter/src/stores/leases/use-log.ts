import type { Use } from './lease-request.ts'

/** Uses are put together if they come within this part of the longest time between two reports. */
const SLICE = 0.08
const MOST_SLICES = 12

/** The permits of a lease that were used since its last report, and when, roughly: each is dated no earlier than it was used. */
export class UseLog {
  readonly #sliceUs: number
  #amounts: number[] = []
  #begins: number[] = []
  #ends: number[] = []
  #amount = 0

  constructor(longestUs: number) {
    this.#sliceUs = longestUs * SLICE
  }

  get amount(): number {
    return this.#amount
  }

  add(amount: number, now: number): void {
    this.#amount += amount
    const last = this.#amounts.length - 1
    if (last >= 0 && (now - this.#begins[last]! < this.#sliceUs || last + 1 === MOST_SLICES)) {
      this.#amounts[last]! += amount
      this.#ends[last] = now
      return
    }
    this.#amounts.push(amount)
    this.#begins.push(now)
    this.#ends.push(now)
  }

  /** Takes back permits that were just used; returns how many were there. */
  remove(amount: number): number {
    let left = Math.min(amount, this.#amount)
    const removed = left
    this.#amount -= removed
    for (let last = this.#amounts.length - 1; left > 0; last--) {
      const some = Math.min(left, this.#amounts[last]!)
      this.#amounts[last]! -= some
      left -= some
    }
    return removed
  }

  /** What was used, to be sent at `now`. */
  report(now: number): Use[] {
    const uses = this.#amounts.map((amount, i) => ({ amount, ageUs: Math.max(0, now - this.#ends[i]!) }))
    return uses.filter(({ amount }) => amount > 0)
  }

  clear(): void {
    this.#amounts = []
    this.#begins = []
    this.#ends = []
    this.#amount = 0
  }
}
