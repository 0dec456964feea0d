import type { Call } from '../call.ts'
import { valueNow } from '../common/sync-function.ts'

/** Rules that decide a call because it names them, besides those that match it, or alone. */
export interface NamedRules {
  /**
   * Ids of rules that have charged the same request already, at another filter: they are left out, and the request is not
   * counted as another call.
   */
  readonly after?: readonly string[] | undefined
  readonly rule?: string | readonly string[] | undefined
  readonly only?: boolean | undefined
}

/** How one call is decided. */
export interface CheckOptions extends NamedRules {
  /** 1 by default; 0 counts nothing. A function that throws, or returns something that is not a cost, stands for 1. */
  readonly cost?: number | ((call: Call) => number) | undefined
  /** Ends a wait. A function is called only if the call waits. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Ids of rules that decide the call besides those that match it; a rule that does not exist, or is off, is left out. */
  readonly rule?: string | readonly string[] | undefined
  /** With `rule`: only these rules decide the call. */
  readonly only?: boolean | undefined
}

/** The cost that an application's function gives a call; 1 if it throws or gives no cost, so that no call passes for nothing. */
export function costBy(read: (call: Call) => number, call: Call): number {
  try {
    const cost = valueNow(read(call), 'cost')
    return cost !== undefined && Number.isSafeInteger(cost) && cost >= 0 ? cost : 1
  } catch {
    return 1
  }
}

/** The signal that ends a wait. A call that waits asks for it once. */
export function signalOf(options: CheckOptions | undefined): AbortSignal | undefined {
  return typeof options?.signal === 'function' ? options.signal() : options?.signal
}
