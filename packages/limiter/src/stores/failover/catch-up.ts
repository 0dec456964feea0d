import type { Meter } from '../../algorithms/algorithm.ts'
import type { Table } from '../memory/table.ts'

/** What a store has to learn of one level: that `known` or more is used, and that `missing` was admitted besides. */
export interface LevelCatchUp {
  readonly known: number
  readonly missing: number
}

/** What a store has to learn of one key that it has not counted, or has forgotten. */
export interface CatchUp<Counter> {
  readonly counter: Counter
  readonly key: string
  readonly levels: readonly LevelCatchUp[]
  /** What did not fit into each level; the store writes it. */
  readonly unfit: number[]
}

/** Counts in a slot of a table what it has to learn, as far as it fits; the rest is written into `unfit`. */
export function catchUpTable(
  table: Pick<Table, 'meters' | 'offsets' | 'state' | 'base'>,
  slot: number,
  { levels, unfit }: Pick<CatchUp<unknown>, 'levels' | 'unfit'>,
  now: number,
): void {
  table.meters.forEach((meter, level) => {
    const { known, missing } = levels[level] ?? { known: 0, missing: 0 }
    const state = table.state(slot)
    const at = table.base(slot) + table.offsets[level]!
    unfit[level] = 0
    if (meter.costLasting) {
      if (known > 0) meter.take(state, at, now, known, 0)
      return
    }
    const room = meter.remaining(state, at, now)
    const used = capacityOf(meter, now) - room
    const due = Math.max(0, known - used) + missing
    const taken = Math.min(due, room)
    if (taken > 0) meter.take(state, at, now, taken, 0)
    unfit[level] = due - taken
  })
}

/** What a meter can admit at once to a key that has used nothing. */
export function capacityOf(meter: Meter, now = 0): number {
  return meter.most ?? meter.remaining(new Float64Array(meter.slots), 0, now)
}

/** For a meter that refuses until a moment: the cost that sets the same moment again, 0 if it has passed. */
export function costLasting(meter: Meter, state: Float64Array, at: number, now: number): number | undefined {
  if (!meter.costLasting) return undefined
  const leftUs = meter.delay(state, at, now, 0)
  return leftUs > 0 ? meter.costLasting(leftUs) : 0
}
