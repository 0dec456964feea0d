import type { Call } from '../call.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { LocalCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import type { SharedCharge } from '../stores/shared-charge.ts'
import { CallPlan } from './call-plan.ts'
import type { NamedRules, PlanOptions } from './check-options.ts'
import type { PendingVerdict } from './pending-verdict.ts'
import type { RuleSelector } from './rule-selector.ts'
import type { VerdictBuilder } from './verdict-builder.ts'

/** One of several calls that are decided together. Of cost 0, it is only asked whether it would pass. */
export interface JointCall extends NamedRules {
  readonly call: Call
  readonly cost: number
  /** True if a refusal is not counted, and blocks no caller: the call is decided again later. */
  readonly defersRefusal?: boolean | undefined
}

/** The parts of a decider that a joint decision uses. */
export interface JointParts {
  readonly selector: RuleSelector
  readonly verdicts: VerdictBuilder
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
  /** Returns the verdict on a call that a list of callers has just refused. */
  deny(call: Call, now: number): PendingVerdict
  refundLocal(plan: CallPlan, now: number): void
  block(plan: CallPlan, verdict: PendingVerdict): void
}

type AnyCharge = LocalCharge | SharedCharge

interface JointPlan {
  readonly asked: JointCall
  readonly plan: CallPlan
  readonly denial: PendingVerdict | undefined
}

/** The charges of several plans as one list; a key that two of them charge is charged once. */
interface JoinedCharges {
  readonly local: LocalCharge[]
  readonly shared: SharedCharge[]
  /** Charges that are left out, each with the one that stands for it. */
  readonly twins: (readonly [twin: AnyCharge, of: AnyCharge])[]
}

/** The options of all calls of a request but the first, which alone is counted as a call; the others are like further filters on it. */
const REPEATED: PlanOptions = { after: [] }

/**
 * Decides several calls at once: all of them are counted, or, if one is refused, none. A rule that several of them meet with the
 * same key is charged once, by the highest of their costs. No call waits.
 */
export function decideTogether(
  calls: readonly JointCall[],
  now: number,
  parts: JointParts,
): PendingVerdict[] | Promise<PendingVerdict[]> {
  const plans = calls.map(asked => planOf(asked, now, parts))
  const looked = joinCharges(plans.filter(({ asked }) => asked.cost === 0))
  const taken = joinCharges(plans.filter(({ asked }) => asked.cost > 0))
  const isDenied = plans.some(({ denial }) => denial !== undefined)
  if (looked.shared.length === 0 && taken.shared.length === 0) {
    const mayPass = parts.store.look(looked.local, looked.local.length, now) && !isDenied
    const allowed = mayPass && parts.store.take(taken.local, taken.local.length, now)
    if (!mayPass) parts.store.look(taken.local, taken.local.length, now)
    return verdictsOf(plans, [looked, taken], allowed, now, parts)
  }
  return decideShared(plans, looked, taken, now, parts)
}

async function decideShared(
  plans: readonly JointPlan[],
  looked: JoinedCharges,
  taken: JoinedCharges,
  now: number,
  parts: JointParts,
): Promise<PendingVerdict[]> {
  const { store } = parts
  const shared = parts.shared!
  let mayPass = store.look(looked.local, looked.local.length, now)
  if (looked.shared.length > 0 && !(await shared.look(looked.shared, now))) mayPass = false
  if (plans.some(({ denial }) => denial !== undefined)) mayPass = false
  let allowed = mayPass
  if (mayPass) allowed = await takeShared(plans, taken, now, parts)
  else {
    store.look(taken.local, taken.local.length, now)
    if (taken.shared.length > 0) await shared.look(taken.shared, now)
  }
  return verdictsOf(plans, [looked, taken], allowed, now, parts)
}

/** As for one call: what this process counts is taken first, and refunded if the shared store refuses. */
async function takeShared(
  plans: readonly JointPlan[],
  taken: JoinedCharges,
  now: number,
  parts: JointParts,
): Promise<boolean> {
  if (!parts.store.take(taken.local, taken.local.length, now)) return false
  if (taken.shared.length === 0) return true
  const allowed = await parts.shared!.take(taken.shared, now)
  for (const { plan, asked } of plans) {
    if (asked.cost === 0) continue
    if (!allowed) parts.refundLocal(plan, now)
  }
  return allowed
}

function planOf(asked: JointCall, now: number, { selector, deny }: JointParts): JointPlan {
  const plan = new CallPlan()
  plan.prepare(asked.call, Math.max(1, asked.cost), selector.find(asked.call, plan.found, asked))
  // the selector knows who denied the call until it is asked about the next one
  const denial = plan.isDenied ? deny(asked.call, now) : undefined
  for (let i = 0; i < plan.size; i++) {
    const charge = plan.charges[i]!
    charge.mayWait = false
    // it is never settled: what is charged is final
    charge.holdUs = 0
    charge.reservation = 0
  }
  plan.isReserved = false
  return { asked, plan, denial }
}

function joinCharges(plans: readonly JointPlan[]): JoinedCharges {
  const joined: JoinedCharges = { local: [], shared: [], twins: [] }
  for (const { plan } of plans) {
    for (const charge of plan.local.slice(0, plan.locals)) join(charge, joined.local, joined)
    for (const charge of plan.shared) join(charge, joined.shared, joined)
  }
  return joined
}

function join<Kind extends AnyCharge>(charge: Kind, list: Kind[], { twins }: JoinedCharges): void {
  const same = list.find(one => one.table === charge.table && one.key === charge.key)
  if (same === undefined) {
    list.push(charge)
    return
  }
  same.cost = Math.max(same.cost, charge.cost)
  // nothing is refunded for it
  charge.cost = 0
  twins.push([charge, same])
}

function verdictsOf(
  plans: readonly JointPlan[],
  joined: readonly JoinedCharges[],
  allowed: boolean,
  now: number,
  parts: JointParts,
): PendingVerdict[] {
  for (const { twins } of joined) for (const [twin, of] of twins) copyAnswer(of, twin)
  let isCounted = false
  return plans.map(({ asked, plan, denial }) => {
    if (denial !== undefined) return denial
    const passes = allowed || fits(plan)
    const isFirst = !isCounted
    // calls that would have passed are counted only if all pass, and one refusal of the request is enough
    const counts = asked.cost > 0 && (allowed || (!passes && isFirst && asked.defersRefusal !== true))
    if (counts) isCounted = true
    const options = isFirst ? { cost: asked.cost } : REPEATED
    const [pass, refusal] = counts ? (['taken', 'refused'] as const) : (['fits', 'full'] as const)
    const verdict = parts.verdicts.build(plan, asked.call, options, passes ? pass : refusal, now, parts.now())
    if (counts && plan.hasBlocks && !passes) parts.block(plan, verdict)
    return verdict
  })
}

/** True if no rule of a call refuses it. */
function fits(plan: CallPlan): boolean {
  for (let i = 0; i < plan.size; i++) {
    const { delays, fits, enforced } = plan.charges[i]!
    if (enforced && delays.length > 0 && (!fits || plan.blockedUs(i) > 0)) return false
  }
  return true
}

function copyAnswer(from: AnyCharge, to: AnyCharge): void {
  to.delays.splice(0, to.delays.length, ...from.delays)
  to.remaining.splice(0, to.remaining.length, ...from.remaining)
  to.resets.splice(0, to.resets.length, ...from.resets)
  to.wait = from.wait
  to.fits = from.fits
  to.slot = from.slot
  if (to.kind === 'shared' && from.kind === 'shared') to.countedBy = from.countedBy
}
