import { firstBlockCost } from '../algorithms/block.ts'
import type { Call } from '../call.ts'
import { isMeasured } from '../costs/is-measured.ts'
import type { Priorities } from '../rules/priority/priorities.ts'
import type { Answer } from '../rules/rule.ts'
import { type Counters, createCounters, tallyRefusalBy } from '../stats/counters.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { Decision } from '../verdict.ts'
import { blockCaller, clearCaller } from './blocklist.ts'
import { CallPlan } from './call-plan.ts'
import { isSpecial, type NamedRules, type PlanOptions } from './check-options.ts'
import { decideTogether, type JointCall, type JointParts } from './joint-decision.ts'
import { type DecidedCall, PendingVerdict, passedBy, type Settler } from './pending-verdict.ts'
import { QuickPass } from './quick-pass.ts'
import { ChargeReservations, type Receipt, receiptsOf, refundCharge } from './receipt.ts'
import { type CallerLists, type ListedCaller, RuleSelector } from './rule-selector.ts'
import type { RuleState } from './rule-state.ts'
import { planOf } from './rule-state.ts'
import { createSettler, type SettlementOptions } from './settlement.ts'
import { VerdictBuilder } from './verdict-builder.ts'

/** A denied caller is not asked to come again. */
const DENIED_STATUS = { denied: 403, ambiguous: 400 } as const

const OVERLOAD_STATUS = 503
const MAX_IDLE_PLANS = 256

export interface DeciderOptions extends CallerLists {
  readonly rules: readonly RuleState[]
  readonly store: MemoryStore
  /** The store of rules that are counted together with other processes, if any are. */
  readonly shared?: CompositeStore | undefined
  readonly answer: Answer
  readonly onRelease: SettlementOptions['onRelease']
  /** The counters of all calls. */
  readonly counters?: Counters | undefined
  /** The levels of calls; undefined if all have the same. */
  readonly priorities?: Priorities | undefined
  /** The charges that wait to be settled. */
  readonly reservations?: ChargeReservations | undefined
  /** The clock of this process; read when a shared store has answered, and when a call is settled. */
  readonly now: () => number
}

/** Decides calls by one set of rules: all rules of a call together, and at once unless some are counted elsewhere. */
export class Decider {
  readonly rules: readonly RuleState[]
  /** True if any rule reads costs from requests and answers. */
  readonly measures: boolean
  /** True if callers of any rule may have credit. */
  readonly hasCredit: boolean
  readonly #options: DeciderOptions
  readonly #selector: RuleSelector
  readonly #settler: Settler
  readonly #quickPass: QuickPass
  readonly #verdicts: VerdictBuilder
  readonly #joint: JointParts
  readonly #counters: Counters
  readonly #reservations: ChargeReservations
  #plan = new CallPlan()
  /** Plans of calls that a shared store has answered; a new one would be six lists. */
  readonly #idlePlans: CallPlan[] = []

  constructor(options: DeciderOptions) {
    this.#options = options
    this.rules = options.rules
    this.measures = options.rules.some(({ rule }) => isMeasured(rule))
    this.hasCredit = options.rules.some(({ rule }) => rule.credit === true)
    this.#counters = options.counters ?? createCounters()
    this.#selector = new RuleSelector(options.rules, options)
    this.#reservations = options.reservations ?? new ChargeReservations()
    this.#settler = createSettler({
      ...options,
      reservations: this.#reservations,
      receiptsOf: decided => this.#receiptsAgain(decided),
      onRefund: decided => this.#decisionsAfterRefund(decided),
    })
    const passed = passedBy(options.answer, this.#settler)
    this.#quickPass = new QuickPass(passed, this.#counters)
    this.#verdicts = new VerdictBuilder({
      ...options,
      passed,
      counters: this.#counters,
      reservations: this.#reservations,
    })
    this.#joint = {
      ...options,
      ...{ selector: this.#selector, verdicts: this.#verdicts },
      deny: (call, now) => this.#deny(call, now),
      refundLocal: (plan, now) => this.#refundLocal(plan, now),
      block: (plan, verdict) => this.#block(plan, verdict),
    }
  }

  /** Returns the rules that a call meets, in document order, and then those that it names. */
  meets(call: Call, options?: NamedRules): RuleState[] {
    const { found } = this.#plan
    const met = found.slice(0, Math.max(0, this.#selector.find(call, found, options)))
    return met.map(state => planOf(state, call))
  }

  /** Returns the lists that the caller of a call is on. */
  lists(call: Call, options?: NamedRules): ListedCaller[] {
    return this.#selector.lists(call, options)
  }

  /** Decides and counts a call. */
  take(call: Call, cost: number, now: number, options?: PlanOptions): PendingVerdict | Promise<PendingVerdict> {
    if (now >= this.#reservations.open.dueAt) this.#reservations.releaseEnded(now)
    const { found } = this.#plan
    const size = this.#selector.find(call, found, options)
    if (cost === 1 && size >= 0 && !isSpecial(options)) {
      const verdict = this.#quickPass.take(call, found, size, now)
      if (verdict !== undefined) return verdict
    }
    const plan = this.#prioritized(this.#plan.prepare(call, cost, size, options?.holdUs, options?.paid), call)
    return plan.shared.length === 0
      ? this.#takeLocal(plan, call, now, options)
      : this.#takeShared(plan, call, now, options)
  }

  /** Decides several calls at once: all of them are counted, or, if one is refused, none. */
  takeTogether(calls: readonly JointCall[], now: number): PendingVerdict[] | Promise<PendingVerdict[]> {
    return decideTogether(calls, now, this.#joint)
  }

  /** Takes the charges of those rules only that are counted in this process. */
  takeLocal(call: Call, cost: number, now: number, options?: PlanOptions): PendingVerdict {
    return this.#takeLocal(this.#prepare(call, cost, options), call, now, options)
  }

  /** Decides a call and counts nothing. */
  look(call: Call, cost: number, now: number, options?: PlanOptions): PendingVerdict | Promise<PendingVerdict> {
    const plan = this.#prepare(call, cost, options)
    return plan.shared.length === 0 ? this.#lookLocal(plan, call, now) : this.#lookShared(plan, call, now)
  }

  /** Looks up the charges of those rules only that are counted in this process. */
  lookLocal(call: Call, cost: number, now: number, options?: PlanOptions): PendingVerdict {
    return this.#lookLocal(this.#prepare(call, cost, options), call, now)
  }

  /** Returns the rank of a call, which waits before calls of a lower rank. */
  rankOf(call: Call): number {
    const { priorities } = this.#options
    return priorities === undefined ? 0 : priorities.rankOf(priorities.levelOf(call))
  }

  /** Counts a refusal that was deferred, since credit might have made the call pass. */
  countRefusal(verdict: PendingVerdict, call: Call, options: PlanOptions | undefined): void {
    // a call that waits for a slot is counted when its wait ends; a denied call has been counted already
    if (verdict.exhaustedRule !== undefined || verdict.decisions.length === 0) return
    const binding = this.meets(call, options).find(({ rule }) => rule.id === verdict.rule)
    tallyRefusalBy(binding, binding?.rule.key(call) ?? '', this.#counters)
  }

  /** Returns a verdict on a call that this process has no time for. */
  shed(call: Call, now: number, retryAfterMs: number): PendingVerdict {
    tallyRefusalBy(undefined, '', this.#counters)
    const answer = { ...this.#options.answer, status: OVERLOAD_STATUS }
    const refused = { allowed: false, rule: undefined, reason: 'overload', answer, retryAfterMs } as const
    const outcome = { ...refused, waitMs: 0, holds: false, exhaustedRule: undefined, settler: this.#settler }
    return new PendingVerdict(outcome, call, now, 0, undefined, [])
  }

  #prepare(call: Call, cost: number, options: PlanOptions | undefined): CallPlan {
    const now = this.#options.now()
    if (now >= this.#reservations.open.dueAt) this.#reservations.releaseEnded(now)
    const found = this.#selector.find(call, this.#plan.found, options)
    const plan = this.#plan.prepare(call, cost, found, options?.holdUs, options?.paid)
    return this.#prioritized(plan, call)
  }

  #prioritized(plan: CallPlan, call: Call): CallPlan {
    if (this.#options.priorities !== undefined) plan.prioritize(this.rankOf(call))
    return plan
  }

  #takeLocal(plan: CallPlan, call: Call, now: number, options: PlanOptions | undefined): PendingVerdict {
    if (plan.isDenied) return this.#deny(call, now)
    const allowed = this.#options.store.take(plan.local, plan.locals, now)
    const verdict = this.#verdicts.build(plan, call, options, allowed ? 'taken' : 'refused', now)
    if (plan.hasBlocks && !allowed) this.#block(plan, verdict)
    return verdict
  }

  #lookLocal(plan: CallPlan, call: Call, now: number): PendingVerdict {
    if (plan.isDenied) return this.#denial(call, now)
    const allowed = this.#options.store.look(plan.local, plan.locals, now)
    return this.#verdicts.build(plan, call, undefined, allowed ? 'fits' : 'full', now)
  }

  async #lookShared(plan: CallPlan, call: Call, now: number): Promise<PendingVerdict> {
    this.#keepPlan()
    const isAllowedHere = this.#options.store.look(plan.local, plan.locals, now)
    const allowed = (await this.#options.shared!.look(plan.shared, now)) && isAllowedHere
    const verdict = this.#verdicts.build(plan, call, undefined, allowed ? 'fits' : 'full', now)
    this.#freePlan(plan)
    return verdict
  }

  /**
   * Takes the charges of a call in this process first, so that no other call can take their room meanwhile, and refunds them if the
   * shared store refuses. A call that this process refuses does not ask the shared store; one that it holds permits for is decided
   * at once.
   */
  #takeShared(
    plan: CallPlan,
    call: Call,
    now: number,
    options: PlanOptions | undefined,
  ): PendingVerdict | Promise<PendingVerdict> {
    const { store, shared } = this.#options
    if (!store.take(plan.local, plan.locals, now)) return this.#finishShared(plan, call, now, options, false, now)
    const answer = shared!.take(plan.shared, now)
    if (typeof answer === 'boolean') {
      if (!answer) this.#refundLocal(plan, now)
      return this.#finishShared(plan, call, now, options, answer, now)
    }
    this.#keepPlan()
    return answer.then(allowed => {
      if (!allowed) this.#refundLocal(plan, now)
      const verdict = this.#finishShared(plan, call, now, options, allowed, this.#options.now())
      this.#freePlan(plan)
      return verdict
    })
  }

  #finishShared(
    plan: CallPlan,
    call: Call,
    now: number,
    options: PlanOptions | undefined,
    allowed: boolean,
    answeredAt: number,
  ): PendingVerdict {
    const verdict = this.#verdicts.build(plan, call, options, allowed ? 'taken' : 'refused', now, answeredAt)
    if (plan.hasBlocks && !allowed) this.#block(plan, verdict)
    return verdict
  }

  /** Keeps the plan of this call, which is in use until a store has answered: the next call gets another one. */
  #keepPlan(): void {
    this.#plan = this.#idlePlans.pop() ?? new CallPlan()
  }

  #freePlan(plan: CallPlan): void {
    if (this.#idlePlans.length < MAX_IDLE_PLANS) this.#idlePlans.push(plan)
  }

  #refundLocal(plan: CallPlan, now: number): void {
    const receipts = receiptsOf(plan, now, now, this.#options.shared).filter(({ state }) => !state.counter)
    for (const receipt of receipts.reverse()) refundCharge(receipt, now, 'all')
    this.#options.store.look(plan.local, plan.locals, now)
  }

  /** Blocks the caller by the rules whose limit they are over. No call waits for it: until then the limit itself refuses. */
  #block(plan: CallPlan, verdict: PendingVerdict): void {
    const { size, charges, found } = plan
    if (verdict.exhaustedRule) return
    // from the moment of the call on, so that the same calls at the same moments are decided alike
    const context = { ...this.#options, now: () => verdict.decidedAt }
    for (let i = 0; i < size; i++) {
      const { fits, enforced, delays, key } = charges[i]!
      const state = found[i]!
      const { rule, blocks } = state
      if (fits || !enforced || delays.length === 0 || !blocks || !rule.blockMs || plan.blockedUs(i) > 0) continue
      const isSet = blockCaller(blocks, key, firstBlockCost(rule.blockMs), context)
      // the block stands before the count is cleared, so that no call passes between the two
      const clear = (isBlocked: boolean) => {
        return isBlocked && rule.blockClears ? clearCaller(state, key, context.shared) : undefined
      }
      void Promise.resolve(typeof isSet === 'boolean' ? clear(isSet) : isSet.then(clear)).catch(() => {})
    }
  }

  #deny(call: Call, now: number): PendingVerdict {
    const { deniedBy } = this.#selector
    tallyRefusalBy(deniedBy, deniedBy?.rule.key(call) ?? '', this.#counters)
    return this.#denial(call, now)
  }

  #denial(call: Call, now: number): PendingVerdict {
    const { deniedBy, deniedAs: reason } = this.#selector
    const answer = { ...(deniedBy?.rule.answer ?? this.#options.answer), status: DENIED_STATUS[reason] }
    const refused = { allowed: false, rule: deniedBy?.rule.id, reason, answer, retryAfterMs: Number.POSITIVE_INFINITY }
    const outcome = { ...refused, waitMs: 0, holds: false, exhaustedRule: undefined, settler: this.#settler }
    return new PendingVerdict(outcome, call, now, 0, undefined, [])
  }

  /** Returns the charges of a call that passed at once: of shadow rules, only those that had room for it. */
  #receiptsAgain({ call, now, resetsBefore, decisions }: DecidedCall): Receipt[] {
    const full = new Set(decisions.filter(decision => !decision.allowed).map(({ rule }) => rule))
    return this.meets(call).flatMap(state => {
      if (full.has(state.rule.id)) return []
      const key = state.rule.key(call)
      const slot = state.table.find(key)
      return [{ state, key, cost: 1, slot, moment: now, passAt: now, resetsBefore, settles: state.rule.settles }]
    })
  }

  /** Counts a refunded call as one that did not pass, and returns what its rules decide now. */
  #decisionsAfterRefund({ call, decisions }: DecidedCall): readonly Decision[] | Promise<readonly Decision[]> {
    const ids = [...new Set(decisions.map(({ rule }) => rule))]
    const shadowed = new Set(decisions.filter(({ allowed }) => !allowed).map(({ rule }) => rule))
    for (const { rule, tally } of this.rules) if (ids.includes(rule.id)) tally.undoPass(shadowed.has(rule.id))
    this.#counters.total.undoPass(shadowed.size > 0)
    const verdict = this.look(call, 0, this.#options.now(), { rule: ids, only: true })
    return verdict instanceof Promise ? verdict.then(one => one.decisions) : verdict.decisions
  }
}
