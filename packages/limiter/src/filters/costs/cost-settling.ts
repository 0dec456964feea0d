import type { Call } from '../../call.ts'
import type { AnswerHeaders, AnswerReader, ReportedCost } from '../../costs/read-answer.ts'
import type { SettledBy } from '../../costs/settled-counts.ts'
import type { RuleState } from '../../decision/rule-state.ts'
import type { Verdict } from '../../verdict.ts'

/** Sees an answer on its way to the caller. */
export interface AnswerObserver {
  begin(status: number, headers: AnswerHeaders): void
  add(chunk: Uint8Array): void
  /** Notes that no service has worked on the call, or that it broke off its answer. */
  unserved(): void
  /**
   * Ends the answer; `status` is undefined if the caller left before all of it was sent. Again, it does nothing. Returns a promise
   * if the answer has to be decoded before its cost is known.
   */
  end(status: number | undefined): Promise<void> | undefined
}

/** The cost of a call by one rule. */
export interface SettledCost {
  readonly rule: string
  readonly reserved: number
  readonly settled: number
  readonly by: SettledBy
}

export interface CostSettlingOptions {
  readonly call: Call
  readonly verdict: Verdict
  /** The rules of the call whose costs are measured. */
  readonly states: readonly RuleState[]
  /** The cost that the application gives the call. */
  readonly cost: number
  readonly onSettled?: ((costs: readonly SettledCost[]) => void) | undefined
}

const FIRST_ERROR = 400

/**
 * Settles the costs of a call once its answer is over, by every rule that measures it:
 * - the answer reports what was used: that;
 * - it is an error, or broken off by the service, and reports nothing: nothing was used;
 * - it reports nothing, cannot be read, or the caller left before it did: the estimate stays.
 */
export class CostSettling implements AnswerObserver {
  readonly #options: CostSettlingOptions
  readonly #reserved: readonly number[]
  #reader: AnswerReader | undefined
  #status: number | undefined
  #isUnserved = false
  #isOver = false
  #settled: Promise<void> | undefined

  constructor(options: CostSettlingOptions) {
    this.#options = options
    const { states, call, cost } = options
    this.#reserved = states.map(({ rule }) => reservedBy(rule, call, cost))
  }

  begin(status: number, headers: AnswerHeaders): void {
    this.#status = status
    const costs = this.#options.states.map(({ rule }) => rule.measured)
    const readAnswer = costs.find(cost => cost?.settle !== undefined)?.readAnswer
    this.#reader = readAnswer?.(
      costs.map(cost => cost?.settle),
      headers,
    )
  }

  add(chunk: Uint8Array): void {
    this.#reader?.add(chunk)
  }

  unserved(): void {
    this.#isUnserved = true
  }

  end(status: number | undefined): Promise<void> | undefined {
    if (this.#isOver) return this.#settled
    this.#isOver = true
    this.#status ??= status
    const reported = this.#reader?.read() ?? []
    this.#reader = undefined
    if (reported instanceof Promise) this.#settled = reported.then(costs => this.#settle(costs))
    else this.#settle(reported)
    return this.#settled
  }

  #settle(reported: readonly (ReportedCost | undefined)[]): void {
    const { states, verdict, onSettled } = this.#options
    const costs = states.map(({ rule, tally }, index) => {
      const cost = this.#costOf(reported[index], this.#reserved[index]!)
      tally.countSettled(cost.by, reported[index]?.isBounded ?? false)
      return { rule: rule.id, reserved: this.#reserved[index]!, ...cost }
    })
    // a rule whose cost is not said keeps what it has reserved
    const known = costs.filter(({ by }) => by !== 'estimate')
    verdict.settle(Object.fromEntries(known.map(({ rule, settled }) => [rule, settled])))
    onSettled?.(costs)
  }

  #costOf(reported: ReportedCost | undefined, reserved: number): { settled: number; by: SettledBy } {
    if (reported !== undefined) return { settled: reported.amount, by: reported.by }
    const isFailure = this.#status !== undefined && this.#status >= FIRST_ERROR
    if (isFailure || this.#isUnserved) return { settled: 0, by: 'none' }
    return { settled: reserved, by: 'estimate' }
  }
}

/** Returns what a rule charges a call when it comes. */
function reservedBy({ cost, estimates, mostAtOnce }: RuleState['rule'], call: Call, given: number): number {
  const amount = cost === undefined ? given : cost(call)
  return estimates ? Math.min(amount, mostAtOnce) : amount
}
