import type { Ending } from '../../algorithms/adaptive/estimator.ts'
import type { Meter } from '../../algorithms/algorithm.ts'
import { OVERFLOW_SLOT, type Table } from './table.ts'

/** Which levels of a charge are refunded: concurrency slots, counts of calls, or both. */
export type Refunded = 'held' | 'passed' | 'all'

/** A charge that was counted in a table of this process. */
interface LocalCharged {
  readonly table: Table
  readonly key: string
  readonly cost: number
  readonly slot: number
  /** The moment at which the call was counted as passing. */
  readonly moment: number
  /** The number of keys that had been reset when it was charged: after a later reset of its key nothing is refunded. */
  readonly resetsBefore: number
}

/** Refunds the levels that `which` names of a charge that was counted in a table of this process. */
export function refundLocal(charged: LocalCharged, now: number, which: Refunded, ending?: Ending): void {
  const { table, key, cost, slot, moment, resetsBefore } = charged
  const applies = (meter: Meter): boolean => which === 'all' || (meter.held !== undefined) === (which === 'held')
  if (table.family !== undefined) {
    if (!table.isResetSince(key, resetsBefore)) table.family.giveBack(key, now, cost, moment, applies, ending)
    return
  }
  // a slot that was swept may belong to another key by now
  if ((slot !== OVERFLOW_SLOT && table.find(key) !== slot) || table.isResetSince(key, resetsBefore)) return
  table.giveBack(slot, now, cost, moment, applies, ending)
}
