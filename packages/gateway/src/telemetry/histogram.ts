/** Upper bounds of durations in seconds, as OpenTelemetry recommends them for HTTP. */
export const durationBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** Upper bounds of latencies in seconds, close enough for quantiles: each is at most twice the one before. */
export const latencyBounds: readonly number[] = [
  0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3,
  5, 7, 10, 15, 20, 30, 60,
]

/** How many durations fell below each bound, and their sum, as plain values. */
export interface HistogramStats {
  /** One count per bound, not cumulative, and one for all that are longer. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Counts durations. */
export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sumMs = 0

  constructor(bounds: readonly number[] = durationBounds) {
    this.#bounds = bounds
    this.#counts = Array(bounds.length + 1).fill(0)
  }

  add(ms: number): void {
    this.#sumMs += ms
    const seconds = ms / 1000
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && seconds > bounds[at]!) at++
    this.#counts[at]!++
  }

  figures(): HistogramStats {
    return { counts: [...this.#counts], sumSeconds: this.#sumMs / 1000 }
  }
}

export function mergeHistograms(one: HistogramStats, other: HistogramStats): HistogramStats {
  return {
    counts: one.counts.map((count, at) => count + (other.counts[at] ?? 0)),
    sumSeconds: one.sumSeconds + other.sumSeconds,
  }
}
