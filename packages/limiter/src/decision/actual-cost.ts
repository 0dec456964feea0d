import { DianaError } from '../errors.ts'
import type { ActualCost } from '../verdict.ts'

/** Throws unless each cost is a whole number of 0 or more. */
export function assertActualCost(actual: ActualCost): void {
  const costs: unknown[] = typeof actual === 'object' && actual !== null ? Object.values(actual) : [actual]
  for (const cost of costs) assertCost(cost)
}

/** What a call has cost by one rule; undefined if that is not said. */
export function actualCostBy(rule: string, actual: ActualCost): number | undefined {
  if (typeof actual === 'number') return actual
  return Object.hasOwn(actual, rule) ? actual[rule] : undefined
}

function assertCost(cost: unknown): void {
  if (Number.isSafeInteger(cost) && (cost as number) >= 0) return
  throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
}
