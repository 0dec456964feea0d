/** Measures how much each caller has used lately; knows the heaviest ones, and no more than `most` of them twice over. */
export class Usage {
  readonly #used = new Map<string, number>()
  readonly #most: number

  constructor(most = 1000) {
    this.#most = most
  }

  get size(): number {
    return this.#used.size
  }

  /** Returns what all known callers have used. */
  get total(): number {
    let total = 0
    for (const used of this.#used.values()) total += used
    return total
  }

  /** Counts a call, and returns what its caller has used with it. */
  add(key: string): number {
    const used = (this.#used.get(key) ?? 0) + 1
    this.#used.set(key, used)
    return used
  }

  /** Reduces what was used as time passes, and forgets the lightest callers if there are too many. */
  decay(part: number): void {
    for (const [key, used] of this.#used) {
      if (used * part < 0.5) this.#used.delete(key)
      else this.#used.set(key, used * part)
    }
    if (this.#used.size <= this.#most) return
    const sorted = [...this.#used].sort(([, a], [, b]) => b - a)
    for (const [key] of sorted.slice(this.#most)) this.#used.delete(key)
  }

  /** Returns the least use of the callers to refuse: the heaviest callers, who together have used `amount`. */
  cut(amount: number): number {
    let left = amount
    for (const used of [...this.#used.values()].sort((a, b) => b - a)) {
      left -= used
      if (left <= 0) return used
    }
    return 0
  }
}
