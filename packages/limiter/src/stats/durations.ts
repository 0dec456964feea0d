/** The durations of decisions: how many up to each bound, not counting those up to an earlier one, and beyond the last. */
export interface DurationStats {
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Seconds; from a decision in this process to one that waits for a slow store. */
export const durationBounds: readonly number[] = [
  1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1,
]

/** A histogram of durations. */
export class Durations {
  readonly #counts: number[] = new Array(durationBounds.length + 1).fill(0)
  #sumSeconds = 0

  add(seconds: number): void {
    const bucket = durationBounds.findIndex(bound => seconds <= bound)
    this.#counts[bucket < 0 ? durationBounds.length : bucket]!++
    this.#sumSeconds += seconds
  }

  read(): DurationStats {
    return { counts: [...this.#counts], sumSeconds: this.#sumSeconds }
  }
}
