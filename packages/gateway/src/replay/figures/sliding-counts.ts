/** The most entries that are kept for a key: calls of one cell of the window are one entry. */
const CELLS = 128

/**
 * The way in which the calls of a cell leave: with the last of them, so that a count is never too low, or with the first, so that
 * it is never too high.
 */
export type Leaving = 'late' | 'early'

/** For each key, how many units came within the last `lengthUs`. */
export class SlidingCounts {
  readonly #lengthUs: number
  readonly #cellUs: number
  readonly #isLate: boolean
  /** Moments and units in turn, oldest first. */
  readonly #entries: (number[] | undefined)[] = []
  readonly #sums: number[] = []

  /** Units that came at x have left at x + lengthUs. */
  constructor(lengthUs: number, leaving: Leaving, cells: number = CELLS) {
    this.#lengthUs = lengthUs
    this.#cellUs = Math.max(1, Math.floor(lengthUs / cells))
    this.#isLate = leaving === 'late'
  }

  /** Drops what has left by `x`, and returns what is there. */
  at(slot: number, x: number): number {
    const entries = this.#entries[slot]
    if (entries === undefined) return 0
    let sum = this.#sums[slot]!
    let gone = 0
    while (gone < entries.length && x - entries[gone]! >= this.#lengthUs) {
      sum -= entries[gone + 1]!
      gone += 2
    }
    if (gone > 0) {
      if (gone === entries.length) this.#entries[slot] = undefined
      else entries.splice(0, gone)
      this.#sums[slot] = sum
    }
    return sum
  }

  add(slot: number, x: number, units: number): void {
    if (units === 0) return
    const entries = this.#entries[slot]
    if (entries === undefined) {
      // most have one entry, for which a list that has grown would take ten times the room
      this.#entries[slot] = [x, units]
      this.#sums[slot] = units
      return
    }
    this.#sums[slot] = this.#sums[slot]! + units
    const last = entries.length - 2
    if (last >= 0 && Math.floor(entries[last]! / this.#cellUs) === Math.floor(x / this.#cellUs)) {
      if (this.#isLate) entries[last] = x
      entries[last + 1] = entries[last + 1]! + units
    } else entries.push(x, units)
  }

  copy(from: number, to: number, other: SlidingCounts): void {
    this.#entries[to] = other.#entries[from]?.slice()
    this.#sums[to] = other.#sums[from] ?? 0
  }

  forget(slot: number): void {
    this.#entries[slot] = undefined
  }
}
