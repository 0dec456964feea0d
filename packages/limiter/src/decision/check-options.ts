import type { Call } from '../call.ts'
import { valueNow } from '../common/sync-function.ts'
import type { NamedRules } from './pending-verdict.ts'

/** How one call is judged. */
export interface CheckOptions extends NamedRules {
  /** 1 unless said; 0 only looks. A function that throws, or gives what is no cost, stands for 1. */
  readonly cost?: number | ((call: Call) => number) | undefined
  /** Ends a wait. */
  readonly signal?: AbortSignal | undefined
  /** Ids of rules to judge it by besides those that match it; one that is not there, or off, judges nothing. */
  readonly rule?: string | readonly string[] | undefined
  /** With `rule`: judged by these alone. */
  readonly only?: boolean | undefined
}

export function costOf(call: Call, options: Pick<CheckOptions, 'cost'> | undefined): number {
  const told = options?.cost ?? 1
  return typeof told === 'function' ? costBy(told, call) : told
}

/** What an application's function says of a call; what it makes of a hostile one must not let it pass for nothing. */
function costBy(tell: (call: Call) => number, call: Call): number {
  try {
    const cost = valueNow(tell(call), 'cost')
    return cost !== undefined && Number.isSafeInteger(cost) && cost >= 0 ? cost : 1
  } catch {
    return 1
  }
}
