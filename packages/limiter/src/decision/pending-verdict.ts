import { inspect } from 'node:util'
import type { Meter } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Answer } from '../rules/rule.ts'
import type { Refunded } from '../stores/memory/refund-local.ts'
import type { ActualCost, Decision, Outcome, Reason, Verdict } from '../verdict.ts'
import type { Receipt } from './receipt.ts'
import type { RuleState } from './rule-state.ts'

/** A call that was decided, with what is needed to find its charges again. */
export interface DecidedCall {
  readonly call: Call
  readonly now: number
  /** The number of keys that had been reset by then. */
  readonly resetsBefore: number
  readonly decisions: readonly Decision[]
}

/** Changes what a call was charged, once it has been decided. */
export interface Settler {
  /** Releases concurrency slots of a call that has ended; without an outcome, it was answered. */
  release(receipts: readonly Receipt[], outcome?: Outcome): void
  /** Makes charges what the call has cost in the end; returns their receipts. */
  settle(receipts: readonly Receipt[], actual: ActualCost): readonly Receipt[]
  /** Resolves when stores know of all that was settled so far. */
  arrival(): Promise<void>
  /** Refunds what counts only for calls that end otherwise; returns the receipts of the rest. */
  close(receipts: readonly Receipt[], outcome: Outcome, call: Call): readonly Receipt[]
  /** Refunds all charges; returns the decisions as they are then. */
  refund(
    receipts: readonly Receipt[],
    decided: DecidedCall,
    which: Refunded,
  ): readonly Decision[] | Promise<readonly Decision[]>
  /** Returns the charges of a call that passed at once, read from the call again: most calls are never settled, and keep no receipts. */
  receiptsOf(decided: DecidedCall): readonly Receipt[]
}

/** The answer of one level of a rule to a call, and that of the next one. */
export interface LevelAnswer {
  readonly rule: CompiledRule
  readonly meter: Meter
  readonly remaining: number
  /** Until all of the limit is left. */
  readonly resetUs: number
  /** By how much the call came too early; undefined if it may pass. */
  readonly lateUs: number | undefined
  readonly next: LevelAnswer | undefined
}

/** The verdict on the call as a whole. */
export interface VerdictOutcome {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly reason: Reason | undefined
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly answer: Answer
  readonly holds: boolean
  readonly exhaustedRule: RuleState | undefined
  /** Changes later what the call was charged. */
  readonly settler: Settler
}

/** Returns the outcome of a call for which every rule has room at once. */
export function passedBy(answer: Answer, settler: Settler): VerdictOutcome {
  return {
    allowed: true,
    rule: undefined,
    reason: undefined,
    waitMs: 0,
    retryAfterMs: 0,
    answer,
    holds: false,
    exhaustedRule: undefined,
    settler,
  }
}

const RUNNING = 0
const RELEASED = 1
const ENDED = 2
const REFUNDED = 3
const NOTHING: readonly Receipt[] = []
/** The actual cost of a call whose reserved amount is kept. */
const NO_COSTS: ActualCost = {}

/**
 * A verdict, with what is needed to wait for it, to undo it and to end it. One is made for every call: its fields are few, and
 * declared only, since V8 would write each of them twice otherwise.
 */
export class PendingVerdict implements Verdict {
  /** Calls that pass at once share one. */
  declare private readonly outcome: VerdictOutcome
  declare private readonly call: Call
  declare private readonly now: number
  declare private readonly resetsBefore: number
  declare private readonly levels: LevelAnswer | undefined
  declare private charged: readonly Receipt[] | undefined
  declare private made: readonly Decision[] | undefined
  declare private stage: number

  /**
   * `levels` is what the first level of the first rule said. `receipts` is what was charged; undefined if it can be read from the
   * call again: 1 by each rule that it matches, at `now`. An object of these would be allocated for every call.
   */
  constructor(
    outcome: VerdictOutcome,
    call: Call,
    now: number,
    resetsBefore: number,
    levels: LevelAnswer | undefined,
    receipts: readonly Receipt[] | undefined,
  ) {
    this.outcome = outcome
    this.call = call
    this.now = now
    this.resetsBefore = resetsBefore
    this.levels = levels
    this.charged = receipts
    this.made = undefined
    this.stage = RUNNING
  }

  get allowed(): boolean {
    return this.outcome.allowed
  }

  get rule(): string | undefined {
    return this.outcome.rule
  }

  get reason(): Reason | undefined {
    return this.outcome.reason
  }

  get waitMs(): number {
    return this.outcome.waitMs
  }

  get retryAfterMs(): number {
    return this.outcome.retryAfterMs
  }

  get answer(): Answer {
    return this.outcome.answer
  }

  get holds(): boolean {
    return this.outcome.holds
  }

  /** Made when they are first read: most callers of `decide` ask only whether a call may pass. */
  get decisions(): readonly Decision[] {
    this.made ??= decisionsOf(this.levels)
    return this.made
  }

  /** True if the call waits neither for its moment nor for a concurrency slot. */
  get isFinal(): boolean {
    return this.waitMs === 0 && this.exhaustedRule === undefined
  }

  /** Returns when the call was decided, in microseconds since 1970. */
  get decidedAt(): number {
    return this.now
  }

  /** Everything the call was charged; empty unless it waits, or its end matters. */
  get receipts(): readonly Receipt[] {
    return this.charged ?? NOTHING
  }

  /** The rule whose concurrency is exhausted, if no other rule refuses and the rule lets calls wait for a slot. */
  get exhaustedRule(): RuleState | undefined {
    return this.outcome.exhaustedRule
  }

  /** Returns the verdict after a wait of `waitMs`. */
  afterWait(receipts: readonly Receipt[], waitMs: number): PendingVerdict {
    return this.#with({ ...this.outcome, waitMs }, receipts)
  }

  /** Returns the verdict with further receipts. */
  withReceipts(receipts: readonly Receipt[]): PendingVerdict {
    return this.#with(this.outcome, [...this.receipts, ...receipts])
  }

  /** Returns a refusal by one rule, whatever the other rules decide. */
  refusedBy(rule: CompiledRule, reason: Reason): PendingVerdict {
    const retryAfterMs = Math.max(this.outcome.retryAfterMs, this.outcome.waitMs)
    const refused = {
      allowed: false,
      rule: rule.id,
      reason,
      answer: rule.answer,
      holds: false,
      waitMs: 0,
      retryAfterMs,
    }
    return this.#with({ ...this.outcome, ...refused, exhaustedRule: undefined }, this.charged)
  }

  release(): void {
    this.#release()
  }

  settle(actual: ActualCost): void {
    assertActualCost(actual)
    if (!this.allowed) return
    const receipts = this.charged ?? this.outcome.settler.receiptsOf(this.#decided())
    this.charged = this.outcome.settler.settle(receipts, actual)
  }

  refund(): readonly Decision[] | Promise<readonly Decision[]> {
    if (!this.allowed || this.stage === REFUNDED) return this.decisions
    const which = this.stage === RUNNING ? 'all' : 'passed'
    const decided = this.#decided()
    const receipts = this.charged ?? this.outcome.settler.receiptsOf(decided)
    this.stage = REFUNDED
    this.charged = NOTHING
    return this.outcome.settler.refund(receipts, decided, which)
  }

  end(outcome: Outcome = {}): void {
    if (this.stage >= ENDED) return
    this.#release(outcome)
    this.stage = ENDED
    if (this.holds) this.charged = this.outcome.settler.close(this.receipts, outcome, this.call)
    if (outcome.cost !== undefined) this.settle(outcome.cost)
    else if (this.reservation !== undefined) this.settle(NO_COSTS)
  }

  /** The id of what the call has reserved; undefined if it has reserved nothing. */
  get reservation(): number | undefined {
    return this.charged?.find(({ reservation }) => reservation !== undefined)?.reservation?.id
  }

  /** Resolves when stores know of all that was settled so far. */
  arrival(): Promise<void> {
    return this.outcome.settler.arrival()
  }

  /** Returns what JSON and `console.log` show. */
  toJSON(): Omit<Verdict, 'release' | 'settle' | 'refund' | 'end'> {
    const { allowed, rule, reason, waitMs, retryAfterMs, answer, holds, decisions } = this
    return { allowed, rule, reason, waitMs, retryAfterMs, answer, holds, decisions }
  }

  #release(outcome?: Outcome): void {
    if (this.stage >= RELEASED) return
    this.stage = RELEASED
    if (this.holds) this.outcome.settler.release(this.receipts, outcome)
  }

  #decided(): DecidedCall {
    return { call: this.call, now: this.now, resetsBefore: this.resetsBefore, decisions: this.decisions }
  }

  #with(outcome: VerdictOutcome, receipts: readonly Receipt[] | undefined): PendingVerdict {
    return new PendingVerdict(outcome, this.call, this.now, this.resetsBefore, this.levels, receipts)
  }
}

Object.defineProperties(PendingVerdict.prototype, {
  [inspect.custom]: { value: PendingVerdict.prototype.toJSON },
  // a promise asks the verdict that it is resolved with for this, and would search for it in all prototypes
  // biome-ignore lint/suspicious/noThenProperty: it says that a verdict is no promise
  then: { value: undefined },
})

function decisionsOf(levels: LevelAnswer | undefined): readonly Decision[] {
  const decisions: Decision[] = []
  let level = 0
  for (let one = levels, before: CompiledRule | undefined; one !== undefined; one = one.next) {
    const { rule, meter, remaining, resetUs, lateUs } = one
    level = rule === before ? level + 1 : 0
    before = rule
    const { count, periodMs, unit } = rule.limits[level]!
    // a bucket larger than what its rate brings in a period is shown with the time in which it fills
    const most = meter.rate?.most ?? count
    const isLarger = most > count
    decisions.push({
      rule: rule.id,
      limit: isLarger ? most : count,
      periodMs: isLarger ? (periodMs * most) / count : periodMs,
      ...(rule.measured?.unit === undefined ? {} : { unit: rule.measured.unit }),
      ...(unit && { calendar: unit }),
      allowed: lateUs === undefined,
      shadow: !rule.enforced,
      ...(rule.answer.headers === 'none' && { hidden: true }),
      remaining,
      resetAfterMs: resetUs / 1000,
      retryAfterMs: lateUs === undefined ? 0 : lateUs / 1000,
    })
  }
  return decisions
}

/** Throws unless each cost is a whole number of 0 or more. */
export function assertActualCost(actual: ActualCost): void {
  const costs: unknown[] = typeof actual === 'object' && actual !== null ? Object.values(actual) : [actual]
  for (const cost of costs) assertCost(cost)
}

/** Returns what a call has cost by one rule; undefined if that is not said. */
export function actualCostBy(rule: string, actual: ActualCost): number | undefined {
  if (typeof actual === 'number') return actual
  return Object.hasOwn(actual, rule) ? actual[rule] : undefined
}

function assertCost(cost: unknown): void {
  if (Number.isSafeInteger(cost) && (cost as number) >= 0) return
  throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
}
