/**
 * One number for each of the last steps of time, such as seconds, in place: writing a step moves nothing. Steps are numbered, and
 * the owner chooses the array: its length is the number of steps that are kept, its type their cost.
 */
export class StepRing {
  readonly #numbers: Float64Array | Uint32Array
  /** The number of a step in which nothing was written; NaN if that differs from 0. */
  readonly #empty: number
  /** The newest step that was written or passed. */
  #last = Number.NEGATIVE_INFINITY
  /** The sum of all steps that are kept. */
  #total = 0

  constructor(numbers: Float64Array | Uint32Array, options: { readonly empty?: number } = {}) {
    this.#empty = options.empty ?? 0
    this.#numbers = numbers.fill(this.#empty)
  }

  /** Writes the number of a step; one that is older than all that are kept is ignored. */
  write(step: number, value: number): void {
    if (step <= this.#last - this.#numbers.length) return
    this.moveTo(step)
    this.#put(step, value)
  }

  /** Adds to the number of a step; one that is older than all that are kept is ignored. */
  add(step: number, more: number): void {
    this.write(step, (this.at(step) || 0) + more)
  }

  /** Empties the steps after the newest one, up to and with `step`. */
  moveTo(step: number): void {
    const from = Math.max(this.#last + 1, step - this.#numbers.length + 1)
    for (let passed = from; passed <= step; passed++) this.#put(passed, this.#empty)
    this.#last = Math.max(this.#last, step)
  }

  /** Returns the number of a step. */
  at(step: number): number {
    if (step > this.#last || step <= this.#last - this.#numbers.length) return this.#empty
    return this.#numbers[this.#slotOf(step)]!
  }

  /** Returns the numbers of `count` steps up to and with one, oldest first. */
  read(step: number, count: number): number[] {
    return Array.from({ length: count }, (_, index) => this.at(step - count + 1 + index))
  }

  /** Returns the sum of `count` steps up to and with one; that of all steps up to the newest is kept and takes no adding up. */
  sum(step: number, count: number): number {
    if (step === this.#last && count === this.#numbers.length) return this.#total
    let sum = 0
    for (let back = 0; back < count; back++) sum += this.at(step - back) || 0
    return sum
  }

  /** Empties all steps. */
  clear(): void {
    this.#numbers.fill(this.#empty)
    this.#last = Number.NEGATIVE_INFINITY
    this.#total = 0
  }

  #put(step: number, value: number): void {
    const slot = this.#slotOf(step)
    // NaN adds nothing
    this.#total += (value || 0) - (this.#numbers[slot]! || 0)
    this.#numbers[slot] = value
  }

  #slotOf(step: number): number {
    const { length } = this.#numbers
    return ((step % length) + length) % length
  }
}
