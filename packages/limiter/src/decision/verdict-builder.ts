import { isFunctionName } from '../dimensions/reading/given-functions.ts'
import type { CompositeStore } from '../distributed/composite-store.ts'
import type { Answer } from '../rules/rule.ts'
import { type Counters, isDegraded, tallyRefusal } from '../stats/counters.ts'
import type { Decision, Reason } from '../verdict.ts'
import type { CallPlan } from './call-plan.ts'
import { PendingVerdict, type Settler } from './pending-verdict.ts'
import { type Receipt, receiptsOf } from './receipt.ts'
import type { RuleState } from './rule-state.ts'

export interface VerdictBuilderOptions {
  readonly rules: readonly RuleState[]
  readonly shared?: CompositeStore | undefined
  readonly answer: Answer
  readonly counters: Counters
}

type PlannedCharge = CallPlan['charges'][number]

const NO_RECEIPTS: readonly Receipt[] = []

/** Makes the verdict of a call out of what the stores said of its charges, and counts it. One call at a time. */
export class VerdictBuilder {
  readonly #options: VerdictBuilderOptions
  readonly #settler: Settler
  readonly #hasEndings: boolean
  readonly #hasCosts: boolean
  /** Whether any rule counts by a function of the program, which may return another value later. */
  readonly #hasFunctions: boolean
  #decisions: Decision[] = []
  /** The rule that refuses: of several, the one that takes longest to let the call pass. */
  #binding: RuleState | undefined
  #reason: Reason | undefined
  #retryUs = 0
  #waitUs = 0
  #holds = false
  /** Whether nothing but concurrency slots is missing, for which calls may wait. */
  #lacksOnlySlots = false
  #isShadowed = false
  #isDegraded = false

  constructor(options: VerdictBuilderOptions, settler: Settler) {
    this.#options = options
    this.#settler = settler
    this.#hasEndings = options.rules.some(({ rule }) => rule.countWhen !== undefined)
    this.#hasCosts = options.rules.some(({ rule }) => rule.cost !== undefined)
    this.#hasFunctions = options.rules.some(({ rule }) => rule.by.some(isFunctionName))
  }

  /** `answeredAt` is when a shared store answered: it counts waits from when it decided, which was earlier. */
  build(plan: CallPlan, now: number, allowed: boolean, counted: boolean, answeredAt: number = now): PendingVerdict {
    const { size, charges, found } = plan
    const passes = allowed && counted
    this.#reset(allowed)
    let keepsReceipts = this.#hasFunctions || plan.keepsReceipts
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      // a call that this process refuses does not ask the shared store
      if (charge.delays.length === 0) continue
      const state = found[i]!
      if (passes) this.#tallyPass(state, charge)
      if (charge.enforced && charge.wait > this.#waitUs) this.#waitUs = charge.wait
      if (this.#hasEndings && state.rule.countWhen !== undefined) this.#holds = true
      keepsReceipts ||= this.#hasCosts && state.rule.cost !== undefined
      this.#addLevels(state, charge, plan.hasBlocks ? plan.blockedUs(i) : 0, counted)
    }
    if (counted) this.#tallyCall(plan, passes)
    keepsReceipts ||= this.#holds || this.#waitUs > 0
    const binding = this.#binding
    const receipts = !passes
      ? NO_RECEIPTS
      : keepsReceipts
        ? receiptsOf(plan, now, answeredAt, this.#options.shared)
        : undefined
    const verdict = new PendingVerdict(
      {
        allowed,
        rule: binding?.rule.id,
        reason: this.#reason,
        waitMs: allowed ? this.#waitUs / 1000 : 0,
        retryAfterMs: this.#retryUs / 1000,
        decisions: this.#decisions,
        answer: binding?.rule.answer ?? this.#options.answer,
        holds: this.#holds,
        receipts,
        exhaustedRule: this.#lacksOnlySlots ? binding : undefined,
        call: plan.call,
        now,
        resetsBefore: plan.resetsBefore,
      },
      this.#settler,
    )
    plan.forget()
    return verdict
  }

  #reset(allowed: boolean): void {
    this.#decisions = []
    this.#binding = undefined
    this.#reason = undefined
    this.#retryUs = 0
    this.#waitUs = 0
    this.#holds = false
    this.#lacksOnlySlots = !allowed
    this.#isShadowed = false
    this.#isDegraded = false
  }

  #tallyPass({ tally, counter }: RuleState, charge: PlannedCharge): void {
    tally.allowed++
    if (charge.wait > 0 && charge.enforced) tally.waited++
    if (!charge.fits) {
      tally.shadowRefused++
      this.#isShadowed = true
    }
    if (counter && isDegraded(charge)) {
      tally.degradedAllowed++
      this.#isDegraded = true
    }
  }

  #addLevels(state: RuleState, charge: PlannedCharge, blockedUs: number, counted: boolean): void {
    const { rule, tally } = state
    const { enforced } = charge
    // one process's share of a limit may let calls wait for less long
    const { meters } = charge.kind === 'shared' && charge.countedBy === 'memory' ? charge.table : rule
    const { tracksLoads } = this.#options.counters
    for (let level = 0; level < meters.length; level++) {
      const meter = meters[level]!
      const delay = charge.delays[level]!
      const over = delay - (charge.mayWait ? meter.maxWaitUs : 0)
      const lateUs = over > blockedUs ? over : blockedUs
      const remaining = blockedUs > 0 ? 0 : charge.remaining[level]!
      if (tracksLoads && remaining < tally.least[level]!) tally.least[level] = remaining
      if (meter.needsRelease) this.#holds = true
      const { count, periodMs } = rule.limits[level]!
      if (lateUs > 0 && enforced) {
        // a call that needs more slots than the rule has never gets them by waiting
        const waitsForSlots = meter.needsRelease && rule.queueSize > 0 && charge.cost <= count
        if (!waitsForSlots || blockedUs > 0) this.#lacksOnlySlots = false
        // a caller over the limit is blocked from now on, unless they are blocked already
        const blockUs = over > 0 && counted && blockedUs === 0 ? (rule.blockMs ?? 0) * 1000 : 0
        const reason = blockedUs >= over ? 'blocked' : delay <= meter.maxWaitUs ? 'queue-full' : 'limit'
        this.#refuse(state, blockUs > lateUs ? blockUs : lateUs, reason)
      }
      // a bucket larger than what its rate brings in a period is shown with the time in which it fills
      const isLarger = meter.most !== undefined && meter.most > count
      this.#decisions.push({
        rule: rule.id,
        limit: isLarger ? meter.most! : count,
        periodMs: isLarger ? (periodMs * meter.most!) / count : periodMs,
        allowed: lateUs <= 0,
        shadow: !enforced,
        remaining,
        resetAfterMs: charge.resets[level]! / 1000,
        retryAfterMs: lateUs <= 0 ? 0 : lateUs / 1000,
      })
    }
  }

  /** Notes that a rule refuses; of several, the one that takes longest to let the call pass binds. */
  #refuse(state: RuleState, retryUs: number, reason: Reason): void {
    if (this.#binding !== undefined && retryUs <= this.#retryUs) return
    this.#binding = state
    this.#retryUs = retryUs
    this.#reason = reason
  }

  #tallyCall(plan: CallPlan, passes: boolean): void {
    const { counters } = this.#options
    if (!passes) {
      // a call that only lacks a slot waits in the queue, and is counted when that ends
      if (!(this.#lacksOnlySlots && this.#binding)) tallyRefusal(plan, this.#binding, counters)
      return
    }
    // a request that several filters decide is one call
    if (plan.options?.after !== undefined) return
    const { total } = counters
    total.allowed++
    if (this.#waitUs > 0) total.waited++
    if (this.#isShadowed) total.shadowRefused++
    if (this.#isDegraded) total.degradedAllowed++
  }
}
