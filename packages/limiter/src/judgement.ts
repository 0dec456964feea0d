import type { CompiledRule } from './rules/compile.ts'
import type { Answer, Match } from './rules/rule.ts'
import { CROWD, type Table } from './stores/table.ts'
import type { Decision, Reason, Verdict } from './verdict.ts'

/** A rule with its counts, and how many of its calls are waiting in this process. */
export interface CountedRule {
  readonly rule: CompiledRule
  readonly match: Match
  readonly table: Table
  waiting: number
}

/** Proof of one charge, by which it can be taken back. */
export interface Receipt {
  readonly counted: CountedRule
  readonly key: string
  readonly cost: number
  readonly slot: number
  /** The moment at which the call was counted as passing. */
  readonly moment: number
}

/** A verdict, with what is needed to wait for it, to undo it and to end it. */
export class Judgement implements Verdict {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly reason: Reason | undefined
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly Decision[]
  readonly answer: Answer
  /** Everything the call was charged; empty unless it waits or holds a place. */
  readonly receipts: readonly Receipt[]
  /** The rule that has no place left, where nothing else refuses and the rule lets calls wait for one. */
  readonly fullHouse: CountedRule | undefined
  readonly #onRelease: ((receipts: readonly Receipt[]) => void) | undefined
  #released = false

  constructor(
    parts: Omit<Judgement, 'release' | 'held' | 'refusedBy'>,
    onRelease?: (receipts: readonly Receipt[]) => void,
  ) {
    this.allowed = parts.allowed
    this.rule = parts.rule
    this.reason = parts.reason
    this.waitMs = parts.waitMs
    this.retryAfterMs = parts.retryAfterMs
    this.decisions = parts.decisions
    this.answer = parts.answer
    this.receipts = parts.receipts
    this.fullHouse = parts.fullHouse
    this.#onRelease = onRelease
  }

  /** The same, after it was held back for `waitMs`. */
  held(receipts: readonly Receipt[], waitMs: number): Judgement {
    return new Judgement({ ...this, receipts, waitMs }, this.#onRelease)
  }

  /** A refusal by one rule, whatever the others say. */
  refusedBy(rule: CompiledRule, reason: Reason): Judgement {
    return new Judgement({ ...this, allowed: false, rule: rule.id, reason, answer: rule.answer })
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    this.#onRelease?.(this.receipts)
  }
}

/** Takes back the levels of a charge that `which` names. */
export function giveBack(receipt: Receipt, now: number, which: 'held' | 'all'): void {
  const { key, cost, slot, moment } = receipt
  const { table } = receipt.counted
  // a slot that was swept may belong to somebody else by now
  if (slot !== CROWD && table.find(key) !== slot) return
  table.meters.forEach((meter, level) => {
    if (which === 'held' && !meter.held) return
    meter.giveBack(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, moment)
  })
}
