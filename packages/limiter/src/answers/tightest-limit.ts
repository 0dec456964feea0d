import type { Decision } from '../verdict.ts'
import { isUnnamed, type Limits, resetMs } from './draft-11.ts'

/** Of the limits that refuse, or else of all, the one with least left; of equals, the one that takes longest. */
export function tightestLimit({ decisions }: Limits): Decision | undefined {
  let tightest: Decision | undefined
  for (const decision of decisions) {
    if (!isUnnamed(decision) && (tightest === undefined || isTighter(decision, tightest))) tightest = decision
  }
  return tightest
}

function isTighter(one: Decision, other: Decision): boolean {
  if (one.allowed !== other.allowed) return other.allowed
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return resetMs(one) > resetMs(other)
}
