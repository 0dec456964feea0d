import { latencyBoundsMs } from '../../services/address-state.ts'

/** Quantiles of latencies; null is longer than the last bound. */
export interface Quantiles {
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

/**
 * Returns the quantiles of latencies that were counted by bounds: each is the upper bound of the bucket that it lies in, so that
 * the true value is no longer than this, and longer than the bound before. Undefined if nothing was counted.
 */
export function quantilesOf(counts: readonly number[]): Quantiles | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  return {
    p50Ms: quantileMs(counts, Math.ceil(total * 0.5)),
    p95Ms: quantileMs(counts, Math.ceil(total * 0.95)),
    p99Ms: quantileMs(counts, Math.ceil(total * 0.99)),
  }
}

function quantileMs(counts: readonly number[], rank: number): number | null {
  let below = 0
  for (const [at, bound] of latencyBoundsMs.entries()) {
    below += counts[at] ?? 0
    if (below >= rank) return bound
  }
  return null
}
