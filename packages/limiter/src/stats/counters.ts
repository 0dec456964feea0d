import type { CallPlan } from '../decision/call-plan.ts'
import type { RuleState } from '../decision/pending-verdict.ts'
import type { Observer } from './observer.ts'
import { Tally } from './tally.ts'

/** What is counted over all rules, and who looks on; it lives on when the rules change. */
export interface Counters {
  readonly total: Tally
  observers: readonly Observer[]
  /** Whether somebody asks how full the keys of rules are. */
  tracksLoads: boolean
}

export function createWatch(): Counters {
  return { total: new Tally(), observers: [], tracksLoads: false }
}

/** Counts a call that passed, once over all rules. */
export function tallyPass(total: Tally, waited: boolean, isShadowed: boolean, degraded: boolean): void {
  total.allowed++
  if (waited) total.waited++
  if (isShadowed) total.shadowRefused++
  if (degraded) total.degradedAllowed++
}

/** Counts a call that was refused: for the rule that takes longest to let it pass. */
export function tallyRefusal({ found, charges }: CallPlan, binding: RuleState | undefined, watch: Counters): void {
  const charge = binding && charges[found.indexOf(binding)]
  tallyRefusalBy(binding, charge?.key ?? '', watch, charge !== undefined && isDegraded(charge))
}

/** The same, where the rule is known; no rule has refused whom the whole document denies. */
export function tallyRefusalBy(counted: RuleState | undefined, key: string, watch: Counters, degraded = false): void {
  const { total, observers } = watch
  total.refused++
  if (degraded) total.degradedRefused++
  if (!counted) return
  const { rule, tally } = counted
  tally.refused++
  if (degraded) tally.degradedRefused++
  // an iterator over nobody would cost as much as the counting
  if (observers.length === 0) return
  const refusal = { rule: rule.id, by: rule.by, key }
  for (const observer of observers) observer.onRefusal?.(refusal)
}

/** Whether a charge to the fleet's counts was decided without them. */
export function isDegraded(charge: CallPlan['charges'][number]): boolean {
  if (!('countedBy' in charge)) return false
  const { countedBy, fits, delays } = charge
  // nobody counts what passes or is refused by word; what is only known to be full names the moment when it is not
  return countedBy === 'memory' || (countedBy === 'nobody' && (fits || delays[0] === Number.POSITIVE_INFINITY))
}
