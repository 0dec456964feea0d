import type { Meter } from '../algorithms/algorithm.ts'
import { FreeSlots } from './free-slots.ts'
import { isSameLayout, type Layout, layOut } from './inherit-states.ts'
import { KeyIndex } from './key-index.ts'
import { States } from './states.ts'

const CHUNK_BITS = 10
const CHUNK_SLOTS = 1 << CHUNK_BITS
/** Slot 0 counts all keys that have no slot of their own. */
export const CROWD = 0
/** A state of no more numbers is cheaper to put back than to ask beforehand. */
export const PASSING_SLOTS = 16

let resets = 0

/** How many keys were reset in this process so far. A charge remembers it, and is not refunded after a later reset. */
export function resetsSoFar(): number {
  return resets
}

/**
 * The counts of one rule: a slot of numbers per key (states.ts).
 *
 * A key that is not here reads as the crowd does. The crowd is all zeros, a key never seen, unless the store was full
 * and strangers had to be counted together; then a newcomer begins with what the crowd has used, since he may have
 * been among them.
 */
export class Table {
  meters: readonly Meter[] = []
  /** Where each meter's numbers begin within a slot. */
  offsets: readonly number[] = []
  /** How many numbers a slot has. */
  stride = 0
  /** Since when the limit is what it is; before all moments if it was never changed. */
  changedAt = -1
  /** Whether a call can be counted by one move, and the move undone. */
  passes = false
  /** Whether calls that are not admitted are stored as the moment at which a key was first seen. */
  begins = false
  #held = false
  readonly #index = new KeyIndex()
  #states: States
  /** Those of `#states`, one step nearer. */
  #chunks: States['chunks']
  #step = 0
  readonly #free = new FreeSlots()
  #slots = 1
  #hasStrangers = false
  /** The last reset of each slot, by chunks; none for a chunk without any. */
  readonly #resets: (Float64Array | undefined)[] = []

  constructor(meters: readonly Meter[]) {
    const layout = layOut(meters)
    this.#use(layout)
    this.#states = new States(layout, CHUNK_BITS)
    this.#useStates(this.#states)
    // a table of the crowd alone, such as a global rule's, needs no whole chunk
    this.#states.addChunk(CROWD, 1)
  }

  /**
   * Goes on counting with other numbers: every key's state is what the new meters make of it. Returns what undoes this, as
   * long as nothing was counted since; where a meter throws, nothing has changed.
   */
  adopt(meters: readonly Meter[], now: number): () => void {
    const before: Layout = { meters: this.meters, offsets: this.offsets, stride: this.stride }
    const after = layOut(meters)
    const [undone, changedAt] = [this.#states, this.changedAt]
    const states = isSameLayout(before, after) ? undone : undone.inherit(after, now)
    this.#use(after)
    if (states !== undone) this.changedAt = now
    this.#useStates(states)
    return () => {
      this.#use(before)
      this.#useStates(undone)
      this.changedAt = changedAt
    }
  }

  #use({ meters, offsets, stride }: Layout): void {
    this.meters = meters
    this.offsets = offsets
    this.stride = stride
    this.begins = meters.some(meter => meter.begin !== undefined)
    this.passes = meters.length === 1 && meters[0]!.pass !== undefined && stride <= PASSING_SLOTS && !this.begins
    this.#held = meters.some(meter => meter.held)
  }

  #useStates(states: States): void {
    this.#states = states
    this.#chunks = states.chunks
    this.#step = states.base(1)
  }

  /** Keys with a slot of their own. */
  get keys(): number {
    return this.#index.size
  }

  find(key: string): number {
    // to compare texts takes a call, to measure one does not
    return key.length === 0 ? CROWD : (this.#index.get(key) ?? CROWD)
  }

  /** All keys and their slots; the crowd's has the empty key. */
  *entries(): Generator<readonly [key: string, slot: number]> {
    yield ['', CROWD]
    yield* this.#index.entries()
  }

  /** The array with the state of a slot, from `base` on; it is not to be used after that of another slot was asked for. */
  state(slot: number): Float64Array {
    const chunks = this.#chunks
    return chunks === undefined ? this.#states.state(slot) : chunks[slot >> CHUNK_BITS]!
  }

  base(slot: number): number {
    return (slot & (CHUNK_SLOTS - 1)) * this.#step
  }

  /** Whether strangers are being counted together at this moment. */
  isCrowded(now: number): boolean {
    return this.#hasStrangers && this.#isLive(CROWD, now)
  }

  /** The slot of a key for which there is no room. */
  addStranger(): number {
    this.#hasStrangers = true
    return CROWD
  }

  /** A slot for a key that has none; the crowd's, where calls of the crowd cannot be told apart from its own. */
  add(key: string, now: number): number {
    const crowded = this.isCrowded(now)
    if (crowded && this.#held) return CROWD
    const slot = this.#free.pop() ?? this.#grow()
    this.#index.add(key, slot)
    if (crowded) this.#states.copy(CROWD, slot)
    return slot
  }

  /**
   * Forgets what is counted for a key; a key that shares a counter with others keeps it. `stamp` is larger than that of every
   * charge so far.
   */
  reset(key: string, stamp: number = ++resets): void {
    const slot = this.find(key)
    if (slot === CROWD && key !== '') return
    this.#states.clear(slot)
    this.#resets[slot >> CHUNK_BITS] ??= new Float64Array(CHUNK_SLOTS)
    this.#resets[slot >> CHUNK_BITS]![slot & (CHUNK_SLOTS - 1)] = stamp
  }

  /** Whether a slot was reset after a charge with this stamp. */
  isResetSince(slot: number, stamp: number): boolean {
    const chunk = this.#resets[slot >> CHUNK_BITS]
    return chunk !== undefined && chunk[slot & (CHUNK_SLOTS - 1)]! > stamp
  }

  /** Looks at up to `count` keys and frees those whose state says nothing any more; returns how many it freed. */
  sweep(count: number, now: number): number {
    let freed = 0
    for (let looked = 0; looked < count; looked++) {
      const entry = this.#index.next()
      if (entry === undefined || this.#isLive(entry[1], now)) continue
      const [key, slot] = entry
      this.#index.delete(key)
      this.#states.clear(slot)
      this.#free.push(slot)
      freed++
    }
    return freed
  }

  #grow(): number {
    const slot = this.#slots++
    if (slot === CROWD + 1 || !this.#states.hasChunk(slot)) this.#states.addChunk(slot)
    return slot
  }

  #isLive(slot: number, now: number): boolean {
    const state = this.state(slot)
    const base = this.base(slot)
    return this.meters.some((meter, level) => meter.idleAt(state, base + this.offsets[level]!) > now)
  }
}
