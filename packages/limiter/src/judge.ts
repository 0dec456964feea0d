import type { Call } from './call.ts'
import { Docket } from './docket.ts'
import { type CountedRule, giveBack, Judgement, type Receipt } from './judgement.ts'
import { compileMatch } from './rules/match.ts'
import type { Answer } from './rules/rule.ts'
import type { MemoryStore } from './stores/memory.ts'
import type { SharedCharge, SharedStore } from './stores/shared.ts'
import type { Decision, Reason } from './verdict.ts'

const NOTHING: readonly Receipt[] = []

export interface JudgeParts {
  readonly rules: readonly CountedRule[]
  readonly store: MemoryStore
  /** Where rules are counted for the whole fleet, if any are. */
  readonly shared?: SharedStore | undefined
  readonly answer: Answer
  readonly onRelease: (receipts: readonly Receipt[]) => void
  /** Told what each rule that the fleet shares said of a call. */
  readonly onShared?: ((rule: string, allowed: boolean) => void) | undefined
  /** The clock of this process; only asked when the fleet's store has answered. */
  readonly now?: (() => number) | undefined
}

/** Judges calls by one set of rules: all rules of a call at once, and at once unless some are counted elsewhere. */
export class Judge {
  readonly rules: readonly CountedRule[]
  readonly #parts: JudgeParts
  readonly #match: (call: Call, found: CountedRule[]) => number
  #docket = new Docket()

  constructor(parts: JudgeParts) {
    this.#parts = parts
    this.rules = parts.rules
    this.#match = compileMatch(parts.rules)
  }

  /** The rules that a call meets, in document order. */
  meets(call: Call): CountedRule[] {
    const { found } = this.#docket
    return found.slice(0, this.#match(call, found))
  }

  /** Judges and counts; at once unless some of the call's rules are counted elsewhere. */
  take(call: Call, cost: number, now: number): Judgement | Promise<Judgement> {
    const docket = this.#prepare(call, cost)
    return docket.shared.length === 0 ? this.#take(docket, now) : this.#takeShared(docket, now)
  }

  /** The same, by those rules only that are counted in this process. */
  takeHere(call: Call, cost: number, now: number): Judgement {
    return this.#take(this.#prepare(call, cost), now)
  }

  /** Judges and counts nothing. */
  look(call: Call, cost: number, now: number): Judgement | Promise<Judgement> {
    const docket = this.#prepare(call, cost)
    return docket.shared.length === 0 ? this.#look(docket, now) : this.#lookShared(docket, now)
  }

  /** The same, by those rules only that are counted in this process. */
  lookHere(call: Call, cost: number, now: number): Judgement {
    return this.#look(this.#prepare(call, cost), now)
  }

  #take(docket: Docket, now: number): Judgement {
    return this.#judgement(docket, now, this.#parts.store.take(docket.local, docket.locals, now), true)
  }

  #look(docket: Docket, now: number): Judgement {
    return this.#judgement(docket, now, this.#parts.store.look(docket.local, docket.locals, now), false)
  }

  async #lookShared(docket: Docket, now: number): Promise<Judgement> {
    this.#docket = new Docket()
    const allowedHere = this.#parts.store.look(docket.local, docket.locals, now)
    const allowed = await this.#parts.shared!.look(docket.shared, now)
    return this.#judgement(docket, now, allowedHere && allowed, false)
  }

  #prepare(call: Call, cost: number): Docket {
    const docket = this.#docket
    docket.prepare(this.#match(call, docket.found), call, cost)
    return docket
  }

  /**
   * What is counted here is taken first, so that nobody else can take it meanwhile, and given back if the rest of the
   * fleet leaves no room. A call that is refused here asks nobody else.
   */
  async #takeShared(docket: Docket, now: number): Promise<Judgement> {
    this.#docket = new Docket()
    if (!this.#parts.store.take(docket.local, docket.locals, now)) return this.#judgement(docket, now, false, true)
    const allowed = await this.#parts.shared!.take(docket.shared, now)
    if (!allowed) {
      const undone = this.#receipts(docket, now).filter(receipt => !receipt.counted.counter)
      for (const receipt of undone.reverse()) giveBack(receipt, now, 'all')
      this.#parts.store.look(docket.local, docket.locals, now)
    }
    for (let i = 0; i < docket.size; i++) {
      const { rule, counter } = docket.found[i]!
      if (counter) this.#parts.onShared?.(rule.id, docket.charges[i]!.fits)
    }
    // the store counted its waits from when it judged, which was before its answer came
    return this.#judgement(docket, now, allowed, true, this.#parts.now?.())
  }

  #judgement(docket: Docket, now: number, allowed: boolean, counted: boolean, answeredAt = now): Judgement {
    const { size, charges, found: rules } = docket
    const decisions: Decision[] = []
    let binding: CountedRule | undefined
    let reason: Reason | undefined
    let retryUs = 0
    let waitUs = 0
    let holds = false
    let onlyPlacesMissing = !allowed
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      const found = rules[i]!
      const { enforced } = charge
      const { meters } = found.rule
      // refused by what is counted here, the call has asked nobody else
      if (charge.delays.length === 0) continue
      if (enforced && charge.wait > waitUs) waitUs = charge.wait
      for (let level = 0; level < meters.length; level++) {
        const meter = meters[level]!
        const { count, periodMs } = found.rule.limits[level]!
        const delay = charge.delays[level]!
        const late = delay - (charge.mayWait ? meter.patienceUs : 0)
        holds ||= meter.held
        if (late > 0 && enforced) {
          // nobody waits for what can never be: more places than there are
          if (!meter.held || found.rule.queueSize === 0 || charge.cost > count) onlyPlacesMissing = false
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
      answer: binding?.rule.answer ?? this.#parts.answer,
      receipts: allowed && counted && (holds || waitUs > 0) ? this.#receipts(docket, now, answeredAt) : NOTHING,
      fullHouse: onlyPlacesMissing ? binding : undefined,
    }
    return new Judgement(parts, holds ? this.#parts.onRelease : undefined)
  }

  #receipts({ size, charges, found }: Docket, now: number, answeredAt = now): Receipt[] {
    const receipts: Receipt[] = []
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      const { key, cost, slot, wait, fits } = charge
      if (cost === 0 || !fits) continue
      const counted = found[i]!
      const receipt = { counted, key, cost, slot, moment: now + wait, passAt: now + wait }
      if (!('countedBy' in charge) || charge.countedBy === 'memory') receipts.push(receipt)
      else if (charge.countedBy === 'redis') {
        receipts.push({ ...receipt, passAt: answeredAt + wait, refund: this.#refundOf(charge) })
      }
    }
    return receipts
  }

  #refundOf(charge: SharedCharge): (which: 'held' | 'all') => void {
    const holds = charge.counter.meters.some(meter => meter.held)
    return which => {
      if (which === 'all' || holds) this.#parts.shared!.giveBack(charge)
    }
  }
}
