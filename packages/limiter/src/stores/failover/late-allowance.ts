const CHUNK_BITS = 8
const CHUNK_SLOTS = 1 << CHUNK_BITS
/** What was said of a key longer ago says nothing of what is left now. */
const FRESH_US = 5_000_000
/** Use is measured over this time at least, and from an earlier statement that is this old, unless there is none. */
const APART_US = 10_000
const MEASURED_US = 100_000
/** A caller of whom nothing was asked for longer may have moved here from another process. */
const RECENT_US = 1_000_000
/** Others may be admitted calls twice as fast as before, and half of what is left after that is theirs. */
const CAUTION = 2
/** The numbers of a slot: when the store last said something, since when its use is measured, whether others have got theirs. */
const SAID_AT = 0
const MEASURED_FROM = 1
const IS_LEFT = 2
const LEVELS = 3
/** The numbers of a level: the share of what was left, the same at the earlier moment, and when the last call was counted. */
const LEFT = 0
const LEFT_BEFORE = 1
const NEWEST = 2
const NUMBERS = 3

/** What was left of a level, how fast it was used for `measuredUs`, and how long ago the store said so. */
interface Use {
  readonly left: number
  readonly perUs: number | undefined
  readonly measuredUs: number
  readonly us: number
}

/** What becomes of the statement that the rate of use is measured from. */
export type Reference = 'first' | 'kept' | 'moved'

/**
 * How many permits of each key this process may admit while answers of the store are late, though the store is not away:
 * its share of what the store last said is left, less what the fleet will have used since if it goes on as before, and half
 * of that; and nothing that time has brought back. All numbers are in slots of the table that stands in for the store.
 */
export class LateAllowance {
  readonly #levels: number
  readonly #stride: number
  readonly #chunks: (Float64Array | undefined)[] = []

  constructor(levels: number) {
    this.#levels = levels
    this.#stride = LEVELS + NUMBERS * levels
  }

  /**
   * The store has said something of the key at `slot`: what, `note` tells for each level. Returns what becomes of the earlier
   * statement that the rate of use is measured from.
   */
  begin(slot: number, now: number): Reference {
    const chunk = this.#chunkFor(slot)
    const at = this.#baseOf(slot)
    const [saidAt, measuredFrom] = [chunk[at + SAID_AT]!, chunk[at + MEASURED_FROM]!]
    chunk[at + SAID_AT] = now
    chunk[at + IS_LEFT] = 0
    if (measuredFrom === 0) {
      chunk[at + MEASURED_FROM] = now
      return 'first'
    }
    if (saidAt - measuredFrom < MEASURED_US) return 'kept'
    chunk[at + MEASURED_FROM] = saidAt
    return 'moved'
  }

  /** This process's share of what is left of a level, and when the last of its calls was counted. */
  note(slot: number, level: number, share: number, newest: number, reference: Reference): void {
    const chunk = this.#chunkFor(slot)
    const at = this.#baseOfLevel(slot, level)
    if (reference !== 'kept') chunk[at + LEFT_BEFORE] = reference === 'first' ? share : chunk[at + LEFT]!
    chunk[at + LEFT] = share
    chunk[at + NEWEST] = newest
  }

  /** What the store last said of a level, if what it leaves to others was not taken from this process's count yet. */
  unsettled(slot: number, level: number): { left: number; newest: number; saidAt: number } | undefined {
    const chunk = this.#chunks[slot >> CHUNK_BITS]
    const base = this.#baseOf(slot)
    if (!chunk || chunk[base + SAID_AT] === 0 || chunk[base + IS_LEFT] === 1) return undefined
    const at = this.#baseOfLevel(slot, level)
    return { left: chunk[at + LEFT]!, newest: chunk[at + NEWEST]!, saidAt: chunk[base + SAID_AT]! }
  }

  /** What others have been admitted was taken from this process's count. */
  settled(slot: number): void {
    this.#chunkFor(slot)[this.#baseOf(slot) + IS_LEFT] = 1
  }

  /** Whether the store has said lately what is left of a key, twice, so that it is known how fast it is used. */
  isKnown(slot: number, now: number): boolean {
    const chunk = this.#chunks[slot >> CHUNK_BITS]
    const at = this.#baseOf(slot)
    if (!chunk) return false
    return chunk[at + SAID_AT]! > chunk[at + MEASURED_FROM]! && now - chunk[at + MEASURED_FROM]! < FRESH_US
  }

  /** Whether `cost` permits may be admitted by all levels. */
  covers(slot: number, cost: number, now: number): boolean {
    for (let level = 0; level < this.#levels; level++) {
      if (this.leftAt(slot, level, now) / CAUTION < cost) return false
    }
    return true
  }

  /** This process's share of what will be left of a level at a moment, if the fleet goes on at most twice as fast as before. */
  leftAt(slot: number, level: number, moment: number): number {
    const { left, perUs, us } = this.#useUntil(slot, level, moment)
    if (perUs === undefined) return us > 0 ? left / CAUTION : left
    return left - perUs * us * CAUTION
  }

  /**
   * The same if it goes on as before, for as long at most as its use was measured: a burst that is over does not go on. If it is
   * not known how fast that was, nothing is expected to be used.
   */
  expectedAt(slot: number, level: number, moment: number): number {
    const { left, perUs = 0, us, measuredUs } = this.#useUntil(slot, level, moment)
    return left - perUs * Math.min(us, measuredUs)
  }

  /** What was left when the store last said so, and how fast it was used; undefined if it has said so once only. */
  #useUntil(slot: number, level: number, moment: number): Use {
    const chunk = this.#chunkFor(slot)
    const at = this.#baseOf(slot)
    const [saidAt, measuredFrom] = [chunk[at + SAID_AT]!, chunk[at + MEASURED_FROM]!]
    const left = chunk[this.#baseOfLevel(slot, level) + LEFT]!
    const used = Math.max(0, chunk[this.#baseOfLevel(slot, level) + LEFT_BEFORE]! - left)
    const measuredUs = Math.max(APART_US, saidAt - measuredFrom)
    const perUs = saidAt === measuredFrom ? undefined : used / measuredUs
    return { left, perUs, us: Math.max(0, moment - saidAt), measuredUs }
  }

  /** When the store last said something of a key; 0 if that was not shortly before a moment. */
  saidBefore(slot: number, moment: number): number {
    const saidAt = this.#chunks[slot >> CHUNK_BITS]?.[this.#baseOf(slot) + SAID_AT] ?? 0
    return saidAt < moment && moment - saidAt < RECENT_US ? saidAt : 0
  }

  /** What was said of a key has been brought up to a moment. */
  catchUp(slot: number, moment: number): void {
    this.#chunkFor(slot)[this.#baseOf(slot) + SAID_AT] = moment
  }

  spend(slot: number, cost: number): void {
    const chunk = this.#chunkFor(slot)
    for (let level = 0; level < this.#levels; level++) chunk[this.#baseOfLevel(slot, level) + LEFT]! -= cost * CAUTION
  }

  /** This process takes other shares from now on, each level's larger by a factor. */
  rescale(factors: readonly number[]): void {
    for (const chunk of this.#chunks) {
      if (!chunk) continue
      for (let base = LEVELS; base < chunk.length; base += this.#stride) {
        factors.forEach((factor, level) => {
          chunk[base + NUMBERS * level + LEFT]! *= factor
          chunk[base + NUMBERS * level + LEFT_BEFORE]! *= factor
        })
      }
    }
  }

  /** The slot belongs to another key. */
  clear(slot: number): void {
    const at = this.#baseOf(slot)
    this.#chunks[slot >> CHUNK_BITS]?.fill(0, at, at + this.#stride)
  }

  #chunkFor(slot: number): Float64Array {
    const place = slot >> CHUNK_BITS
    const known = this.#chunks[place]
    if (known) return known
    const chunk = new Float64Array(CHUNK_SLOTS * this.#stride)
    this.#chunks[place] = chunk
    return chunk
  }

  #baseOf(slot: number): number {
    return (slot & (CHUNK_SLOTS - 1)) * this.#stride
  }

  #baseOfLevel(slot: number, level: number): number {
    return this.#baseOf(slot) + LEVELS + NUMBERS * level
  }
}
