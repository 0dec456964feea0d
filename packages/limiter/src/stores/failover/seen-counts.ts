import { capacityOf, type Meter } from '../../algorithms/algorithm.ts'
import { beginsWithCall, isBlock, isWindow, type LevelCatchUp } from '../catch-up.ts'
import { layOut } from '../memory/migrate-states.ts'
import { States } from '../memory/states.ts'
import type { Table } from '../memory/table.ts'
import { type SeenMeter, SeenWindow } from './seen-window.ts'

const CHUNK_BITS = 5
/** The clocks of the store and of this process, and the way between them, may differ by so much. */
const SLACK_US = 50_000

/** What the store has said of a key after a call, of which this process made `own`. */
export interface SeenAnswer {
  readonly remaining: readonly number[]
  readonly resets: readonly number[]
  readonly own: number
}

/**
 * What a store that several processes share was last seen to have counted for each key: the whole fleet's calls, against
 * the whole limit. If the store loses its memory, this process can say what was there. The slots are those of the table
 * that stands in for the store.
 */
export class SeenCounts {
  readonly table: Table
  #meters: readonly Meter[]
  #states: States
  #seen: readonly SeenMeter[]
  #capacities: readonly number[]

  constructor(table: Table, meters: readonly Meter[]) {
    this.table = table
    this.#meters = meters
    this.#seen = meters.map(seenMeterOf)
    this.#states = new States(layOut(this.#seen), CHUNK_BITS)
    this.#capacities = meters.map(capacityOf)
  }

  /** Goes on with the meters of a changed rule. */
  use(meters: readonly Meter[], now: number): void {
    if (meters === this.#meters) return
    this.#meters = meters
    this.#seen = meters.map(seenMeterOf)
    this.#states = this.#states.inherit(layOut(this.#seen), now)
    this.#capacities = meters.map(capacityOf)
  }

  /** The slot belongs to a key that was not seen yet. */
  clear(slot: number): void {
    if (this.#states.hasChunk(slot)) this.#states.clear(slot)
  }

  /** The store counts at least so much for each level, and more as soon as all processes have reported what it missed. */
  seeAtLeast(slot: number, remaining: readonly number[], now: number): void {
    const { offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    this.#seen.forEach((meter, level) => {
      if (meter.held !== undefined) return
      const at = this.#states.base(slot) + offsets[level]!
      const used = this.#capacities[level]! - remaining[level]!
      if (meter.seeAtLeast) meter.seeAtLeast(state, at, now, used)
      else {
        const room = meter.remaining(state, at, now)
        const more = Math.min(room, used - this.#capacities[level]! + room)
        if (more > 0) meter.take(state, at, now, more, 0)
      }
    })
  }

  /** The store has said what is left of each level. */
  see(slot: number, { remaining, resets, own }: SeenAnswer, now: number): void {
    const { offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    for (let level = 0; level < this.#seen.length; level++) {
      const meter = this.#seen[level]!
      if (meter.held !== undefined || isBlock(meter)) continue
      const at = this.#states.base(slot) + offsets[level]!
      const left = remaining[level]!
      if (meter.see) {
        meter.see(state, at, now, this.#capacities[level]! - left, own)
        continue
      }
      // something was given back or reset elsewhere
      const isLess = meter.remaining(state, at, now + SLACK_US) < left
      if (isLess) state.fill(0, at, at + meter.slots)
      const room = isLess ? this.#capacities[level]! : meter.remaining(state, at, now)
      if (room > left)
        meter.take(state, at, beginningOf(meter, room === this.#capacities[level], resets[level], now), room - left, 0)
    }
  }

  /** This process has made calls that the store counts. */
  count(slot: number, cost: number, now: number): void {
    this.#seen.forEach((_, level) => void this.#countAt(slot, level, now, cost, now))
  }

  /** Calls that this process had admitted without the store were reported to it, as each level says. */
  countReported(slot: number, levels: readonly LevelCatchUp[], unfit: readonly number[], now: number): void {
    this.#seen.forEach((meter, level) => {
      const { missing, later = [] } = levels[level] ?? { missing: 0 }
      let left = Math.max(0, missing - unfit[level]!)
      const known = later.map(one => ({ moment: now + one.afterUs - (meter.rate?.windowUs ?? 0), left: one.missing }))
      for (const one of meter.see ? known : []) {
        const leaving = left - Math.min(left, one.left)
        this.#countAt(slot, level, one.moment, leaving, now)
        left -= leaving
      }
      this.#countAt(slot, level, now, left, now)
    })
  }

  #countAt(slot: number, level: number, moment: number, most: number, now: number): void {
    const meter = this.#seen[level]!
    const state = this.#stateOf(slot)
    const at = this.#states.base(slot) + this.#states.layout.offsets[level]!
    const cost = Math.min(most, meter.remaining(state, at, now))
    if (cost > 0 && meter.held === undefined) meter.take(state, at, moment, cost, 0)
  }

  /** The store takes back what it counted at `moment`, by the clock of this process. */
  giveBack(slot: number, cost: number, moment: number, now: number): void {
    const { offsets } = this.#states.layout
    const state = this.#stateOf(slot)
    this.#seen.forEach((meter, level) => {
      if (meter.held === undefined) meter.refund(state, this.#states.base(slot) + offsets[level]!, now, cost, moment)
    })
  }

  /** What the store had counted for a key, level by level, as far as it still matters. */
  used(slot: number, now: number): number[] {
    return this.known(slot, now, false).map(({ known }) => known)
  }

  /** The same, and when it will matter no more. */
  known(slot: number, now: number, withLater = true): LevelCatchUp[] {
    const { offsets } = this.#states.layout
    const state = this.#states.hasChunk(slot) ? this.#states.state(slot) : undefined
    return this.#seen.map((meter, level) => {
      if (!state || meter.held !== undefined) return { known: 0, missing: 0 }
      const at = this.#states.base(slot) + offsets[level]!
      const known = this.#capacities[level]! - meter.remaining(state, at, now)
      if (!withLater || known === 0) return { known, missing: 0 }
      if (meter.later) {
        const later = meter.later(state, at, now).map(({ afterUs, used }) => ({ afterUs, known: used, missing: 0 }))
        return { known, missing: 0, later }
      }
      return { known, missing: 0, ...laterEnd(meter, state, at, now) }
    })
  }

  #stateOf(slot: number): Float64Array {
    if (!this.#states.hasChunk(slot)) this.#states.addChunk(slot)
    return this.#states.state(slot)
  }
}

/** For a window that ends all at once: that nothing of it counts after that. */
export function laterEnd(meter: Meter, state: Float64Array, at: number, now: number): Pick<LevelCatchUp, 'later'> {
  if (!meter.rate?.endsAt || !isWindow(meter)) return {}
  const afterUs = meter.rate.endsAt(state, at, now) - now
  return afterUs > 0 ? { later: [{ afterUs, known: 0, missing: 0 }] } : {}
}

function seenMeterOf(meter: Meter): SeenMeter {
  return isWindow(meter) && !meter.rate?.endsAt ? new SeenWindow(meter) : meter
}

/** When the calls of a key that was not known count as made: if its window begins with a call, it ends when that of the store does. */
function beginningOf(meter: Meter, isNew: boolean, resetUs: number | undefined, now: number): number {
  if (!isNew || !(resetUs! > 0) || !beginsWithCall(meter, now)) return now
  return Math.min(now, now + resetUs! - meter.rate!.windowUs!)
}
