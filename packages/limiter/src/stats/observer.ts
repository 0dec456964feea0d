import type { Call } from '../call.ts'
import type { Verdict } from '../verdict.ts'

/** A refusal, by which rule and of whom. */
export interface RefusedCaller {
  readonly rule: string
  /** The rule's dimensions. */
  readonly by: readonly string[]
  /** The caller as the rule counts it. */
  readonly key: string
}

/** Looks on while calls are judged. It is called on the way of each call: it must be quick, and must not throw. */
export interface Observer {
  /** A call is about to be judged and counted; it is the filter's own, and must not be kept. */
  onCall?(call: Call, cost: number): void
  onRefusal?(refusal: RefusedCaller): void
  /** How long a decision took; told of one call in 32. */
  onTimed?(seconds: number, store: 'memory' | 'redis'): void
  /** What became of a call, once it has waited for as long as it had to. */
  onVerdict?(verdict: Verdict): void
}
