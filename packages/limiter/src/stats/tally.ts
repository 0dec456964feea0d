import type { Meter } from '../algorithms/algorithm.ts'
import { type SettledBy, type SettledCounts, settledNames } from '../costs/settled-counts.ts'
import { AmountTally } from './amounts.ts'

/** The outcomes of calls. Those that waited and those that only a shadow rule would have refused are among the allowed. */
export interface Counts {
  readonly allowed: number
  readonly refused: number
  readonly waited: number
  readonly shadowRefused: number
  /** The number of the allowed and of the refused that were decided without the fleet's store, while it could not be asked. */
  readonly degradedAllowed: number
  readonly degradedRefused: number
}

export const countNames: readonly (keyof Counts)[] = [
  'allowed',
  'refused',
  'waited',
  'shadowRefused',
  'degradedAllowed',
  'degradedRefused',
]

/** Counts that only grow, as they are read: plain numbers of one object, so that counting a call allocates nothing and looks nothing up. */
export class Tally implements Counts {
  allowed = 0
  refused = 0
  waited = 0
  shadowRefused = 0
  degradedAllowed = 0
  degradedRefused = 0
  /** The ways in which calls were settled; undefined if none was. */
  settled: SettledCounts | undefined
  #toldAllowed = 0
  #toldShadowRefused = 0
  /** The least that any key had left of each level since the last read. */
  least: Float64Array

  /** The amounts that were reserved, and what became of them; undefined if nothing was. */
  amounts: AmountTally | undefined

  constructor(levels = 0) {
    this.least = new Float64Array(levels).fill(Number.POSITIVE_INFINITY)
  }

  get amountsSoFar(): AmountTally {
    this.amounts ??= new AmountTally()
    return this.amounts
  }

  /** Takes back a call that was counted as allowed and did not pass after all. */
  undoPass(wasShadowed: boolean): void {
    this.allowed--
    if (wasShadowed) this.shadowRefused--
  }

  /** Counts a call whose cost was settled in this way; `isBounded` if its answer reported more than the rule accepts. */
  countSettled(by: SettledBy, isBounded: boolean): void {
    const before = this.settled ?? (Object.fromEntries(settledNames.map(name => [name, 0])) as SettledCounts)
    this.settled = { ...before, [by]: before[by] + 1, bounded: before.bounded + (isBounded ? 1 : 0) }
  }

  read(): Counts {
    const { refused, waited, degradedAllowed, degradedRefused } = this
    // a counter never decreases, since a scraper would take that for a restart
    this.#toldAllowed = Math.max(this.#toldAllowed, this.allowed)
    this.#toldShadowRefused = Math.max(this.#toldShadowRefused, this.shadowRefused)
    const [allowed, shadowRefused] = [this.#toldAllowed, this.#toldShadowRefused]
    return { allowed, refused, waited, shadowRefused, degradedAllowed, degradedRefused }
  }

  /** Returns the highest usage of a key since the last read, from 0 to 1; undefined if there were no calls. */
  takeLoad(meters: readonly Pick<Meter, 'slots' | 'remaining'>[]): number | undefined {
    let load: number | undefined
    for (const [level, meter] of meters.entries()) {
      const least = this.least[level] ?? Number.POSITIVE_INFINITY
      if (least === Number.POSITIVE_INFINITY) continue
      // all zeros is a key never seen, which has everything left
      const most = meter.remaining(new Float64Array(meter.slots), 0, 0)
      load = Math.max(load ?? 0, most > 0 ? Math.min(1, Math.max(0, 1 - least / most)) : 1)
    }
    // a rule that changed may have other levels by now
    if (this.least.length === meters.length) this.least.fill(Number.POSITIVE_INFINITY)
    else this.least = new Float64Array(meters.length).fill(Number.POSITIVE_INFINITY)
    return load
  }
}
