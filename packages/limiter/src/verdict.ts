import type { CalendarUnit } from './common/calendar-unit.ts'
import type { Answer } from './rules/rule.ts'

/** The decision of one limit about a call. Durations are Infinity if no moment is known. */
export interface Decision {
  readonly rule: string
  /** The number of calls of cost 1 that may pass in the period; for a bucket with a larger burst, its size. */
  readonly limit: number
  /** The time in which `limit` calls pass, or in which a bucket of this size fills; 0 for a limit on calls under way. */
  readonly periodMs: number
  /** The unit that it counts, if not calls: `tokens`. */
  readonly unit?: string | undefined
  /** Set if the period is one of the calendar, which may be shorter than `periodMs`, and in which clocks may change. */
  readonly calendar?: CalendarUnit | undefined
  readonly allowed: boolean
  /** True if it is a shadow limit, which reports what it would have refused, and refuses nothing. */
  readonly shadow: boolean
  /** True if the answer of its rule has `headers: none`: headers do not name it, beside those of other rules. */
  readonly hidden?: boolean | undefined
  readonly remaining: number
  readonly resetAfterMs: number
  readonly retryAfterMs: number
}

/**
 * The reason why a call was refused: over a limit, no room left to wait, waited as long as it may, on a list of callers to deny,
 * blocked for a time, with several values to count by, of which services could read either, or too much for the service or for this
 * process at the moment.
 */
export type Reason = 'overload' | 'limit' | 'queue-full' | 'timeout' | 'denied' | 'blocked' | 'ambiguous'

/**
 * The final cost of a call: by all its rules whose costs can be settled, or by rules of their own units, by their ids. Rules that
 * are not named keep what was charged.
 */
export type ActualCost = number | Readonly<Record<string, number>>

/** The end of a call; without a status, or if it was aborted, it failed. */
export interface Outcome {
  /** The status of the response; undefined if the caller disconnected before it was complete. */
  readonly status?: number | undefined
  /** True if what is no HTTP has failed; wins over the status. */
  readonly failed?: boolean | undefined
  /**
   * The side that answered; default: the service. What something in front of it answers in its place is no success, and clears no
   * count.
   */
  readonly by?: 'service' | 'gateway' | undefined
  /** The final cost of the call, as `settle` takes it. */
  readonly cost?: ActualCost | undefined
}

/** The answer to a call, by all its rules at once. */
export interface Verdict {
  readonly allowed: boolean
  /** The rule that refused: of several, the one that takes longest to let the call pass. */
  readonly rule?: string | undefined
  readonly reason?: Reason | undefined
  /** The time for which the call was held back. */
  readonly waitMs: number
  /** The time after which the same call would pass, if nothing else came; 0 when it was allowed. */
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  /** The answer to a refused caller, and the style of its headers. */
  readonly answer: Answer
  /** True if its end matters: it holds a slot of a concurrency rule, or a rule counts by how calls end. */
  readonly holds: boolean
  /** Releases the concurrency slots of the call; to be called when the call has ended, however it ended. */
  release(): void
  /**
   * Makes the call count as `actual`: what it was charged beyond that is refunded, and what is missing is charged: as far as the
   * limit still has room, or with `overrun: debt` beyond it. Again, it goes from what was settled last; a reservation, of a rule with
   * `hold`, is settled once.
   */
  settle(actual: ActualCost): void
  /**
   * Takes back everything that the call was charged, as if it had never come: something else has refused it. Gives the
   * decisions after that; a promise if they must be read from a store.
   */
  refund(): readonly Decision[] | Promise<readonly Decision[]>
  /** Ends the call: settles its cost if one is given, releases its slots, and refunds it for rules that do not count its outcome. */
  end(outcome?: Outcome): void
}
