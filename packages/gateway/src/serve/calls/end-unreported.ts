import type { Verdict } from 'diana-limiter'
import { isReserved } from 'diana-limiter/gateway'

/** Ends a call whose end is not reported, as soon as it is decided: its slots are free, and the reserved amount is its cost. */
export function endUnreported(verdict: Verdict): void {
  if (verdict.holds) verdict.release()
  if (isReserved(verdict)) verdict.settle({})
}
