import type { Limit } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'

/** The limit that one call has, with options of the rule's algorithm such as its burst. */
export interface LimitOfCall {
  readonly limit: Limit
  readonly options: Readonly<Record<string, unknown>>
  /** Equal for limits that count alike. */
  readonly text: string
}

/** A call with the limit that a function of the application has found for it. */
export interface LimitedCall extends Call {
  readonly ownLimit?: LimitOfCall | undefined
}

/** Stands for `from` in the limit of a rule whose calls bring their limits along: nothing is asked for in the background. */
export function limitOfCall(): undefined {
  return undefined
}
