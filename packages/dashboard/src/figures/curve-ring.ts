import type { Curve } from '../api/generated.ts'
import { SECONDS } from './ring.ts'

/** A number for each of the last seconds, or none. */
export class CurveRing {
  readonly #numbers = new Float64Array(SECONDS)
  readonly #seconds = new Float64Array(SECONDS).fill(-1)

  write(second: number, value: number): void {
    this.#numbers[second % SECONDS] = value
    this.#seconds[second % SECONDS] = second
  }

  /** Takes a history whose newest number belongs to `second`; what is known already stays. */
  fill(second: number, curve: Curve): void {
    for (const [index, value] of curve.entries()) {
      const at = second - curve.length + 1 + index
      if (value === null || at <= second - SECONDS || this.at(at) !== null) continue
      this.write(at, value)
    }
  }

  at(second: number): number | null {
    return second >= 0 && this.#seconds[second % SECONDS] === second ? this.#numbers[second % SECONDS]! : null
  }

  /** The sum of all seconds that are remembered, up to and with one. */
  sum(second: number): number {
    let sum = 0
    for (let back = 0; back < SECONDS; back++) sum += this.at(second - back) ?? 0
    return sum
  }

  isEmpty(second: number): boolean {
    return this.#seconds.every(at => at <= second - SECONDS)
  }
}
