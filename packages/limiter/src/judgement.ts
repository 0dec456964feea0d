import type { CompiledRule } from './rules/compile.ts'
import type { Answer, Match } from './rules/rule.ts'
import type { RedisCounter } from './stores/redis-counter.ts'
import { CROWD, type Table } from './stores/table.ts'
import type { Decision, Reason, Verdict } from './verdict.ts'

/** A rule with its counts, and how many of its calls are waiting in this process. It lives on when the rule changes. */
export interface CountedRule {
  rule: CompiledRule
  match: Match
  readonly table: Table
  /** Where the rule is counted for the whole fleet; none if it is counted in this process only. */
  counter: RedisCounter | undefined
  waiting: number
}

/** Proof of one charge, by which it can be taken back. */
export interface Receipt {
  readonly counted: CountedRule
  readonly key: string
  readonly cost: number
  readonly slot: number
  /** The moment at which the call was counted as passing, by the clock of the store. */
  readonly moment: number
  /** The same moment by the clock of this process. */
  readonly passAt: number
  /** How to take back what was counted elsewhere. */
  readonly refund?: ((which: 'held' | 'all') => void) | undefined
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
  readonly holds: boolean
  readonly #receipts: readonly Receipt[]
  readonly #fullHouse: CountedRule | undefined
  readonly #onRelease: ((receipts: readonly Receipt[]) => void) | undefined
  #released = false

  constructor(
    parts: Omit<Judgement, 'release' | 'held' | 'refusedBy' | 'holds'>,
    onRelease?: (receipts: readonly Receipt[]) => void,
  ) {
    this.allowed = parts.allowed
    this.rule = parts.rule
    this.reason = parts.reason
    this.waitMs = parts.waitMs
    this.retryAfterMs = parts.retryAfterMs
    this.decisions = parts.decisions
    this.answer = parts.answer
    this.holds = parts.allowed && onRelease !== undefined
    this.#receipts = parts.receipts
    this.#fullHouse = parts.fullHouse
    this.#onRelease = onRelease
  }

  /** Everything the call was charged; empty unless it waits or holds a place. */
  get receipts(): readonly Receipt[] {
    return this.#receipts
  }

  /** The rule that has no place left, where nothing else refuses and the rule lets calls wait for one. */
  get fullHouse(): CountedRule | undefined {
    return this.#fullHouse
  }

  /** The same, after it was held back for `waitMs`. */
  held(receipts: readonly Receipt[], waitMs: number): Judgement {
    return new Judgement({ ...this, receipts, waitMs, fullHouse: this.#fullHouse }, this.#onRelease)
  }

  /** A refusal by one rule, whatever the others say. */
  refusedBy(rule: CompiledRule, reason: Reason): Judgement {
    const parts = { ...this, receipts: this.#receipts, fullHouse: undefined }
    return new Judgement({ ...parts, allowed: false, rule: rule.id, reason, answer: rule.answer })
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    this.#onRelease?.(this.receipts)
  }
}

/** Takes back the levels of a charge that `which` names, wherever they were counted. */
export function giveBack(receipt: Receipt, now: number, which: 'held' | 'all'): void {
  if (receipt.refund) receipt.refund(which)
  else giveBackHere(receipt, now, which)
}

function giveBackHere(receipt: Receipt, now: number, which: 'held' | 'all'): void {
  const { key, cost, slot, moment } = receipt
  const { table } = receipt.counted
  // a slot that was swept may belong to somebody else by now
  if (slot !== CROWD && table.find(key) !== slot) return
  table.meters.forEach((meter, level) => {
    if (which === 'held' && !meter.held) return
    meter.giveBack(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, moment)
  })
}

/** Counts anew, as early as it fits, a charge that was just given back: whoever was admitted is not refused later. */
export function takeAgain(receipt: Receipt, now: number): Receipt {
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
  return { ...receipt, moment: now + wait, passAt: Math.min(receipt.passAt, now + wait) }
}
