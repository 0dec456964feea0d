const SHARDS = 64
const SPREAD_AT = 65_536
/** So many keys are moved for each new one, until all of them have. */
const MOVED_PER_KEY = 8
const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Keys to slots. A JavaScript Map that grows or shrinks is copied whole, a long pause at a million keys; so beyond some
 * ten thousand the keys are spread over many maps, each of which is copied on its own. One map is the quicker, so fewer
 * keys stay together; and when they have become too many they move bit by bit, lest the move be a pause itself.
 */
export class KeyIndex {
  /** Where all keys are at first; undefined once they have moved. */
  #first: Map<string, number> | undefined = new Map()
  #moving: MapIterator<[string, number]> | undefined
  #shards: Map<string, number>[] = []
  #size = 0
  #sweeping = 0
  #cursor: MapIterator<[string, number]> | undefined

  get size(): number {
    return this.#size
  }

  get(key: string): number | undefined {
    if (this.#shards.length === 0) return this.#first!.get(key)
    return this.#shards[shardOf(key)]!.get(key) ?? this.#first?.get(key)
  }

  /** The key must not be there yet. */
  add(key: string, slot: number): void {
    if (this.#shards.length === 0 && this.#size === SPREAD_AT) {
      this.#shards = Array.from({ length: SHARDS }, () => new Map<string, number>())
    }
    if (this.#shards.length === 0) this.#first!.set(ownCopy(key), slot)
    else {
      if (this.#first) this.#move(this.#first)
      this.#shards[shardOf(key)]!.set(ownCopy(key), slot)
    }
    this.#size++
  }

  delete(key: string): void {
    if (this.#first?.delete(key) || this.#shards[shardOf(key)]?.delete(key)) this.#size--
  }

  /** The next key of an endless round over all of them; undefined now and then, and always when empty. */
  next(): [key: string, slot: number] | undefined {
    // behind the shards comes the first map
    this.#cursor ??= (this.#shards[this.#sweeping] ?? this.#first ?? NONE).entries()
    const step = this.#cursor.next()
    if (!step.done) return step.value
    this.#cursor = undefined
    this.#sweeping = (this.#sweeping + 1) % (this.#shards.length + 1)
    return undefined
  }

  #move(first: Map<string, number>): void {
    // one walk over all: each new one would have to step over all that have moved before
    this.#moving ??= first.entries()
    for (let moved = 0; moved < MOVED_PER_KEY; moved++) {
      const step = this.#moving.next()
      if (step.done) {
        this.#first = undefined
        this.#moving = undefined
        return
      }
      const [key, slot] = step.value
      first.delete(key)
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
