const SHARDS = 64
const SPREAD_AT = 65_536
/** So many keys are moved for each new one, until all of them have. */
const MOVED_PER_KEY = 8
const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Keys to slots. A JavaScript Map that grows or shrinks is copied whole, a long pause at a million keys; so beyond some
 * ten thousand the keys are spread over many maps, each of which is copied on its own. One map is the quicker, so fewer
 * keys stay together; and when they have become too many they move bit by bit, so that the move is not a pause itself.
 */
export class KeyIndex {
  /** Where all keys are, until they are spread. */
  #only: Map<string, number> | undefined = new Map()
  #shards: Map<string, number>[] = []
  /** Those that have yet to move. */
  #rest: Map<string, number> | undefined
  #moving: MapIterator<[string, number]> | undefined
  #size = 0
  #sweeping = 0
  #cursor: MapIterator<[string, number]> | undefined

  get size(): number {
    return this.#size
  }

  get(key: string): number | undefined {
    const only = this.#only
    return only === undefined ? this.#getSpread(key) : only.get(key)
  }

  /** The key must not be there yet. */
  add(key: string, slot: number): void {
    if (this.#only && this.#size === SPREAD_AT) this.#spread(this.#only)
    if (this.#rest) this.#move(this.#rest)
    const map = this.#only ?? this.#shards[shardOf(key)]!
    map.set(ownCopy(key), slot)
    this.#size++
  }

  delete(key: string): void {
    const isGone = this.#only
      ? this.#only.delete(key)
      : this.#shards[shardOf(key)]!.delete(key) || this.#rest?.delete(key)
    if (isGone) this.#size--
  }

  /** The next key of an endless round over all of them; undefined now and then, and always when empty. */
  next(): [key: string, slot: number] | undefined {
    this.#cursor ??= (this.#only ?? this.#shards[this.#sweeping] ?? this.#rest ?? NONE).entries()
    const step = this.#cursor.next()
    if (!step.done) return step.value
    this.#cursor = undefined
    this.#sweeping = (this.#sweeping + 1) % (this.#shards.length + 1)
    return undefined
  }

  *entries(): Generator<readonly [key: string, slot: number]> {
    for (const map of [this.#only, ...this.#shards, this.#rest]) if (map) yield* map.entries()
  }

  #getSpread(key: string): number | undefined {
    return this.#shards[shardOf(key)]!.get(key) ?? this.#rest?.get(key)
  }

  #spread(all: Map<string, number>): void {
    this.#shards = Array.from({ length: SHARDS }, () => new Map<string, number>())
    this.#rest = all
    // one walk over all: a new one for each step would have to pass over all that have moved before
    this.#moving = all.entries()
    this.#only = undefined
  }

  #move(rest: Map<string, number>): void {
    for (let moved = 0; moved < MOVED_PER_KEY; moved++) {
      const step = this.#moving!.next()
      if (step.done) {
        this.#rest = undefined
        this.#moving = undefined
        return
      }
      const [key, slot] = step.value
      rest.delete(key)
      this.#shards[shardOf(key)]!.set(key, slot)
    }
  }
}

/**
 * A number that keys of one kind share as little as possible. They may differ at the front (an account before a resource,
 * a name before its domain), in the middle or at the end; all of the text would cost more than it gains.
 */
export function shardOf(key: string): number {
  const end = key.length
  if (end < 9) return (key.charCodeAt(end - 1) * 31 + key.charCodeAt(end >> 1)) & (SHARDS - 1)
  const tail = key.charCodeAt(end - 1) * 29_791 + key.charCodeAt(end - 2) * 961 + key.charCodeAt(end >> 1) * 7
  const head = key.charCodeAt(4) * 31 + key.charCodeAt(5) * 13 + key.charCodeAt(6) + key.charCodeAt(8) * 3
  return (tail + head + end) & (SHARDS - 1)
}

/** A key is often a slice of a whole header or URL, and keeping the slice would keep all of that in memory. */
function ownCopy(key: string): string {
  // V8 makes slices of 13 characters and more only
  if (key.length < 13) return key
  return Buffer.from(key, 'utf16le').toString('utf16le')
}
