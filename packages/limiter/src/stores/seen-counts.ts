import type { Meter } from '../algorithms/algorithm.ts'
import { capacityOf } from './catch-up.ts'
import { inheritStates, type Layout, layOut } from './inherit-states.ts'
import type { Table } from './table.ts'

const CHUNK_SLOTS = 32
/** The clocks of the store and of this process, and the way between them, may differ by so much. */
const SLACK_US = 50_000
/** What was said at most this part of a period ago differs by the oldest calls only. */
const CLOSE = 20

/**
 * What a store that several processes share was last seen to have counted for each key: the whole fleet's calls, against
 * the whole limit. If the store loses its memory, this process can say what was there. The slots are those of the table
 * that stands in for the store.
 */
export class SeenCounts {
  readonly table: Table
  #layout: Layout
  #capacities: readonly number[]
  readonly #chunks: (Float64Array | undefined)[] = []

  constructor(table: Table, meters: readonly Meter[]) {
    this.table = table
    this.#layout = layOut(meters)
    this.#capacities = meters.map(capacityOf)
  }

  /** Goes on with the meters of a changed rule. */
  use(meters: readonly Meter[], now: number): void {
    if (meters === this.#layout.meters) return
    const after = layOut(meters)
    this.#chunks.forEach((chunk, i) => {
      if (chunk) this.#chunks[i] = inheritStates(chunk, CHUNK_SLOTS, this.#layout, after, now)
    })
    this.#layout = after
    this.#capacities = meters.map(capacityOf)
  }

  /** The slot belongs to a key that was not seen yet. */
  clear(slot: number): void {
    const { stride } = this.#layout
    const from = (slot % CHUNK_SLOTS) * stride
    this.#chunks[Math.floor(slot / CHUNK_SLOTS)]?.fill(0, from, from + stride)
  }

  /** The store has said what is left of each level, and had last done so `sinceUs` ago. */
  see(slot: number, remaining: readonly number[], now: number, sinceUs: number = Number.POSITIVE_INFINITY): void {
    const { meters, offsets } = this.#layout
    const chunk = this.#chunkFor(slot)
    for (let level = 0; level < meters.length; level++) {
      const meter = meters[level]!
      if (meter.held || meter.costLasting) continue
      const at = this.#baseOf(slot) + offsets[level]!
      const left = remaining[level]!
      // calls have left the window sooner than they were seen to come, or were given back or reset elsewhere; after a while
      // others may have come instead, and when the rest was counted is not known
      const isLess = meter.remaining(chunk, at, now + SLACK_US) < left
      const isKnown = isLess && sinceUs * CLOSE <= (meter.scale?.[0] ?? 0) && forgetOldest(meter, chunk, at, left, now)
      if (isLess && !isKnown) chunk.fill(0, at, at + meter.slots)
      const room = meter.remaining(chunk, at, now)
      if (room > left) meter.take(chunk, at, now, room - left, 0)
    }
  }

  /** The store was told of calls that this process had admitted without it. */
  count(slot: number, costs: readonly number[], now: number): void {
    const { meters, offsets } = this.#layout
    const chunk = this.#chunkFor(slot)
    meters.forEach((meter, level) => {
      const at = this.#baseOf(slot) + offsets[level]!
      const cost = Math.min(costs[level] ?? 0, meter.remaining(chunk, at, now))
      if (cost > 0 && !meter.held) meter.take(chunk, at, now, cost, 0)
    })
  }

  /** The store takes back what it counted at `moment`, by the clock of this process. */
  giveBack(slot: number, cost: number, moment: number, now: number): void {
    const { meters, offsets } = this.#layout
    const chunk = this.#chunkFor(slot)
    meters.forEach((meter, level) => {
      if (!meter.held) meter.giveBack(chunk, this.#baseOf(slot) + offsets[level]!, now, cost, moment)
    })
  }

  /** What the store had counted for a key, level by level, as far as it still matters. */
  used(slot: number, now: number): number[] {
    const { meters, offsets } = this.#layout
    const chunk = this.#chunks[Math.floor(slot / CHUNK_SLOTS)]
    return meters.map((meter, level) => {
      const at = this.#baseOf(slot) + offsets[level]!
      return chunk && !meter.held ? this.#capacities[level]! - meter.remaining(chunk, at, now) : 0
    })
  }

  #chunkFor(slot: number): Float64Array {
    const place = Math.floor(slot / CHUNK_SLOTS)
    const chunk = this.#chunks[place] ?? new Float64Array(CHUNK_SLOTS * this.#layout.stride)
    this.#chunks[place] = chunk
    return chunk
  }

  #baseOf(slot: number): number {
    return (slot % CHUNK_SLOTS) * this.#layout.stride
  }
}

/** Takes back the oldest calls until so much is left; false if this cannot be told, as when a key was reset. */
function forgetOldest(meter: Meter, state: Float64Array, at: number, left: number, now: number): boolean {
  const periodUs = meter.scale?.[0] ?? 0
  for (let room = meter.remaining(state, at, now); room < left; ) {
    meter.giveBack(state, at, now, left - room, now - periodUs + 1)
    const roomThen = meter.remaining(state, at, now)
    if (roomThen <= room) return false
    room = roomThen
  }
  return true
}
