/** How many concurrency slots are held, per counter and key. */
export class Holdings<Counter> {
  readonly #held = new Map<Counter, Map<string, number>>()

  add(counter: Counter, key: string, cost: number): void {
    const keys = this.#held.get(counter) ?? new Map<string, number>()
    const held = (keys.get(key) ?? 0) + cost
    if (held > 0) keys.set(key, held)
    else keys.delete(key)
    if (keys.size > 0) this.#held.set(counter, keys)
    else this.#held.delete(counter)
  }

  drop(counter: Counter, key: string): void {
    const keys = this.#held.get(counter)
    keys?.delete(key)
    if (keys?.size === 0) this.#held.delete(counter)
  }

  *[Symbol.iterator](): Generator<readonly [counter: Counter, key: string, cost: number]> {
    for (const [counter, keys] of this.#held) for (const [key, cost] of keys) yield [counter, key, cost]
  }
}
