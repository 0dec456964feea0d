/** Upper bounds of latencies in milliseconds: each is at most twice the one before, so that quantiles are close. */
export const latencyBoundsMs: readonly number[] = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000,
  15_000, 20_000, 30_000, 60_000,
]

/** Counts latencies: one count per bound, not cumulative, and one for all that are longer. */
export class LatencyCounts {
  readonly #counts: number[] = Array(latencyBoundsMs.length + 1).fill(0)

  add(ms: number): void {
    let at = 0
    while (at < latencyBoundsMs.length && ms > latencyBoundsMs[at]!) at++
    this.#counts[at]!++
  }

  read(): number[] {
    return [...this.#counts]
  }
}
