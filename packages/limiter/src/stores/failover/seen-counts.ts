import type { Meter } from '../../algorithms/algorithm.ts'
import { layOut } from '../memory/migrate-states.ts'
import { States } from '../memory/states.ts'
import type { Table } from '../memory/table.ts'
import { capacityOf } from './catch-up.ts'

const CHUNK_BITS = 5
/** The clocks of the store and of this process, and the way between them, may differ by so much. */
const SLACK_US = 50_000

/**
 * What a store that several processes share was last seen to have counted for each key: the whole fleet's calls, against
 * the whole limit. If the store loses its memory, this process can say what was there. The slots are those of the table
 * that stands in for the store.
 */
export class SeenCounts {
  readonly table: Table
  #states: States
  #capacities: readonly number[]

  constructor(table: Table, meters: readonly Meter[]) {
    this.table = table
    this.#states = new States(layOut(meters), CHUNK_BITS)
    this.#capacities = meters.map(capacityOf)
  }

  /** Goes on with the meters of a changed rule. */
  use(meters: readonly Meter[], now: number): void {
    if (meters === this.#states.layout.meters) return
    this.#states = this.#states.inherit(layOut(meters), now)
    this.#capacities = meters.map(capacityOf)
  }

  /** The slot belongs to a key that was not seen yet. */
  clear(slot: number): void {
    if (this.#states.hasChunk(slot)) this.#states.clear(slot)
  }

  /** The store counts at least so much for each level, and more as soon as all processes have reported what it missed. */
  seeAtLeast(slot: number, remaining: readonly number[], now: number): void {
    const used = this.#capacities.map((capacity, level) => capacity - remaining[level]!)
    const more = this.used(slot, now).map((seen, level) => used[level]! - seen)
    this.count(slot, more, now)
  }

  /** The store has said what is left of each level. */
  see(slot: number, remaining: readonly number[], now: number): void {
    const { meters, offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    for (let level = 0; level < meters.length; level++) {
      const meter = meters[level]!
      if (meter.needsRelease || meter.costLasting) continue
      const at = this.#states.base(slot) + offsets[level]!
      const left = remaining[level]!
      // something was given back or reset elsewhere; when the rest was counted is not known
      const isLess = meter.remaining(state, at, now + SLACK_US) < left
      if (isLess) state.fill(0, at, at + meter.slots)
      const room = isLess ? this.#capacities[level]! : meter.remaining(state, at, now)
      if (room > left) meter.take(state, at, now, room - left, 0)
    }
  }

  /** The store was told of calls that this process had admitted without it. */
  count(slot: number, costs: readonly number[], now: number): void {
    const { meters, offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    meters.forEach((meter, level) => {
      const at = this.#states.base(slot) + offsets[level]!
      const cost = Math.min(costs[level] ?? 0, meter.remaining(state, at, now))
      if (cost > 0 && !meter.needsRelease) meter.take(state, at, now, cost, 0)
    })
  }

  /** The store takes back what it counted at `moment`, by the clock of this process. */
  giveBack(slot: number, cost: number, moment: number, now: number): void {
    const { meters, offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    meters.forEach((meter, level) => {
      if (!meter.needsRelease) meter.refund(state, this.#states.base(slot) + offsets[level]!, now, cost, moment)
    })
  }

  /** What the store had counted for a key, level by level, as far as it still matters. */
  used(slot: number, now: number): number[] {
    const { meters, offsets } = this.#states.layout
    const state = this.#states.hasChunk(slot) ? this.#states.state(slot) : undefined
    return meters.map((meter, level) => {
      const at = this.#states.base(slot) + offsets[level]!
      return state && !meter.needsRelease ? this.#capacities[level]! - meter.remaining(state, at, now) : 0
    })
  }

  #stateOf(slot: number): Float64Array {
    if (!this.#states.hasChunk(slot)) this.#states.addChunk(slot)
    return this.#states.state(slot)
  }
}
