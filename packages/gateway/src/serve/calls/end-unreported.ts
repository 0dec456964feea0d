import type { Verdict } from 'diana-limiter'
import { isReserved } from 'diana-limiter/gateway'

/**
 * Ends a call whose end is not reported, as soon as it is decided: the places that it holds are free, and what was reserved for it
 * is what it has cost.
 */
export function endUnreported(verdict: Verdict): void {
  if (verdict.holds) verdict.release()
  if (isReserved(verdict)) verdict.settle({})
}
