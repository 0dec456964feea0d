/** One number for each of the last seconds, in place. Seconds are counted since 1970. */
export class SecondRing {
  readonly #numbers: Float64Array
  /** The value of a second of which nothing was reported. */
  readonly #empty: number
  #last = Number.NEGATIVE_INFINITY

  constructor(length: number, empty = 0) {
    this.#numbers = new Float64Array(length).fill(empty)
    this.#empty = empty
  }

  /** Writes the number of a second; one that is older than all that are kept is ignored. */
  write(second: number, value: number): void {
    const length = this.#numbers.length
    if (second <= this.#last - length) return
    for (let skipped = Math.max(this.#last + 1, second - length + 1); skipped < second; skipped++) {
      this.#numbers[skipped % length] = this.#empty
    }
    this.#numbers[second % length] = value
    this.#last = Math.max(this.#last, second)
  }

  at(second: number): number {
    if (second > this.#last || second <= this.#last - this.#numbers.length) return this.#empty
    return this.#numbers[second % this.#numbers.length]!
  }

  /** Returns the sum of the `count` seconds that end with `second`. */
  sum(second: number, count: number): number {
    let sum = 0
    for (let at = second - count + 1; at <= second; at++) sum += this.at(at)
    return sum
  }

  /** Returns the sums of whole steps, oldest first; the newest is the last that has ended by `second`. Steps begin at fixed times. */
  steps(second: number, count: number, stepSeconds: number): number[] {
    const end = Math.floor((second + 1) / stepSeconds) * stepSeconds
    return Array.from({ length: count }, (_, index) => {
      return this.sum(end - (count - 1 - index) * stepSeconds - 1, stepSeconds)
    })
  }

  /** Returns the numbers of the `count` seconds that end with `second`, oldest first. */
  read(second: number, count: number): number[] {
    return Array.from({ length: count }, (_, index) => this.at(second - count + 1 + index))
  }
}
