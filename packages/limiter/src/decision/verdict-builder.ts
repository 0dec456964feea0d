import type { Meter } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { isFunctionName } from '../dimensions/reading/given-functions.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Answer } from '../rules/rule.ts'
import { type Counters, tallyRefusalBy } from '../stats/counters.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { Reason } from '../verdict.ts'
import type { CallPlan } from './call-plan.ts'
import type { PlanOptions } from './check-options.ts'
import { type LevelAnswer, PendingVerdict, type VerdictOutcome } from './pending-verdict.ts'
import { endMatters } from './quick-pass.ts'
import type { ChargeReservations } from './receipt.ts'
import { type Receipt, receiptsOf } from './receipt.ts'
import type { RuleState } from './rule-state.ts'

export interface VerdictBuilderOptions {
  readonly rules: readonly RuleState[]
  readonly shared?: CompositeStore | undefined
  readonly answer: Answer
  /** The outcome of a call for which every rule has room at once. */
  readonly passed: VerdictOutcome
  readonly counters: Counters
  readonly reservations: ChargeReservations
}

/** The answer of the stores to the charges of a call: `taken` and `refused` are counted, `fits` and `full` are only looked up. */
export type StoreAnswer = 'taken' | 'refused' | 'fits' | 'full'

type PlannedCharge = CallPlan['charges'][number]

const NO_RECEIPTS: readonly Receipt[] = []

/** Makes the verdict of a call out of what the stores said of its charges, and counts it. One call at a time. */
export class VerdictBuilder {
  readonly #options: VerdictBuilderOptions
  /** True if the end of any call matters. */
  readonly #hasEndings: boolean
  readonly #hasCosts: boolean
  /** True if any rule counts by a function of the program, which may return another value later. */
  readonly #hasFunctions: boolean
  readonly #passed: VerdictOutcome
  /** The rule that refuses: of several, the one that takes longest to let the call pass. */
  #binding: RuleState | undefined
  #reason: Reason | undefined
  #retryUs = 0
  /** True if nothing but concurrency slots is missing, for which calls may wait. */
  #lacksOnlySlots = false

  constructor(options: VerdictBuilderOptions) {
    this.#options = options
    this.#hasEndings = options.rules.some(({ rule }) => endMatters(rule))
    this.#hasCosts = options.rules.some(({ rule }) => rule.cost !== undefined)
    this.#hasFunctions = options.rules.some(({ rule }) => rule.by.some(isFunctionName))
    this.#passed = options.passed
  }

  /**
   * Makes the verdict. `answeredAt` is when a shared store answered: it counts waits from when it decided, which was earlier. The
   * arguments are positional because an object of them would be allocated for every call.
   */
  build(
    plan: CallPlan,
    call: Call,
    options: PlanOptions | undefined,
    answer: StoreAnswer,
    now: number,
    answeredAt: number = now,
  ): PendingVerdict {
    const { size, charges, found, resetsBefore } = plan
    const allowed = answer === 'taken' || answer === 'fits'
    const counted = answer === 'taken' || answer === 'refused'
    const passes = counted && allowed
    let hasRoom = allowed && !this.#hasEndings && !plan.hasBlocks
    let levels: LevelAnswer | undefined
    for (let i = size - 1; i >= 0; i--) {
      const charge = charges[i]!
      // a call that this process refuses does not ask the shared store
      if (charge.delays.length === 0) continue
      if (!charge.fits || charge.wait > 0 || charge.kind === 'shared') hasRoom = false
      const state = found[i]!
      if (passes) state.tally.allowed++
      levels = this.#addLevels(state, charge, plan.hasBlocks ? plan.blockedUs(i) : 0, levels)
    }
    const outcome = hasRoom ? this.#passed : this.#weigh(plan, allowed, counted)
    if (counted && (allowed || !options?.defersRefusal)) this.#tallyCall(plan, options?.after !== undefined, outcome)
    const keeps = passes && this.#keepsReceipts(plan, options, outcome)
    const { shared, reservations } = this.#options
    const receipts = keeps ? receiptsOf(plan, now, answeredAt, shared, reservations) : passes ? undefined : NO_RECEIPTS
    return new PendingVerdict(outcome, call, now, resetsBefore, levels, receipts)
  }

  /** Puts what the levels of a rule say before what those of later rules do. */
  #addLevels(
    { rule, tally }: RuleState,
    charge: PlannedCharge,
    blockedUs: number,
    later: LevelAnswer | undefined,
  ): LevelAnswer | undefined {
    const meters = metersOf(rule, charge)
    const { tracksLoads } = this.#options.counters
    let levels = later
    for (let level = meters.length - 1; level >= 0; level--) {
      const meter = meters[level]!
      const remaining = blockedUs > 0 ? 0 : charge.remaining[level]!
      if (tracksLoads && remaining < tally.least[level]!) tally.least[level] = remaining
      const lateUs = lateUsOf(rule, charge, level, blockedUs)
      const resetUs = charge.resets[level]!
      levels = { rule, meter, remaining, resetUs, lateUs: lateUs > 0 ? lateUs : undefined, next: levels }
    }
    return levels
  }

  /** Works out the outcome of a call that some rule refuses, lets wait, only watches, or whose end matters. */
  #weigh(plan: CallPlan, allowed: boolean, counted: boolean): VerdictOutcome {
    const { size, charges, found } = plan
    this.#binding = undefined
    this.#reason = undefined
    this.#retryUs = 0
    this.#lacksOnlySlots = !allowed
    let waitUs = 0
    let holds = false
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      if (charge.delays.length === 0) continue
      const state = found[i]!
      if (charge.enforced && charge.wait > waitUs) waitUs = charge.wait
      if (this.#hasEndings && endMatters(state.rule)) holds = true
      if (counted && allowed) tallyPass(state, charge)
      if (charge.enforced) this.#weighLevels(state, charge, plan.blockedUs(i), counted ? plan.nextBlockUs(i) : 0)
    }
    const binding = this.#binding as RuleState | undefined
    return {
      allowed,
      rule: binding?.rule.id,
      reason: this.#reason,
      waitMs: allowed ? waitUs / 1000 : 0,
      retryAfterMs: this.#retryUs / 1000,
      answer: binding?.rule.answer ?? this.#options.answer,
      holds: allowed && holds,
      exhaustedRule: this.#lacksOnlySlots ? binding : undefined,
      settler: this.#passed.settler,
    }
  }

  #weighLevels(state: RuleState, charge: PlannedCharge, blockedUs: number, nextBlockUs: number): void {
    const { rule } = state
    const meters = metersOf(rule, charge)
    for (let level = 0; level < meters.length; level++) {
      const meter = meters[level]!
      const delay = charge.delays[level]!
      const lateUs = lateUsOf(rule, charge, level, blockedUs)
      if (lateUs <= 0) continue
      const over = delay - (charge.mayWait ? meter.maxWaitUs : 0)
      // a call that needs more slots than the rule has never gets them by waiting
      const waitsForSlots = meter.held !== undefined && rule.queueSize > 0 && charge.cost <= rule.limits[level]!.count
      if (!waitsForSlots || blockedUs > 0) this.#lacksOnlySlots = false
      // a caller over the limit is blocked from now on, unless they are blocked already
      const blockUs = over > 0 && blockedUs === 0 ? nextBlockUs : 0
      const reason =
        lateUs === blockedUs
          ? 'blocked'
          : delay <= meter.maxWaitUs
            ? 'queue-full'
            : meter.held?.learns
              ? 'overload'
              : 'limit'
      const isReplaced = blockUs > 0 && rule.blockClears && delay !== Number.POSITIVE_INFINITY
      this.#refuse(state, isReplaced || blockUs > lateUs ? blockUs : lateUs, reason)
    }
  }

  /** Notes that a rule refuses; of several, the one that takes longest to let the call pass binds. */
  #refuse(state: RuleState, retryUs: number, reason: Reason): void {
    if (this.#binding !== undefined && retryUs <= this.#retryUs) return
    this.#binding = state
    this.#retryUs = retryUs
    this.#reason = reason
  }

  /** True if what a call was charged cannot be read from the call again. */
  #keepsReceipts(plan: CallPlan, options: PlanOptions | undefined, { holds, waitMs }: VerdictOutcome): boolean {
    if (this.#hasFunctions || holds || waitMs > 0 || plan.keepsReceipts(options)) return true
    if (this.#hasCosts) for (let i = 0; i < plan.size; i++) if (plan.found[i]!.rule.cost !== undefined) return true
    return false
  }

  #tallyCall(plan: CallPlan, isRepeated: boolean, outcome: VerdictOutcome): void {
    const { counters } = this.#options
    const { total } = counters
    if (!outcome.allowed) {
      // a call that only lacks a slot waits in the queue, and is counted when that ends
      if (outcome.exhaustedRule === undefined) tallyRefusal(plan, this.#binding, counters)
      return
    }
    // a request that several filters decide is one call
    if (isRepeated) return
    total.allowed++
    if (outcome === this.#passed) return
    const { size, charges } = plan
    let isShadowed = false
    let isDecidedHere = false
    for (let i = 0; i < size; i++) {
      if (!charges[i]!.fits) isShadowed = true
      if (isDegraded(charges[i]!)) isDecidedHere = true
    }
    if (outcome.waitMs > 0) total.waited++
    if (isShadowed) total.shadowRefused++
    if (isDecidedHere) total.degradedAllowed++
  }
}

/** Returns the meters of a charge: those of one process's share of a limit may let calls wait for less long. */
function metersOf(rule: CompiledRule, charge: PlannedCharge): readonly Meter[] {
  return charge.kind === 'shared' && charge.countedBy === 'memory' ? charge.table.meters : rule.meters
}

/**
 * Returns by how much a level would keep the call longer than it may wait, or its caller is blocked; not above 0 if it passes. A
 * block that clears the count takes the place of the level's own delay.
 */
function lateUsOf(rule: CompiledRule, charge: PlannedCharge, level: number, blockedUs: number): number {
  const over = charge.delays[level]! - (charge.mayWait ? metersOf(rule, charge)[level]!.maxWaitUs : 0)
  if (blockedUs > 0 && rule.blockClears && over !== Number.POSITIVE_INFINITY) return blockedUs
  return over > blockedUs ? over : blockedUs
}

/** Counts for a rule what was special about a call that passed. */
function tallyPass({ tally, counter }: RuleState, charge: PlannedCharge): void {
  if (charge.wait > 0 && charge.enforced) tally.waited++
  if (!charge.fits) tally.shadowRefused++
  if (counter && isDegraded(charge)) tally.degradedAllowed++
}

/** Counts a call that was refused: for the rule that takes longest to let it pass. */
function tallyRefusal({ found, charges }: CallPlan, binding: RuleState | undefined, counters: Counters): void {
  const charge = binding && charges[found.indexOf(binding)]
  tallyRefusalBy(binding, charge?.key ?? '', counters, charge !== undefined && isDegraded(charge))
}

/** True if a charge to shared counts was decided without asking them. */
function isDegraded(charge: CallPlan['charges'][number]): boolean {
  if (charge.kind === 'local') return false
  const { countedBy, fits, delays } = charge
  // no store counts what `whenStoreDown: allow` or `refuse` decides; the deny cache names the moment at which a key has room
  return countedBy === 'memory' || (countedBy === 'none' && (fits || delays[0] === Number.POSITIVE_INFINITY))
}
