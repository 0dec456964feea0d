/**
 * Numbers used once, remembered for as long as a call that bears one could be sent again. At most `most` of them: where
 * there is no room, a new one is not taken, since forgetting an old one would let it pass twice.
 */
export class Nonces {
  readonly #keepMs: number
  readonly #most: number
  /** Two generations: the older one is forgotten whole, so that nothing has to be searched. */
  #older = new Set<string>()
  #newer = new Set<string>()
  #turnsAt = 0

  constructor(options: { readonly keepMs: number; readonly most: number }) {
    this.#keepMs = options.keepMs
    this.#most = options.most
  }

  /** Remembers a number; returns whether it is new, was used before, or has no room. */
  take(nonce: string, now: number): 'new' | 'used' | 'full' {
    this.#turn(now)
    if (this.#newer.has(nonce) || this.#older.has(nonce)) return 'used'
    if (this.#newer.size + this.#older.size >= this.#most) return 'full'
    this.#newer.add(nonce)
    return 'new'
  }

  #turn(now: number): void {
    if (now < this.#turnsAt) return
    // all of the newer generation was taken before this moment, and must be kept for another while
    this.#older = now < this.#turnsAt + this.#keepMs ? this.#newer : new Set()
    this.#newer = new Set()
    this.#turnsAt = now + this.#keepMs
  }
}
