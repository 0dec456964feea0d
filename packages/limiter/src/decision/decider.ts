import { firstBlockCost } from '../algorithms/block.ts'
import type { Call } from '../call.ts'
import { isFunctionWord } from '../dimensions/reading/given-functions.ts'
import type { CompositeStore } from '../distributed/composite-store.ts'
import type { Answer } from '../rules/rule.ts'
import { type Counters, createWatch, isDegraded, tallyPass, tallyRefusal, tallyRefusalBy } from '../stats/counters.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { SharedCharge } from '../stores/shared-charge.ts'
import type { Decision, Reason } from '../verdict.ts'
import { blockCaller } from './blocklist.ts'
import { CallPlan, type DocketOptions } from './call-plan.ts'
import {
  giveBack,
  type NamedRules,
  PendingVerdict,
  type PendingVerdictOptions,
  type Receipt,
  type RuleState,
  type Settler,
} from './pending-verdict.ts'
import { type CallerScreens, type ListedCaller, RuleFinder } from './rule-selector.ts'
import { createSettler, type SettlementOptions } from './settlement.ts'

const NOTHING: readonly Receipt[] = []

/** A denied caller is not told to come again. */
const DENIED_STATUS = { denied: 403, ambiguous: 400 } as const

export interface DeciderOptions extends CallerScreens {
  readonly rules: readonly RuleState[]
  readonly store: MemoryStore
  /** Where rules are counted for the whole fleet, if any are. */
  readonly shared?: CompositeStore | undefined
  readonly answer: Answer
  readonly onRelease: SettlementOptions['onRelease']
  /** Where it is counted what became of calls. */
  readonly watch?: Counters | undefined
  /** Told what each rule that the fleet shares said of a call. */
  readonly onShared?: ((rule: string, allowed: boolean) => void) | undefined
  /** The clock of this process; asked when the fleet's store has answered, and when a call is settled. */
  readonly now: () => number
}

/** Judges calls by one set of rules: all rules of a call at once, and at once unless some are counted elsewhere. */
export class Decider {
  readonly rules: readonly RuleState[]
  readonly #parts: DeciderOptions
  readonly #finder: RuleFinder
  readonly #settler: Settler
  /** Whether any rule counts by how calls end, or has a word on what they cost. */
  readonly #hasEndings: boolean
  readonly #hasCosts: boolean
  /** Whether any rule counts by what a function of the program says, which may say something else later. */
  readonly #hasFunctions: boolean
  readonly #watch: Counters
  #plan = new CallPlan()

  constructor(parts: DeciderOptions) {
    this.#parts = parts
    this.rules = parts.rules
    this.#hasEndings = parts.rules.some(({ rule }) => rule.countWhen !== undefined)
    this.#hasCosts = parts.rules.some(({ rule }) => rule.cost !== undefined)
    this.#hasFunctions = parts.rules.some(({ rule }) => rule.by.some(isFunctionWord))
    this.#watch = parts.watch ?? createWatch()
    this.#finder = new RuleFinder(parts.rules, parts)
    this.#settler = createSettler({
      ...parts,
      receiptsOf: judged => this.#receiptsOf(judged),
      onRefund: judged => this.#refunded(judged),
    })
  }

  /** The rules that a call meets, in document order, and then those that it names. */
  meets(call: Call, options?: NamedRules): RuleState[] {
    const { found } = this.#plan
    return found.slice(0, Math.max(0, this.#finder.find(call, found, options)))
  }

  /** The lists that the caller of a call is on. */
  lists(call: Call, options?: NamedRules): ListedCaller[] {
    return this.#finder.lists(call, options)
  }

  /** Judges and counts; at once unless some of the call's rules are counted elsewhere. */
  take(call: Call, cost: number, now: number, options?: DocketOptions): PendingVerdict | Promise<PendingVerdict> {
    const plan = this.#prepare(call, cost, options)
    return plan.shared.length === 0 ? this.#take(plan, now) : this.#takeShared(plan, now)
  }

  /** The same, by those rules only that are counted in this process. */
  takeHere(call: Call, cost: number, now: number, options?: DocketOptions): PendingVerdict {
    return this.#take(this.#prepare(call, cost, options), now)
  }

  /** Judges and counts nothing. */
  look(call: Call, cost: number, now: number, options?: DocketOptions): PendingVerdict | Promise<PendingVerdict> {
    const plan = this.#prepare(call, cost, options)
    return plan.shared.length === 0 ? this.#look(plan, now) : this.#lookShared(plan, now)
  }

  /** The same, by those rules only that are counted in this process. */
  lookHere(call: Call, cost: number, now: number, options?: DocketOptions): PendingVerdict {
    return this.#look(this.#prepare(call, cost, options), now)
  }

  #take(plan: CallPlan, now: number): PendingVerdict {
    if (plan.isDenied) {
      tallyRefusalBy(this.#finder.deniedBy, this.#finder.deniedBy?.rule.key(plan.call) ?? '', this.#watch)
      return this.#denial(plan, now)
    }
    const pending = this.#pending(plan, now, this.#parts.store.take(plan.local, plan.locals, now), true)
    if (plan.hasGates && !pending.allowed) this.#block(plan, pending)
    return pending
  }

  #look(plan: CallPlan, now: number): PendingVerdict {
    if (plan.isDenied) return this.#denial(plan, now)
    return this.#pending(plan, now, this.#parts.store.look(plan.local, plan.locals, now), false)
  }

  async #lookShared(plan: CallPlan, now: number): Promise<PendingVerdict> {
    this.#plan = new CallPlan()
    const allowedHere = this.#parts.store.look(plan.local, plan.locals, now)
    const allowed = await this.#parts.shared!.look(plan.shared, now)
    return this.#pending(plan, now, allowedHere && allowed, false)
  }

  #prepare(call: Call, cost: number, options: DocketOptions | undefined): CallPlan {
    const plan = this.#plan
    plan.prepare(this.#finder.find(call, plan.found, options), call, cost, options)
    return plan
  }

  /**
   * What is counted here is taken first, so that nobody else can take it meanwhile, and given back if the rest of the
   * fleet leaves no room. A call that is refused here asks nobody else.
   */
  async #takeShared(plan: CallPlan, now: number): Promise<PendingVerdict> {
    this.#plan = new CallPlan()
    if (!this.#parts.store.take(plan.local, plan.locals, now)) {
      const refusal = this.#pending(plan, now, false, true)
      if (plan.hasGates) this.#block(plan, refusal)
      return refusal
    }
    const allowed = await this.#parts.shared!.take(plan.shared, now)
    if (!allowed) {
      const undone = this.#receipts(plan, now).filter(receipt => !receipt.counted.counter)
      for (const receipt of undone.reverse()) giveBack(receipt, now, 'all')
      this.#parts.store.look(plan.local, plan.locals, now)
    }
    for (let i = 0; i < plan.size; i++) {
      const { rule, counter } = plan.found[i]!
      const { delays, fits } = plan.charges[i]!
      if (counter && rule.distributed && delays.length > 0)
        this.#parts.onShared?.(rule.id, fits && plan.blockedUs(i) === 0)
    }
    // the store counted its waits from when it judged, which was before its answer came
    const pending = this.#pending(plan, now, allowed, true, this.#parts.now())
    if (plan.hasGates && !allowed) this.#block(plan, pending)
    return pending
  }

  /** Blocks the caller by those rules whose limit he is over. Nobody waits for it: until then the limit itself refuses. */
  #block(plan: CallPlan, pending: PendingVerdict): void {
    const { size, charges, found } = plan
    if (pending.exhaustedRule) return
    for (let i = 0; i < size; i++) {
      const { fits, enforced, delays, key } = charges[i]!
      const { rule, gate } = found[i]!
      if (fits || !enforced || delays.length === 0 || !gate || !rule.blockMs || plan.blockedUs(i) > 0) continue
      void Promise.resolve(blockCaller(gate, key, firstBlockCost(rule.blockMs), this.#parts)).catch(() => {})
    }
  }

  #denial({ call }: CallPlan, now: number): PendingVerdict {
    const { deniedBy, deniedAs: reason } = this.#finder
    const answer = { ...(deniedBy?.rule.answer ?? this.#parts.answer), status: DENIED_STATUS[reason] }
    const why = { rule: deniedBy?.rule.id, reason, answer, retryAfterMs: Number.POSITIVE_INFINITY } as const
    const rest = {
      waitMs: 0,
      decisions: [],
      holds: false,
      receipts: NOTHING,
      exhaustedRule: undefined,
      resetsBefore: 0,
    }
    return new PendingVerdict({ allowed: false, ...why, ...rest, call, now }, this.#settler)
  }

  #pending(plan: CallPlan, now: number, allowed: boolean, counted: boolean, answeredAt = now): PendingVerdict {
    const { size, charges, found: rules, call, options } = plan
    const decisions: Decision[] = []
    let binding: RuleState | undefined
    let reason: Reason | undefined
    let retryUs = 0
    let waitUs = 0
    let holds = false
    let keepsReceipts = plan.shared.length > 0 || options?.cost !== undefined || options?.rule !== undefined
    keepsReceipts ||= this.#hasFunctions || options?.after !== undefined
    let onlyPlacesMissing = !allowed
    let isShadowed = false
    let degraded = false
    const passes = allowed && counted
    const { tracksLoads } = this.#watch
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      const found = rules[i]!
      const { enforced } = charge
      // a part of a limit may let calls wait for less long
      const { meters } = 'countedBy' in charge && charge.countedBy === 'memory' ? charge.table : found.rule
      // refused by what is known here, the call has asked nobody else
      if (charge.delays.length === 0) continue
      if (enforced && charge.wait > waitUs) waitUs = charge.wait
      if (this.#hasEndings && found.rule.countWhen !== undefined) holds = true
      keepsReceipts ||= this.#hasCosts && found.rule.cost !== undefined
      const { tally } = found
      if (passes) {
        tally.allowed++
        if (charge.wait > 0 && enforced) tally.waited++
        if (!charge.fits) {
          tally.shadowRefused++
          isShadowed = true
        }
        if (found.counter && isDegraded(charge)) {
          tally.degradedAllowed++
          degraded = true
        }
      }
      const blockedUs = plan.hasGates ? plan.blockedUs(i) : 0
      for (let level = 0; level < meters.length; level++) {
        const meter = meters[level]!
        const { count, periodMs } = found.rule.limits[level]!
        const delay = charge.delays[level]!
        const over = delay - (charge.mayWait ? meter.maxWaitUs : 0)
        const late = over > blockedUs ? over : blockedUs
        const remaining = blockedUs > 0 ? 0 : charge.remaining[level]!
        if (tracksLoads && remaining < tally.least[level]!) tally.least[level] = remaining
        holds ||= meter.needsRelease
        if (late > 0 && enforced) {
          // nobody waits for what can never be: more places than there are
          if (!meter.needsRelease || found.rule.queueSize === 0 || charge.cost > count || blockedUs > 0)
            onlyPlacesMissing = false
          // a caller who is over the limit is blocked from now on, unless they are blocked already
          const isBlockedNow = over > 0 && counted && blockedUs === 0
          const retry = isBlockedNow ? Math.max(late, (found.rule.blockMs ?? 0) * 1000) : late
          if (binding === undefined || retry > retryUs) {
            binding = found
            retryUs = retry
            reason = blockedUs >= over ? 'blocked' : delay <= meter.maxWaitUs ? 'queue-full' : 'limit'
          }
        }
        // a bucket that holds more than its rate brings in a period is shown with the time in which it fills
        const isLarger = meter.most !== undefined && meter.most > count
        decisions.push({
          rule: found.rule.id,
          limit: isLarger ? meter.most! : count,
          periodMs: isLarger ? (periodMs * meter.most!) / count : periodMs,
          allowed: late <= 0,
          shadow: !enforced,
          remaining,
          resetAfterMs: charge.resets[level]! / 1000,
          retryAfterMs: late <= 0 ? 0 : late / 1000,
        })
      }
    }
    // a request that several filters judge is one call
    if (passes && options?.after === undefined) tallyPass(this.#watch.total, waitUs > 0, isShadowed, degraded)
    // whoever only lacks a place goes to stand in line
    if (!passes && counted && !(onlyPlacesMissing && binding)) tallyRefusal(plan, binding, this.#watch)
    const parts: PendingVerdictOptions = {
      allowed,
      rule: binding?.rule.id,
      reason,
      waitMs: allowed ? waitUs / 1000 : 0,
      retryAfterMs: retryUs / 1000,
      decisions,
      answer: binding?.rule.answer ?? this.#parts.answer,
      holds,
      receipts: !(allowed && counted)
        ? NOTHING
        : holds || waitUs > 0 || keepsReceipts
          ? this.#receipts(plan, now, answeredAt)
          : undefined,
      exhaustedRule: onlyPlacesMissing ? binding : undefined,
      call,
      now,
      resetsBefore: plan.resetsBefore,
    }
    plan.forget()
    return new PendingVerdict(parts, this.#settler)
  }

  /** What a call was charged here that passed at once: of shadow rules, only those that had room for it. */
  #receiptsOf({ call, now, resetsBefore, decisions }: PendingVerdictOptions): Receipt[] {
    const found: RuleState[] = []
    const full = new Set(decisions.filter(decision => !decision.allowed).map(({ rule }) => rule))
    const size = this.#finder.find(call, found, undefined)
    return found.slice(0, Math.max(0, size)).flatMap(counted => {
      if (full.has(counted.rule.id)) return []
      const key = counted.rule.key(call)
      const slot = counted.table.find(key)
      return [{ counted, key, cost: 1, slot, moment: now, passAt: now, resetsBefore, settles: counted.rule.settles }]
    })
  }

  /** Counts a refunded call as one that did not pass, and tells what its rules say now. */
  #refunded({ call, decisions }: PendingVerdictOptions): readonly Decision[] | Promise<readonly Decision[]> {
    const ids = [...new Set(decisions.map(({ rule }) => rule))]
    const shadowed = new Set(decisions.filter(({ allowed }) => !allowed).map(({ rule }) => rule))
    for (const { rule, tally } of this.rules) if (ids.includes(rule.id)) tally.undoPass(shadowed.has(rule.id))
    this.#watch.total.undoPass(shadowed.size > 0)
    const now = this.look(call, 0, this.#parts.now(), { rule: ids, only: true })
    return now instanceof Promise ? now.then(one => one.decisions) : now.decisions
  }

  #receipts({ size, charges, found, resetsBefore }: CallPlan, now: number, answeredAt = now): Receipt[] {
    const receipts: Receipt[] = []
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      const { key, cost, slot, wait, fits } = charge
      if (cost === 0 || !fits) continue
      const counted = found[i]!
      const { settles } = counted.rule
      const receipt = { counted, key, cost, slot, moment: now + wait, passAt: now + wait, resetsBefore, settles }
      if (!('countedBy' in charge)) receipts.push(receipt)
      else if (charge.countedBy === 'fleet') {
        receipts.push({ ...receipt, passAt: answeredAt + wait, refund: this.#refundOf(charge) })
      } else if (charge.countedBy === 'memory') {
        // a place that is held here may be held in the store by the time it is given back
        receipts.push(charge.counter.needsRelease ? { ...receipt, refund: this.#refundOf(charge) } : receipt)
      }
    }
    return receipts
  }

  #refundOf(charge: SharedCharge): (cost: number) => void {
    return cost => this.#parts.shared!.giveBack(charge, cost)
  }
}
