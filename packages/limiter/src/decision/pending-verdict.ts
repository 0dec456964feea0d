import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Answer, Match } from '../rules/rule.ts'
import type { Tally } from '../stats/tally.ts'
import { OVERFLOW_SLOT, resetsSoFar, type Table } from '../stores/memory/table.ts'
import type { FleetCounter } from '../stores/store.ts'
import type { Decision, Outcome, Reason, Verdict } from '../verdict.ts'

/** A rule with its counts, and how many of its calls are waiting in this process. It lives on when the rule changes. */
export interface RuleState {
  rule: CompiledRule
  match: Match
  readonly table: Table
  /** Where the rule is counted for the whole fleet; none if it is counted in this process only. */
  counter: FleetCounter | undefined
  /** Who is blocked; none where the rule blocks nobody. */
  gate?: BlockCounters | undefined
  waiting: number
  readonly tally: Tally
}

/** Callers who are blocked by a rule for a time, in this process or for the whole fleet as the rule is counted. */
export interface BlockCounters {
  readonly table: Table
  readonly counter: FleetCounter | undefined
}

/** Proof of one charge, by which it can be taken back. */
export interface Receipt {
  readonly counted: RuleState
  readonly key: string
  readonly cost: number
  readonly slot: number
  /** The moment at which the call was counted as passing, by the clock of the store. */
  readonly moment: number
  /** The same moment by the clock of this process. */
  readonly passAt: number
  /** How many keys had been reset when it was charged: after a later reset of its key nothing is given back. */
  readonly resetsBefore: number
  /** Whether another cost than was charged can be settled: the rule counts what calls cost. */
  readonly settles: boolean
  /** How to take back what was counted elsewhere. */
  readonly refund?: ((cost: number) => void) | undefined
}

/** Rules that a call is judged by because it names them, besides those that match it, or alone. */
export interface NamedRules {
  /**
   * Ids of rules that have charged the same request already, at another filter: they are left out, and the request is not
   * counted as another call.
   */
  readonly after?: readonly string[] | undefined
  readonly rule?: string | readonly string[] | undefined
  readonly only?: boolean | undefined
}

/** Changes what a call was charged, once it has been judged. */
export interface Settler {
  /** Gives back what is held. */
  release(receipts: readonly Receipt[]): void
  /** Makes charges what the call has cost in the end; returns the receipts of that. */
  settle(receipts: readonly Receipt[], actualCost: number): readonly Receipt[]
  /** Takes back what counts only for calls that end otherwise; returns the receipts of the rest. */
  close(receipts: readonly Receipt[], outcome: Outcome): readonly Receipt[]
  /** Takes back all charges; gives the decisions as they stand then. */
  refund(
    receipts: readonly Receipt[],
    parts: PendingVerdictOptions,
    which: 'passed' | 'all',
  ): readonly Decision[] | Promise<readonly Decision[]>
  /** What a call was charged that passed at once, read anew from it: most calls are never settled, and keep no receipts. */
  receiptsOf(parts: PendingVerdictOptions): readonly Receipt[]
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
  /** What was charged; undefined where that can be read from the call again: 1 by each rule it matches, when it was judged. */
  readonly receipts: readonly Receipt[] | undefined
  readonly exhaustedRule: RuleState | undefined
  readonly call: Call
  readonly now: number
  /** How many keys had been reset by then. */
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

  constructor(parts: PendingVerdictOptions, settler: Settler) {
    this.allowed = parts.allowed
    this.rule = parts.rule
    this.reason = parts.reason
    this.waitMs = parts.waitMs
    this.retryAfterMs = parts.retryAfterMs
    this.decisions = parts.decisions
    this.answer = parts.answer
    this.holds = parts.allowed && parts.holds
    // the parts themselves are not kept: they are made for every call, and cost nothing if they go no further
    this.#exhaustedRule = parts.exhaustedRule
    this.#settler = settler
    this.#call = parts.call
    this.#now = parts.now
    this.#resetsBefore = parts.resetsBefore
    this.#receipts = parts.receipts
  }

  /** Everything the call was charged; empty unless it waits, or its end matters. */
  get receipts(): readonly Receipt[] {
    return this.#receipts ?? NOTHING
  }

  /** The rule that has no place left, where nothing else refuses and the rule lets calls wait for one. */
  get exhaustedRule(): RuleState | undefined {
    return this.#exhaustedRule
  }

  /** The same, after it was held back for `waitMs`. */
  held(receipts: readonly Receipt[], waitMs: number): PendingVerdict {
    return new PendingVerdict({ ...this.#toParts(), receipts, waitMs }, this.#settler)
  }

  /** A refusal by one rule, whatever the others say. */
  refusedBy(rule: CompiledRule, reason: Reason): PendingVerdict {
    const refused = { allowed: false, rule: rule.id, reason, answer: rule.answer, exhaustedRule: undefined }
    return new PendingVerdict({ ...this.#toParts(), ...refused }, this.#settler)
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
    const receipts = this.#receipts ?? this.#settler.receiptsOf(this.#toParts())
    this.#receipts = this.#settler.settle(receipts, actualCost)
  }

  refund(): readonly Decision[] | Promise<readonly Decision[]> {
    if (!this.allowed || this.#stage === REFUNDED) return this.decisions
    const which = this.#stage === RUNNING ? 'all' : 'passed'
    const parts = this.#toParts()
    const receipts = this.#receipts ?? this.#settler.receiptsOf(parts)
    this.#stage = REFUNDED
    this.#receipts = NOTHING
    return this.#settler.refund(receipts, parts, which)
  }

  end(outcome: Outcome = {}): void {
    if (this.#stage >= ENDED) return
    this.release()
    this.#stage = ENDED
    if (this.holds) this.#receipts = this.#settler.close(this.receipts, outcome)
    if (outcome.cost !== undefined) this.settle(outcome.cost)
  }

  #toParts(): PendingVerdictOptions {
    const parts = { call: this.#call, now: this.#now, resetsBefore: this.#resetsBefore, receipts: this.#receipts }
    return { ...this, ...parts, exhaustedRule: this.#exhaustedRule }
  }
}

/** Takes back the levels of a charge that `which` names, wherever they were counted. */
export function giveBack(receipt: Receipt, now: number, which: 'held' | 'passed' | 'all'): void {
  if (!receipt.refund) giveBackHere({ ...receipt, table: receipt.counted.table }, now, which)
  // all levels of a rule are of one kind
  else if (which === 'all' || receipt.counted.rule.meters.some(meter => meter.needsRelease) === (which === 'held')) {
    receipt.refund(receipt.cost)
  }
}

/** The same for what was counted in a table of this process. */
export function giveBackHere(
  counted: Pick<Receipt, 'key' | 'cost' | 'slot' | 'moment' | 'resetsBefore'> & { readonly table: Table },
  now: number,
  which: 'held' | 'passed' | 'all',
): void {
  const { table, key, cost, slot, moment, resetsBefore } = counted
  // a slot that was swept may belong to somebody else by now
  if ((slot !== OVERFLOW_SLOT && table.find(key) !== slot) || table.isResetSince(slot, resetsBefore)) return
  table.giveBack(slot, now, cost, moment, meter => which === 'all' || meter.needsRelease === (which === 'held'))
}

/** Counts anew, as early as it fits, a charge that was just given back: whoever was admitted is not refused later. */
export function recharge(receipt: Receipt, now: number): Receipt {
  const { cost, slot } = receipt
  const { table } = receipt.counted
  const state = table.state(slot)
  const places = table.offsets.map(offset => table.base(slot) + offset)
  const wait = Math.max(...table.meters.map((meter, level) => meter.delay(state, places[level]!, now, cost)))
  // the limit has since become smaller than the call, which nothing can hold
  if (wait === Number.POSITIVE_INFINITY) return receipt
  table.meters.forEach((meter, level) => {
    meter.take(state, places[level]!, now, cost, wait)
  })
  // a smaller limit holds nobody back for longer than he was told
  return { ...receipt, moment: now + wait, passAt: Math.min(receipt.passAt, now + wait), resetsBefore: resetsSoFar() }
}
