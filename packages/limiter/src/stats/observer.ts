import type { Call } from '../call.ts'
import type { Verdict } from '../verdict.ts'

/** A refusal: the rule and the caller. */
export interface RefusedCaller {
  readonly rule: string
  /** The rule's dimensions. */
  readonly by: readonly string[]
  /** The caller as the rule counts it. */
  readonly key: string
}

/** Observes decisions. It is called during each call: it must be fast, and must not throw. */
export interface Observer {
  /** Is called with a call that is about to be decided and counted; it belongs to the filter, and must not be kept. */
  onCall?(call: Call, cost: number): void
  onRefusal?(refusal: RefusedCaller): void
  /** Is called with the time of a decision; reported for one call in 128. */
  onTimed?(seconds: number, store: 'memory' | 'redis'): void
  /** Is called with the verdict on a call, once it has waited for as long as it had to; the call must not be kept. */
  onVerdict?(verdict: Verdict, call: Call): void
}
