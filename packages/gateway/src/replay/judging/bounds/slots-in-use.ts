import type { Uncertainty } from './floor.ts'

/** For each key, how many units may have been under way at once. */
export class SlotsInUse {
  readonly #units: number
  readonly #uncertainty: Uncertainty
  readonly #waitUs: number
  /** The ends of calls and their units, in turn. */
  readonly #ends: (number[] | undefined)[] = []
  readonly #highest: number[] = []

  constructor(units: number, waitUs: number, uncertainty: Uncertainty) {
    this.#units = units
    this.#waitUs = waitUs
    this.#uncertainty = uncertainty
  }

  /** Adds a call that came at x and ended `durationUs` later; returns whether it may have been refused. */
  add(slot: number, x: number, units: number, durationUs: number): boolean {
    const ends = this.#ends[slot] ?? []
    let kept = 0
    let sum = units
    for (let at = 0; at < ends.length; at += 2) {
      if (ends[at]! + this.#uncertainty.aheadUs < x) continue
      sum += ends[at + 1]!
      ends[kept++] = ends[at]!
      ends[kept++] = ends[at + 1]!
    }
    ends.length = kept
    ends.push(x + this.#uncertainty.widthUs + this.#waitUs + durationUs, units)
    this.#ends[slot] = ends
    this.#highest[slot] = sum
    return true
  }

  excess(slot: number): number {
    return this.#highest[slot]! - this.#units
  }

  forget(slot: number): void {
    this.#ends[slot] = undefined
  }
}
