import type { CallPlan } from '../decision/call-plan.ts'
import type { RuleState } from '../decision/rule-state.ts'
import type { Observer } from './observer.ts'
import { Tally } from './tally.ts'

/** What is counted over all rules, and the observers; it is kept when the rules change. */
export interface Counters {
  readonly total: Tally
  /** Calls that could not be judged, by what became of them. */
  readonly unjudged: { passed: number; refused: number }
  observers: readonly Observer[]
  /** Whether it is recorded how full the keys of rules are. */
  tracksLoads: boolean
}

export function createCounters(): Counters {
  return { total: new Tally(), unjudged: { passed: 0, refused: 0 }, observers: [], tracksLoads: false }
}

/** Counts a call that was refused: for the rule that takes longest to let it pass. */
export function tallyRefusal({ found, charges }: CallPlan, binding: RuleState | undefined, counters: Counters): void {
  const charge = binding && charges[found.indexOf(binding)]
  tallyRefusalBy(binding, charge?.key ?? '', counters, charge !== undefined && isDegraded(charge))
}

/** The same for a known rule; undefined if the document denies the caller. */
export function tallyRefusalBy(state: RuleState | undefined, key: string, counters: Counters, degraded = false): void {
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

/** Whether a charge to shared counts was decided without asking them. */
export function isDegraded(charge: CallPlan['charges'][number]): boolean {
  if (charge.kind === 'local') return false
  const { countedBy, fits, delays } = charge
  // no store counts what `whenStoreDown: allow` or `refuse` decides; the deny cache names the moment at which a key has room
  return countedBy === 'memory' || (countedBy === 'none' && (fits || delays[0] === Number.POSITIVE_INFINITY))
}
