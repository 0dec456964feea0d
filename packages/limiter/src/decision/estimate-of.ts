import type { Estimate } from '../algorithms/adaptive/estimator.ts'
import type { RuleState } from './rule-state.ts'

const MOST_KEYS = 1000

/** What a rule that finds its limit has found for a key; undefined for other rules. */
export function estimateOf({ table }: RuleState, key: string, nowUs: number): Estimate | undefined {
  const slot = table.find(key)
  return table.meters[0]?.estimate?.(table.state(slot), table.base(slot), nowUs)
}

/** The same for the key with the most calls in flight, among the first thousand. */
export function busiestEstimate(state: RuleState, nowUs: number): Estimate | undefined {
  if (state.table.meters[0]?.estimate === undefined) return undefined
  let busiest: Estimate | undefined
  let keys = 0
  for (const [key] of state.table.entries()) {
    const estimate = estimateOf(state, key, nowUs)!
    if (busiest === undefined || estimate.inFlight > busiest.inFlight) busiest = estimate
    if (++keys >= MOST_KEYS) break
  }
  return busiest
}
