import type { Estimate } from '../algorithms/adaptive/estimator.ts'
import type { OverloadStatus } from '../overload/overload-guard.ts'

export type { Estimate } from '../algorithms/adaptive/estimator.ts'

/**
 * Merges what several processes have found of one service: each sees its part of the calls, so limits, calls and answers are added
 * up; times are averages by the answers per second.
 */
export function mergeEstimates(all: readonly Estimate[]): Estimate | undefined {
  if (all.length === 0) return undefined
  const perSecond = sum(all, one => one.perSecond)
  const average = (read: (one: Estimate) => number): number =>
    perSecond === 0 ? 0 : sum(all, one => read(one) * one.perSecond) / perSecond
  return {
    limit: sum(all, one => one.limit),
    inFlight: sum(all, one => one.inFlight),
    perSecond,
    baseMs: average(one => one.baseMs),
    latencyMs: average(one => one.latencyMs),
    limiting: all.some(one => one.limiting),
  }
}

/** Merges the loads of several processes: the load of the busiest, the average share, and all calls that were shed. */
export function mergeOverloads(all: readonly OverloadStatus[]): OverloadStatus | undefined {
  if (all.length === 0) return undefined
  const shed = new Map<string, number>()
  for (const [level, calls] of all.flatMap(one => Object.entries(one.shed))) {
    shed.set(level, calls + (shed.get(level) ?? 0))
  }
  return {
    delayMs: Math.max(...all.map(one => one.delayMs)),
    utilization: Math.max(...all.map(one => one.utilization)),
    waitMs: Math.max(...all.map(one => one.waitMs)),
    share: sum(all, one => one.share) / all.length,
    shed: Object.fromEntries(shed),
  }
}

function sum<One>(all: readonly One[], read: (one: One) => number): number {
  return all.reduce((total, one) => total + read(one), 0)
}
