import type { Answer } from './rules/rule.ts'

/** What one limit says of a call. Durations are Infinity where no moment can be named. */
export interface Decision {
  readonly rule: string
  readonly limit: number
  /** 0 for a limit on calls under way. */
  readonly periodMs: number
  readonly allowed: boolean
  /** A shadow limit reports what it would have refused, and refuses nothing. */
  readonly shadow: boolean
  readonly remaining: number
  readonly resetAfterMs: number
  readonly retryAfterMs: number
}

/** Why a call was refused: over a limit, no room left to wait, or waited as long as it may. */
export type Reason = 'limit' | 'queue-full' | 'timeout'

/** The answer to a call, by all its rules at once. */
export interface Verdict {
  readonly allowed: boolean
  /** The rule that refused: of several, the one that takes longest to let the call pass. */
  readonly rule?: string | undefined
  readonly reason?: Reason | undefined
  /** How long the call was held back. */
  readonly waitMs: number
  /** When the same call would pass, if nothing else came; 0 when it was allowed. */
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  /** What a refused caller is told, and in which headers. */
  readonly answer: Answer
  /** Whether the call holds something while it runs, such as a place of a concurrency rule. */
  readonly holds: boolean
  /** Gives back what the call holds while it runs; call it when the call has ended, however it ended. */
  release(): void
}
