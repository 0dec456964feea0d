import type { Verdict } from '../verdict.ts'
import type { Filter } from './filter.ts'

/** What a filter decided on a request, as later filters and the application ask for it. */
export interface PastRun {
  readonly filter: Filter<never, never>
  readonly verdict: Verdict | undefined
  /** The ids of the rules that have charged the request at this filter. */
  readonly charged: readonly string[]
}

/** The last verdict on a request that earlier filters have decided. */
export function lastVerdict(past: readonly PastRun[]): Verdict | undefined {
  return past.findLast(run => run.verdict !== undefined)?.verdict
}

/** The rules by which filters of the same limiter have charged the request; undefined if no such filter has seen it. */
export function chargedBy({ limiter }: Filter<never, never>, past: readonly PastRun[]): string[] | undefined {
  const same = past.filter(run => run.filter.limiter === limiter)
  return same.length === 0 ? undefined : same.flatMap(run => run.charged)
}

/** Whether a filter of the same limiter has decided the request by the rules that match it. */
export function areMatchingDecided({ limiter }: Filter<never, never>, past: readonly PastRun[]): boolean {
  return past.some(({ filter }) => filter.limiter === limiter && !filter.only)
}

/** The earlier filter that leaves nothing to decide for this one. */
export function coveringFilter(
  filter: Filter<never, never>,
  past: readonly PastRun[],
): Filter<never, never> | undefined {
  return past.find(run => coversAll(run.filter, filter))?.filter
}

function coversAll(past: Filter<never, never>, filter: Filter<never, never>): boolean {
  if (past.limiter !== filter.limiter || (past.only && !filter.only)) return false
  return filter.rules.every(rule => past.rules.includes(rule))
}
