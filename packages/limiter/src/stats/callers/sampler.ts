/**
 * Chooses which of many events are read, so that reading them costs the same however many there are: all of them up to
 * `perSecond`, and of more one in 2, 4, 8 …, at random distances, so that events in a rhythm are not read always or never.
 */
export class Sampler {
  readonly #perSecond: number
  readonly #keptMs: number
  /** Events until the next one is read. */
  #skip = 1
  #oneOf = 1
  #second = 0
  #read = 0
  /** The coarsest sample of those whose counts may still be shown. */
  #coarsest = { oneOf: 1, until: 0 }

  constructor(perSecond: number, keptMs: number) {
    this.#perSecond = perSecond
    this.#keptMs = keptMs
  }

  /** True if this event is one that is read; if so, `weigh` must follow. */
  isNext(): boolean {
    return --this.#skip === 0
  }

  /** Returns for how many events one that is read at this moment stands. */
  weigh(at: number): number {
    this.#pace(at)
    this.#skip = this.#oneOf === 1 ? 1 : 1 + Math.floor(Math.random() * (2 * this.#oneOf - 1))
    return this.#oneOf
  }

  /** Returns for how many events one stood at most, of those that are still shown. */
  coarsest(at: number): number {
    return this.#coarsest.until > at ? this.#coarsest.oneOf : 1
  }

  #pace(at: number): void {
    const second = Math.floor(at / 1000)
    if (second !== this.#second) {
      const events = second === this.#second + 1 ? this.#read * this.#oneOf : 0
      this.#oneOf = 2 ** Math.max(0, Math.ceil(Math.log2(events / this.#perSecond)))
      this.#second = second
      this.#read = 0
    } else if (this.#read >= 2 * this.#perSecond) {
      // a flood that has just begun
      this.#oneOf *= 2
      this.#read = this.#perSecond
    }
    this.#read++
    if (this.#oneOf > 1 && (this.#oneOf >= this.#coarsest.oneOf || this.#coarsest.until < at)) {
      this.#coarsest = { oneOf: this.#oneOf, until: at + this.#keptMs }
    }
  }
}
