const SHARDS = 64
const SPLIT_AT = 8192

/**
 * Keys to slots. A JavaScript Map that grows or shrinks is copied whole, a long pause at a million keys; so beyond a few
 * thousand the keys are spread over many maps, each of which is copied on its own.
 */
export class KeyIndex {
  #shards: Map<string, number>[] = [new Map()]
  #size = 0
  #sweeping = 0
  #cursor: MapIterator<[string, number]> | undefined

  get size(): number {
    return this.#size
  }

  get(key: string): number | undefined {
    return this.#shard(key).get(key)
  }

  /** The key must not be there yet. */
  add(key: string, slot: number): void {
    if (this.#shards.length === 1 && this.#size === SPLIT_AT) this.#split()
    this.#shard(key).set(ownCopy(key), slot)
    this.#size++
  }

  delete(key: string): void {
    if (this.#shard(key).delete(key)) this.#size--
  }

  /** The next key of an endless round over all of them; undefined now and then, and always when empty. */
  next(): [key: string, slot: number] | undefined {
    this.#cursor ??= this.#shards[this.#sweeping]!.entries()
    const step = this.#cursor.next()
    if (!step.done) return step.value
    this.#cursor = undefined
    this.#sweeping = (this.#sweeping + 1) % this.#shards.length
    return undefined
  }

  #shard(key: string): Map<string, number> {
    return this.#shards.length === 1 ? this.#shards[0]! : this.#shards[shardOf(key)]!
  }

  #split(): void {
    const whole = this.#shards[0]!
    this.#shards = Array.from({ length: SHARDS }, () => new Map<string, number>())
    this.#cursor = undefined
    this.#sweeping = 0
    for (const [key, slot] of whole) this.#shard(key).set(key, slot)
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
