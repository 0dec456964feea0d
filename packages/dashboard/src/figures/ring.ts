import { StepRing } from '../../../limiter/src/common/step-ring.ts'
import type { Counts, Curve, Series } from '../api/generated.ts'

export const COUNTS = ['allowed', 'refused', 'waited', 'shadowRefused'] as const satisfies readonly (keyof Counts)[]
export type Count = (typeof COUNTS)[number]

/** The number of seconds that the page remembers. */
export const SECONDS = 300

/** The last seconds of one rule's counts. */
export class Ring {
  readonly #rings = Object.fromEntries(COUNTS.map(name => [name, ringOfSeconds()])) as Record<Count, StepRing>
  /** The second, since 1970, that was written last. */
  #last = Number.NEGATIVE_INFINITY

  /** Writes what was counted in a second; seconds between it and the last one were silent. */
  write(second: number, counts: Counts): void {
    for (const name of COUNTS) this.#rings[name].write(second, counts[name] ?? 0)
    this.#last = Math.max(this.#last, second)
  }

  /** Takes a history whose newest number belongs to a second; what is known already stays, as after a gateway's restart. */
  fill(second: number, series: Series): void {
    const known = this.#last
    const length = Math.min(series.allowed.length, SECONDS)
    for (let back = length - 1; back >= 0; back--) {
      if (second - back <= known) continue
      const at = series.allowed.length - 1 - back
      this.write(second - back, {
        allowed: series.allowed[at] ?? 0,
        refused: series.refused[at] ?? 0,
        waited: series.waited[at] ?? 0,
        shadowRefused: series.shadowRefused[at] ?? 0,
      })
    }
  }

  at(second: number, name: Count): number {
    return this.#rings[name].at(second)
  }

  /** Returns the numbers of the seconds up to and with one, oldest first. */
  window(second: number, length: number, name: Count): number[] {
    return this.#rings[name].read(second, length)
  }

  /** Adds up the numbers of the seconds up to and with one; the last second, and all seconds together, need no addition. */
  sum(second: number, length: number, name: Count): number {
    for (const ring of Object.values(this.#rings)) ring.moveTo(second)
    this.#last = Math.max(this.#last, second)
    return this.#rings[name].sum(second, length)
  }
}

/** A number for each of the last seconds, or none. */
export class CurveRing {
  readonly #ring = ringOfSeconds({ empty: Number.NaN })

  write(second: number, value: number): void {
    this.#ring.write(second, value)
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
    const value = this.#ring.at(second)
    return Number.isNaN(value) ? null : value
  }

  /** Returns the sum of all seconds that are remembered, up to and with one. */
  sum(second: number): number {
    return this.#ring.sum(second, SECONDS)
  }

  isEmpty(second: number): boolean {
    return this.#ring.read(second, SECONDS).every(Number.isNaN)
  }
}

function ringOfSeconds(options?: { readonly empty: number }): StepRing {
  return new StepRing(new Float64Array(SECONDS), options)
}
