import type { Answer } from '../rules/rule.ts'
import type { Decision, Outcome, Reason, Verdict } from '../verdict.ts'

/**
 * The verdict of a filter together with those of the filters that the same request passed before: its decisions are
 * theirs too, its own first. `settle`, `release` and `end` affect the filter's own verdict only; each filter calls them.
 */
class JoinedVerdict implements Verdict {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly reason: Reason | undefined
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  readonly answer: Answer
  readonly holds: boolean
  readonly #own: Verdict
  readonly #earlier: Verdict

  constructor(own: Verdict, earlier: Verdict, earlierDecisions: readonly Decision[]) {
    this.allowed = own.allowed
    this.rule = own.rule
    this.reason = own.reason
    this.waitMs = own.waitMs + earlier.waitMs
    this.retryAfterMs = own.retryAfterMs
    this.decisions = [...own.decisions, ...earlierDecisions]
    this.answer = own.answer
    this.holds = own.holds
    this.#own = own
    this.#earlier = earlier
  }

  release(): void {
    this.#own.release()
  }

  settle(actualCost: number): void {
    this.#own.settle(actualCost)
  }

  refund(): readonly Decision[] | Promise<readonly Decision[]> {
    return both(this.#own.refund(), this.#earlier.refund())
  }

  end(outcome?: Outcome): void {
    this.#own.end(outcome)
  }
}

/**
 * Joins the verdicts of several filters on a request: if the last one refuses it, the earlier ones are refunded. A promise
 * only if a store must be asked what is left then.
 */
export function joinVerdicts(earlier: Verdict | undefined, own: Verdict): Verdict | Promise<Verdict> {
  if (earlier === undefined) return own
  if (own.allowed) return new JoinedVerdict(own, earlier, earlier.decisions)
  const refunded = earlier.refund()
  if (!(refunded instanceof Promise)) return new JoinedVerdict(own, earlier, refunded)
  return refunded.then(
    decisions => new JoinedVerdict(own, earlier, decisions),
    () => new JoinedVerdict(own, earlier, earlier.decisions),
  )
}

type Decisions = readonly Decision[] | Promise<readonly Decision[]>

function both(one: Decisions, other: Decisions): Decisions {
  if (!(one instanceof Promise || other instanceof Promise)) return [...one, ...other]
  return Promise.all([one, other]).then(lists => lists.flat())
}
