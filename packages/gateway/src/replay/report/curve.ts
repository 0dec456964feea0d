import type { Callers } from './callers.ts'

const STEPS = 24

/**
 * For limits from a tenth of the present one to ten times, the share of calls and of callers that would have been refused: of calls in
 * windows of the clock, and of callers those whose peak is higher.
 */
export function refusalCurve(callers: Callers, limit: number): [limit: number, calls: number, callers: number][] {
  const windows = callers.windows.sorted()
  const peaks = callers.peaks.sorted()
  const all = windows.reduce((sum, [calls, times]) => sum + calls * times, 0)
  const people = peaks.reduce((sum, [, times]) => sum + times, 0)
  if (all === 0) return []
  return limitsAround(Math.max(1, limit)).map(one => {
    const refused = windows.reduce((sum, [calls, times]) => sum + Math.max(0, calls - one) * times, 0)
    const hit = peaks.reduce((sum, [peak, times]) => sum + (peak > one ? times : 0), 0)
    return [one, refused / all, people === 0 ? 0 : hit / people]
  })
}

/** Whole numbers, each once, the present limit among them. */
function limitsAround(limit: number): number[] {
  const limits = new Set([limit])
  for (let step = 0; step <= STEPS; step++) limits.add(Math.max(1, Math.round(limit * 10 ** ((2 * step) / STEPS - 1))))
  return [...limits].sort((a, b) => a - b)
}
