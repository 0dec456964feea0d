/** Upper bounds of durations in seconds, as OpenTelemetry recommends them for HTTP. */
export const durationBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** How many durations fell below each bound, and their sum, as plain values. */
export interface HistogramStats {
  /** One count per bound, not cumulative, and one for all that are longer. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Counts durations. */
export class Histogram {
  readonly #counts: number[] = Array(durationBounds.length + 1).fill(0)
  #sumMs = 0

  add(ms: number): void {
    this.#sumMs += ms
    const seconds = ms / 1000
    let at = 0
    while (at < durationBounds.length && seconds > durationBounds[at]!) at++
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
