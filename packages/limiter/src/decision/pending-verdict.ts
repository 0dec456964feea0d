import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Answer } from '../rules/rule.ts'
import type { Decision, Outcome, Reason, Verdict } from '../verdict.ts'
import type { Receipt, Refunded } from './receipt.ts'
import type { RuleState } from './rule-state.ts'

/** Changes what a call was charged, once it has been decided. */
export interface Settler {
  /** Releases concurrency slots. */
  release(receipts: readonly Receipt[]): void
  /** Makes charges what the call has cost in the end; returns their receipts. */
  settle(receipts: readonly Receipt[], actualCost: number): readonly Receipt[]
  /** Refunds what counts only for calls that end otherwise; returns the receipts of the rest. */
  close(receipts: readonly Receipt[], outcome: Outcome): readonly Receipt[]
  /** Refunds all charges; returns the decisions as they are then. */
  refund(
    receipts: readonly Receipt[],
    options: PendingVerdictOptions,
    which: Refunded,
  ): readonly Decision[] | Promise<readonly Decision[]>
  /** The charges of a call that passed at once, read from the call again: most calls are never settled, and keep no receipts. */
  receiptsOf(options: PendingVerdictOptions): readonly Receipt[]
}

export interface PendingVerdictOptions {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly reason: Reason | undefined
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  readonly answer: Answer
  readonly holds: boolean
  /** What was charged; undefined if it can be read from the call again: 1 by each rule that it matches, at `now`. */
  readonly receipts: readonly Receipt[] | undefined
  readonly exhaustedRule: RuleState | undefined
  readonly call: Call
  readonly now: number
  /** The number of keys that had been reset by then. */
  readonly resetsBefore: number
}

const RUNNING = 0
const RELEASED = 1
const ENDED = 2
const REFUNDED = 3
const NOTHING: readonly Receipt[] = []

/** A verdict, with what is needed to wait for it, to undo it and to end it. */
export class PendingVerdict implements Verdict {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly reason: Reason | undefined
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  readonly answer: Answer
  readonly holds: boolean
  readonly #exhaustedRule: RuleState | undefined
  readonly #settler: Settler
  readonly #call: Call
  readonly #now: number
  readonly #resetsBefore: number
  #receipts: readonly Receipt[] | undefined
  #stage = RUNNING

  constructor(options: PendingVerdictOptions, settler: Settler) {
    this.allowed = options.allowed
    this.rule = options.rule
    this.reason = options.reason
    this.waitMs = options.waitMs
    this.retryAfterMs = options.retryAfterMs
    this.decisions = options.decisions
    this.answer = options.answer
    this.holds = options.allowed && options.holds
    // the options are not kept: V8 allocates nothing for an object that goes no further
    this.#exhaustedRule = options.exhaustedRule
    this.#settler = settler
    this.#call = options.call
    this.#now = options.now
    this.#resetsBefore = options.resetsBefore
    this.#receipts = options.receipts
  }

  /** Whether the call waits neither for its moment nor for a concurrency slot. */
  get isFinal(): boolean {
    return this.waitMs === 0 && this.#exhaustedRule === undefined
  }

  /** Everything the call was charged; empty unless it waits, or its end matters. */
  get receipts(): readonly Receipt[] {
    return this.#receipts ?? NOTHING
  }

  /** The rule whose concurrency is exhausted, if no other rule refuses and the rule lets calls wait for a slot. */
  get exhaustedRule(): RuleState | undefined {
    return this.#exhaustedRule
  }

  /** The same verdict after a wait of `waitMs`. */
  afterWait(receipts: readonly Receipt[], waitMs: number): PendingVerdict {
    return new PendingVerdict({ ...this.#toOptions(), receipts, waitMs }, this.#settler)
  }

  /** A refusal by one rule, whatever the other rules decide. */
  refusedBy(rule: CompiledRule, reason: Reason): PendingVerdict {
    const refused = { allowed: false, rule: rule.id, reason, answer: rule.answer, exhaustedRule: undefined }
    return new PendingVerdict({ ...this.#toOptions(), ...refused }, this.#settler)
  }

  release(): void {
    if (this.#stage >= RELEASED) return
    this.#stage = RELEASED
    if (this.holds) this.#settler.release(this.receipts)
  }

  settle(actualCost: number): void {
    if (!Number.isSafeInteger(actualCost) || actualCost < 0) {
      throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(actualCost)}`)
    }
    if (!this.allowed) return
    const receipts = this.#receipts ?? this.#settler.receiptsOf(this.#toOptions())
    this.#receipts = this.#settler.settle(receipts, actualCost)
  }

  refund(): readonly Decision[] | Promise<readonly Decision[]> {
    if (!this.allowed || this.#stage === REFUNDED) return this.decisions
    const which = this.#stage === RUNNING ? 'all' : 'passed'
    const options = this.#toOptions()
    const receipts = this.#receipts ?? this.#settler.receiptsOf(options)
    this.#stage = REFUNDED
    this.#receipts = NOTHING
    return this.#settler.refund(receipts, options, which)
  }

  end(outcome: Outcome = {}): void {
    if (this.#stage >= ENDED) return
    this.release()
    this.#stage = ENDED
    if (this.holds) this.#receipts = this.#settler.close(this.receipts, outcome)
    if (outcome.cost !== undefined) this.settle(outcome.cost)
  }

  #toOptions(): PendingVerdictOptions {
    const options = { call: this.#call, now: this.#now, resetsBefore: this.#resetsBefore, receipts: this.#receipts }
    return { ...this, ...options, exhaustedRule: this.#exhaustedRule }
  }
}
