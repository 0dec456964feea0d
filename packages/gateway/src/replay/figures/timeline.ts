/** The events in one bin of time. */
export interface Bin {
  calls: number
  least: number
  most: number
}

const MINUTE_US = 60_000_000
const MOST_BINS = 720

/** Calls and refusals over time, in bins of a minute or, for a long log, of several; at most a few hundred. */
export class Timeline {
  readonly bins: Map<number, Bin> = new Map()
  binUs: number = MINUTE_US
  /** The minute in which most calls were refused, in microseconds since 1970. */
  worst: { at: number; least: number; most: number } | undefined
  #minute = -1
  #least = 0
  #most = 0

  add(x: number, calls: number, least: number, most: number): void {
    const bin = this.bins.get(Math.floor(x / this.binUs))
    if (bin === undefined) this.#addBin(x, { calls, least, most })
    else {
      bin.calls += calls
      bin.least += least
      bin.most += most
    }
    if (most > 0 || least > 0) this.#addToMinute(Math.floor(x / MINUTE_US), least, most)
  }

  #addToMinute(minute: number, least: number, most: number): void {
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#least = 0
      this.#most = 0
    }
    this.#least += least
    this.#most += most
    if (this.#most > (this.worst?.most ?? 0)) {
      this.worst = { at: minute * MINUTE_US, least: this.#least, most: this.#most }
    }
  }

  #addBin(x: number, bin: Bin): void {
    this.bins.set(Math.floor(x / this.binUs), bin)
    while (this.bins.size > MOST_BINS) this.#widen()
  }

  #widen(): void {
    const before = [...this.bins]
    this.bins.clear()
    this.binUs *= 2
    for (const [at, { calls, least, most }] of before) {
      const bin = this.bins.get(Math.floor(at / 2))
      if (bin === undefined) this.bins.set(Math.floor(at / 2), { calls, least, most })
      else {
        bin.calls += calls
        bin.least += least
        bin.most += most
      }
    }
  }
}
