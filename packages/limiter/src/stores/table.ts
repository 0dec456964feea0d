import type { Meter } from '../algorithms/algorithm.ts'
import { KeyIndex } from './key-index.ts'

const CHUNK_BITS = 10
const CHUNK_SLOTS = 1 << CHUNK_BITS
/** Slot 0 counts all keys that have no slot of their own. */
export const CROWD = 0

/**
 * The counts of one rule: a slot of numbers per key, in chunks of typed arrays, so that a key costs no object, no timer,
 * and growing copies nothing.
 *
 * A key that is not here reads as the crowd does. The crowd is all zeros, a key never seen, unless the store was full
 * and strangers had to be counted together; then a newcomer begins with what the crowd has used, since he may have
 * been among them.
 */
export class Table {
  readonly meters: readonly Meter[]
  /** Where each meter's numbers begin within a slot. */
  readonly offsets: readonly number[]
  readonly #stride: number
  readonly #held: boolean
  readonly #index = new KeyIndex()
  readonly #chunks: Float64Array[] = []
  readonly #free: number[] = []
  #slots = 1

  constructor(meters: readonly Meter[]) {
    this.meters = meters
    let stride = 0
    this.offsets = meters.map(meter => {
      const offset = stride
      stride += meter.slots
      return offset
    })
    this.#stride = stride
    this.#held = meters.some(meter => meter.held)
    // a table of one key, such as a global rule's, needs no whole chunk
    this.#chunks.push(new Float64Array(stride))
  }

  /** Keys with a slot of their own. */
  get keys(): number {
    return this.#index.size
  }

  find(key: string): number {
    return key === '' ? CROWD : (this.#index.get(key) ?? CROWD)
  }

  state(slot: number): Float64Array {
    return this.#chunks[(slot + CHUNK_SLOTS - 1) >> CHUNK_BITS]!
  }

  base(slot: number): number {
    return ((slot + CHUNK_SLOTS - 1) & (CHUNK_SLOTS - 1)) * (slot === CROWD ? 0 : this.#stride)
  }

  /** Whether strangers are being counted together at this moment. */
  isCrowded(now: number): boolean {
    return this.#isLive(CROWD, now)
  }

  /** A slot for a key that has none; the crowd's, where calls of the crowd cannot be told apart from its own. */
  add(key: string, now: number): number {
    const crowded = this.#isLive(CROWD, now)
    if (crowded && this.#held) return CROWD
    const slot = this.#free.pop() ?? this.#grow()
    this.#index.add(key, slot)
    if (crowded) this.state(slot).set(this.#chunks[0]!, this.base(slot))
    return slot
  }

  /** Looks at up to `count` keys and frees those whose state says nothing any more; returns how many it freed. */
  sweep(count: number, now: number): number {
    let freed = 0
    for (let looked = 0; looked < count; looked++) {
      const entry = this.#index.next()
      if (entry === undefined || this.#isLive(entry[1], now)) continue
      const [key, slot] = entry
      this.#index.delete(key)
      const base = this.base(slot)
      this.state(slot).fill(0, base, base + this.#stride)
      this.#free.push(slot)
      freed++
    }
    return freed
  }

  #grow(): number {
    const slot = this.#slots++
    if ((slot + CHUNK_SLOTS - 1) >> CHUNK_BITS === this.#chunks.length) {
      this.#chunks.push(new Float64Array(CHUNK_SLOTS * this.#stride))
    }
    return slot
  }

  #isLive(slot: number, now: number): boolean {
    const state = this.state(slot)
    const base = this.base(slot)
    return this.meters.some((meter, level) => meter.idleAt(state, base + this.offsets[level]!) > now)
  }
}
