import type { Observer } from './observer.ts'
import { Tally } from './tally.ts'

/** The counts over all rules, and the observers; they are kept when the rules change. */
export interface Counters {
  readonly total: Tally
  /** Calls that could not be judged, by what became of them. */
  readonly unjudged: { passed: number; refused: number }
  observers: readonly Observer[]
  /** True if it is recorded how full the keys of rules are. */
  tracksLoads: boolean
}

export function createCounters(): Counters {
  return { total: new Tally(), unjudged: { passed: 0, refused: 0 }, observers: [], tracksLoads: false }
}

/** A rule that has refused a call. */
interface RefusingRule {
  readonly rule: { readonly id: string; readonly by: readonly string[] }
  readonly tally: Tally
}

/** Counts a call that a rule has refused; the rule is undefined if the document denies the caller. */
export function tallyRefusalBy(
  state: RefusingRule | undefined,
  key: string,
  counters: Counters,
  degraded = false,
): void {
  const { total, observers } = counters
  total.refused++
  if (degraded) total.degradedRefused++
  if (!state) return
  const { rule, tally } = state
  tally.refused++
  if (degraded) tally.degradedRefused++
  // an iterator over an empty list would cost as much as the counting
  if (observers.length === 0) return
  const refusal = { rule: rule.id, by: rule.by, key }
  for (const observer of observers) observer.onRefusal?.(refusal)
}
