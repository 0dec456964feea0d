/** Counts of the last minutes in steps, in place. */
export class Timeline {
  static readonly stepMs = 20_000
  static readonly steps = 30
  readonly #counts = new Uint32Array(Timeline.steps)
  #last = 0

  add(at: number, count: number): void {
    const step = this.#moveTo(at)
    if (step > this.#last - Timeline.steps) this.#counts[step % Timeline.steps]! += count
  }

  /** The counts up to a moment, oldest first. */
  read(at: number): number[] {
    const step = this.#moveTo(at)
    return Array.from({ length: Timeline.steps }, (_, i) => this.#at(step - Timeline.steps + 1 + i))
  }

  sum(at: number): number {
    const step = this.#moveTo(at)
    let sum = 0
    for (let back = 0; back < Timeline.steps; back++) sum += this.#at(step - back)
    return sum
  }

  #at(step: number): number {
    return step < 0 || step <= this.#last - Timeline.steps || step > this.#last
      ? 0
      : this.#counts[step % Timeline.steps]!
  }

  /** Steps without a count are empty. */
  #moveTo(at: number): number {
    const step = Math.floor(at / Timeline.stepMs)
    for (let empty = Math.max(this.#last + 1, step - Timeline.steps + 1); empty <= step; empty++) {
      this.#counts[empty % Timeline.steps] = 0
    }
    this.#last = Math.max(this.#last, step)
    return step
  }
}
