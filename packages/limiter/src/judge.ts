import type { Call } from './call.ts'
import { type CountedRule, Judgement, type Receipt } from './judgement.ts'
import type { CompiledRule } from './rules/compile.ts'
import { compileMatch } from './rules/match.ts'
import type { Answer } from './rules/rule.ts'
import { type LocalCharge, localCharge, type MemoryStore } from './stores/memory.ts'
import type { Decision, Reason } from './verdict.ts'

const NOTHING: readonly Receipt[] = []

/** Judges calls by one set of rules: all rules of a call at once, synchronously, with scratch space of its own. */
export class Judge {
  readonly rules: readonly CountedRule[]
  readonly #match: (call: Call, found: CountedRule[]) => number
  readonly #store: MemoryStore
  readonly #answer: Answer
  readonly #onRelease: (receipts: readonly Receipt[]) => void
  readonly #found: CountedRule[] = []
  readonly #charges: LocalCharge[] = []

  constructor(
    rules: readonly CompiledRule[],
    store: MemoryStore,
    answer: Answer,
    onRelease: (receipts: readonly Receipt[]) => void,
  ) {
    this.#store = store
    this.#answer = answer
    this.#onRelease = onRelease
    this.rules = rules.map(rule => {
      return { rule, match: rule.match, table: store.createTable(rule.id, rule.meters), waiting: 0 }
    })
    this.#match = compileMatch(this.rules)
  }

  /** The rules that a call meets, in document order. */
  meets(call: Call): CountedRule[] {
    return this.#found.slice(0, this.#match(call, this.#found))
  }

  /** Judges and counts. */
  take(call: Call, cost: number, now: number): Judgement {
    const size = this.#prepare(call, cost)
    const allowed = this.#store.take(this.#charges, size, now)
    return this.#judgement(size, now, allowed, true)
  }

  /** Judges and counts nothing. */
  look(call: Call, cost: number, now: number): Judgement {
    const size = this.#prepare(call, cost)
    const allowed = this.#store.look(this.#charges, size, now)
    return this.#judgement(size, now, allowed, false)
  }

  #prepare(call: Call, cost: number): number {
    const found = this.#found
    const size = this.#match(call, found)
    while (this.#charges.length < size) this.#charges.push(localCharge(found[0]!.table))
    for (let i = 0; i < size; i++) {
      const charge = this.#charges[i]!
      const { rule, table, waiting } = found[i]!
      charge.table = table
      charge.key = rule.key(call)
      charge.cost = cost
      charge.enforced = rule.enforced
      charge.mayWait = waiting < rule.queueSize
    }
    return size
  }

  #judgement(size: number, now: number, allowed: boolean, counted: boolean): Judgement {
    const decisions: Decision[] = []
    let binding: CountedRule | undefined
    let reason: Reason | undefined
    let retryUs = 0
    let waitUs = 0
    let holds = false
    let onlyPlacesMissing = !allowed
    for (let i = 0; i < size; i++) {
      const charge = this.#charges[i]!
      const found = this.#found[i]!
      const { table, enforced } = charge
      if (enforced && charge.wait > waitUs) waitUs = charge.wait
      for (let level = 0; level < table.meters.length; level++) {
        const meter = table.meters[level]!
        const { count, periodMs } = found.rule.limits[level]!
        const delay = charge.delays[level]!
        const late = delay - (charge.mayWait ? meter.patienceUs : 0)
        holds ||= meter.held
        if (late > 0 && enforced) {
          if (!meter.held || found.rule.queueSize === 0) onlyPlacesMissing = false
          if (binding === undefined || late > retryUs) {
            binding = found
            retryUs = late
            reason = delay <= meter.patienceUs ? 'queue-full' : 'limit'
          }
        }
        decisions.push({
          rule: found.rule.id,
          limit: count,
          periodMs,
          allowed: late <= 0,
          shadow: !enforced,
          remaining: charge.remaining[level]!,
          resetAfterMs: charge.resets[level]! / 1000,
          retryAfterMs: late <= 0 ? 0 : late / 1000,
        })
      }
    }
    const parts = {
      allowed,
      rule: binding?.rule.id,
      reason,
      waitMs: allowed ? waitUs / 1000 : 0,
      retryAfterMs: retryUs / 1000,
      decisions,
      answer: binding?.rule.answer ?? this.#answer,
      receipts: allowed && counted && (holds || waitUs > 0) ? this.#receipts(size, now) : NOTHING,
      fullHouse: onlyPlacesMissing ? binding : undefined,
    }
    return new Judgement(parts, holds ? this.#onRelease : undefined)
  }

  #receipts(size: number, now: number): Receipt[] {
    const receipts: Receipt[] = []
    for (let i = 0; i < size; i++) {
      const { key, cost, slot, wait, fits } = this.#charges[i]!
      if (cost > 0 && fits) receipts.push({ counted: this.#found[i]!, key, cost, slot, moment: now + wait })
    }
    return receipts
  }
}
