import type { Verdict } from '../verdict.ts'
import type { Filter } from './filter.ts'
import { pathBelow } from './frameworks/spelled-path.ts'

/** The parts of a request when a filter decided it: a middleware may change that before the next filter. */
export interface Asked {
  readonly method: string
  readonly base: string
  readonly target: string
}

/** The decision of a filter on a request, as later filters and the application ask for it. */
export interface PastRun {
  readonly filter: Filter<never, never>
  readonly asked: Asked
  readonly verdict: Verdict | undefined
  /** The ids of the rules that have charged the request at this filter. */
  readonly charged: readonly string[]
}

/** Returns the last verdict on a request that earlier filters have decided. */
export function lastVerdict(past: readonly PastRun[]): Verdict | undefined {
  return past.findLast(run => run.verdict !== undefined)?.verdict
}

/** Returns the rules by which filters of the same limiter have charged the request; undefined if no such filter has seen it. */
export function chargedBy({ limiter }: Filter<never, never>, past: readonly PastRun[]): string[] | undefined {
  const same = past.filter(run => run.filter.limiter === limiter)
  return same.length === 0 ? undefined : same.flatMap(run => run.charged)
}

/** True if a filter of the same limiter has decided the request, as it is now, by the rules that match it. */
export function areMatchingDecided({ limiter }: Filter<never, never>, past: readonly PastRun[], asked: Asked): boolean {
  return past.some(run => {
    const { only, except } = run.filter
    return run.filter.limiter === limiter && !only && except === undefined && isSame(run.asked, asked)
  })
}

/** Returns the earlier filter that leaves nothing to decide for this one. */
export function coveringFilter(
  filter: Filter<never, never>,
  past: readonly PastRun[],
  asked: Asked,
): Filter<never, never> | undefined {
  // rules that a route names do not depend on what the request asks for
  return past.find(run => coversAll(run.filter, filter) && (filter.only || isSame(run.asked, asked)))?.filter
}

function isSame(one: Asked, other: Asked): boolean {
  if (one.method !== other.method) return false
  return one.target === other.target && one.base === other.base
    ? true
    : pathBelow(one.base, one.target) === pathBelow(other.base, other.target)
}

function coversAll(past: Filter<never, never>, filter: Filter<never, never>): boolean {
  if (past.limiter !== filter.limiter || (past.only && !filter.only)) return false
  // a rule that the earlier filter has left out is not decided yet
  if (past.except?.some(rule => !filter.except?.includes(rule)) === true) return false
  return filter.rules.every(rule => past.rules.includes(rule))
}
