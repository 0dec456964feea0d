import type { Meter } from '../algorithms/algorithm.ts'

const FENCE = -12_345
const AT = 2

/** One caller's state at a meter, between guard values: a meter that writes beyond its slots fails the test. */
export class OneKey {
  readonly meter: Meter
  readonly #state: Float64Array

  constructor(meter: Meter) {
    this.meter = meter
    this.#state = new Float64Array(AT + meter.slots + 1).fill(FENCE)
    this.forget()
  }

  clone(): OneKey {
    const lua = new OneKey(this.meter)
    lua.#state.set(this.#state)
    return lua
  }

  /** Returns the time that a call would wait. */
  delay(now: number, cost: number): number {
    return this.meter.delay(this.#state, AT, now, cost)
  }

  /** Counts a call if it fits, as a store does; answers with the moment at which it passes, or undefined. */
  take(now: number, cost: number): number | undefined {
    const delay = this.delay(now, cost)
    if (cost > 0) this.begin(now)
    if (delay > this.meter.maxWaitUs) return undefined
    if (cost > 0) this.meter.take(this.#state, AT, now, cost, delay)
    this.#assertFenced()
    return now + delay
  }

  /** Stores the moment at which the key is first seen, as a call does whether or not it is admitted. */
  begin(now: number): void {
    this.meter.rate?.start?.begin(this.#state, AT, now)
    this.#assertFenced()
  }

  giveBack(now: number, cost: number, moment: number): void {
    this.meter.refund(this.#state, AT, now, cost, moment)
    this.#assertFenced()
  }

  remaining(now: number): number {
    return this.meter.remaining(this.#state, AT, now)
  }

  idleAt(): number {
    return this.meter.idleAt(this.#state, AT)
  }

  forget(): void {
    this.#state.fill(0, AT, AT + this.meter.slots)
  }

  /** Returns the caller's numbers as text, which is equal if every bit is. */
  bits(): string {
    return Buffer.from(this.#state.buffer.slice(0)).toString('hex')
  }

  numbers(): number[] {
    return [...this.#state.subarray(AT, AT + this.meter.slots)]
  }

  #assertFenced(): void {
    const last = this.#state.length - 1
    if (this.#state[AT - 1] !== FENCE || this.#state[last] !== FENCE) throw new Error('a meter wrote beyond its slots')
    if (this.numbers().some(Number.isNaN)) throw new Error('a meter wrote NaN')
  }
}
