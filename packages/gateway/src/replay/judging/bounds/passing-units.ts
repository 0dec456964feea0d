import { SlidingCounts } from '../../figures/sliding-counts.ts'
import type { Uncertainty } from './floor.ts'

/** Durations are rounded up to one of these, so that a busy key has a bounded number of entries. */
const LENGTHS_US = [1e6, 1e7, 6e7, 6e8]

/** For each key, the units of calls that were charged until they ended, and then refunded because they do not count. */
export class PassingUnits {
  readonly #lengths: readonly (readonly [lengthUs: number, counts: SlidingCounts])[]
  readonly memoryUs: number

  /** `waitUs` is how much later than they came calls may pass. */
  constructor(waitUs: number, { widthUs, aheadUs }: Uncertainty) {
    const slackUs = waitUs + widthUs + aheadUs
    this.#lengths = LENGTHS_US.map(lengthUs => [lengthUs, new SlidingCounts(lengthUs + slackUs, 'late')])
    this.memoryUs = LENGTHS_US.at(-1)! + slackUs
  }

  /** Adds a call that came at x; false if it lasted too long, so that it is to be counted as if it had never ended. */
  add(slot: number, x: number, units: number, durationUs: number): boolean {
    const length = this.#lengths.find(([lengthUs]) => durationUs <= lengthUs)
    length?.[1].add(slot, x, units)
    return length !== undefined
  }

  /** Returns the units that may be charged at x. */
  at(slot: number, x: number): number {
    let sum = 0
    for (const [, counts] of this.#lengths) sum += counts.at(slot, x)
    return sum
  }

  forget(slot: number): void {
    for (const [, counts] of this.#lengths) counts.forget(slot)
  }
}
