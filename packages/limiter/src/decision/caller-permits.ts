import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import { type CreditStore, MOST_CREDIT } from '../stores/credits.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { OVERFLOW_SLOT, resetsSoFar } from '../stores/memory/table.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import { callOf, keyOf, type Who } from './blocklist.ts'
import { costBy } from './call-plan.ts'
import type { PlanOptions } from './check-options.ts'
import type { Decider } from './decider.ts'
import type { PendingVerdict } from './pending-verdict.ts'
import type { Receipt } from './receipt.ts'
import { planOf, type RuleState } from './rule-state.ts'

/*
 * A call that limits refuse is paid by credit if each of the rules that refuse it has callers with credit, and the caller has enough:
 *
 *   rules refuse   ->   credit is taken   ->   decided again, by those rules at no cost   ->   passes
 *                                                                                         \->  credit is given back
 *
 * Credit is taken before the call is decided again, so that no permit is used twice; other rules count the call as ever.
 */

/** The payment that one rule asks for a call. */
interface Payment {
  readonly state: RuleState
  readonly key: string
  readonly cost: number
}

export interface CreditContext {
  readonly decider: () => Decider
  readonly credits: CreditStore
  readonly now: () => number
}

type Later<Value> = Value | Promise<Value>

/** Does something with a value when it is there: at once if it is no promise. */
export function after<Value, Result>(value: Later<Value>, use: (value: Value) => Later<Result>): Later<Result> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** Decides and counts a call; if limits refuse it, by credit. */
export function takeOrPay(
  call: Call,
  cost: number,
  options: PlanOptions | undefined,
  context: CreditContext,
  paid: readonly Payment[] = [],
): Later<PendingVerdict> {
  const { decider, now, credits } = context
  const deciding = decider()
  const verdict = deciding.take(call, cost, now(), { ...options, paid: idsOf(paid), defersRefusal: true })
  return after(verdict, one => {
    if (one.allowed) return paid.length === 0 ? one : one.withReceipts(paid.map(each => receiptOf(each, one, context)))
    const refuse = (): PendingVerdict => {
      for (const payment of paid) giveBack(payment, credits)
      deciding.countRefusal(one, call, options)
      return one
    }
    const due = paymentsFor(one, call, cost, options, deciding, paid)
    if (due === undefined) return refuse()
    return after(payAll(due, credits), isPaid => {
      return isPaid ? takeOrPay(call, cost, options, context, [...paid, ...due]) : refuse()
    })
  })
}

/** Decides a call as `takeOrPay` would, and counts nothing. */
export function lookOrPay(
  call: Call,
  cost: number,
  options: PlanOptions | undefined,
  context: CreditContext,
): Later<PendingVerdict> {
  const { decider, now, credits } = context
  const deciding = decider()
  return after(deciding.look(call, cost, now(), options), one => {
    const due = one.allowed ? undefined : paymentsFor(one, call, Math.max(1, cost), options, deciding, [])
    if (due === undefined) return one
    const isCovered = due.map(({ state, key, cost }) => after(credits.left(state.rule.id, key), left => left >= cost))
    const lookAgain = (all: readonly boolean[]): Later<PendingVerdict> => {
      return all.every(Boolean) ? deciding.look(call, cost, now(), { ...options, paid: idsOf(due) }) : one
    }
    return isCovered.some(one => one instanceof Promise)
      ? Promise.all(isCovered).then(lookAgain, () => one)
      : lookAgain(isCovered as boolean[])
  })
}

/** Returns what credit would have to pay for a refused call; undefined if credit cannot make it pass. */
function paymentsFor(
  verdict: PendingVerdict,
  call: Call,
  cost: number,
  options: PlanOptions | undefined,
  decider: Decider,
  paid: readonly Payment[],
): readonly Payment[] | undefined {
  if (verdict.reason !== 'limit') return undefined
  const refusing = new Set(verdict.decisions.filter(one => !one.allowed && !one.shadow).map(({ rule }) => rule))
  const due: Payment[] = []
  for (const state of decider.meets(call, options)) {
    const { rule } = state
    if (!refusing.has(rule.id)) continue
    // a limit of 0 suspends the caller
    const isPayable = rule.credit && rule.limits[0]!.count > 0 && !paid.some(one => one.state.rule.id === rule.id)
    if (!isPayable) return undefined
    due.push({ state, key: rule.key(call), cost: costBy(rule, call, cost) })
  }
  return due.length === 0 ? undefined : due
}

/** Takes all payments or none. */
function payAll(due: readonly Payment[], credits: CreditStore, from = 0): Later<boolean> {
  const payment = due[from]
  if (payment === undefined) return true
  return after(credits.take(payment.state.rule.id, payment.key, payment.cost), isTaken => {
    if (!isTaken) return false
    return after(payAll(due, credits, from + 1), areTaken => {
      if (!areTaken) giveBack(payment, credits)
      return areTaken
    })
  })
}

function giveBack({ state, key, cost }: Payment, credits: CreditStore): void {
  void Promise.resolve(credits.add(state.rule.id, key, cost)).catch(() => {})
}

/**
 * Makes the receipt of a payment: it is refunded as credit, and what a call has cost beyond it is paid by credit, as far as there
 * is any.
 */
function receiptOf({ state, key, cost }: Payment, verdict: PendingVerdict, { credits }: CreditContext): Receipt {
  const moment = verdict.decidedAt
  const place = { slot: state.table.find(key), moment, passAt: moment, resetsBefore: resetsSoFar() }
  return {
    ...{ state, key, cost, settles: state.rule.settles, ...place },
    refund: permits => giveBack({ state, key, cost: permits }, credits),
    chargeMore: permits => credits.spend(state.rule.id, key, permits),
  }
}

function idsOf(payments: readonly Payment[]): ReadonlySet<string> | undefined {
  return payments.length === 0 ? undefined : new Set(payments.map(({ state }) => state.rule.id))
}

/** Gives a caller permits beside the limit; returns how many they have then, and throws if the rule or the number does not allow it. */
export async function grantCredit(
  { rule }: RuleState,
  key: string,
  permits: number,
  credits: CreditStore,
): Promise<number> {
  const fault = (message: string): DianaError => new DianaError('BAD_CALL', `rule "${rule.id}" ${message}`)
  if (!rule.credit) throw fault('has no credit: add credit: true to it')
  if (!Number.isSafeInteger(permits) || permits < 1) {
    throw fault(`takes a whole number of permits, 1 or more, not ${String(permits)}`)
  }
  const left = await credits.add(rule.id, key, permits)
  if (left === undefined) throw fault(`has no room for more credit: a caller may have ${MOST_CREDIT}`)
  return left
}

/** Reads the credit of a call's caller, by rule; without the rules that have none, or whose store does not answer. */
export async function creditsOf(
  call: Call,
  met: readonly RuleState[],
  credits: CreditStore,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>()
  for (const { rule } of met) {
    if (!rule.credit) continue
    const left = await Promise.resolve(credits.left(rule.id, rule.key(call))).catch(() => undefined)
    if (left !== undefined) found.set(rule.id, left)
  }
  return found
}

/*
 * What a caller has used is set by forgetting it, and by charging the new number as of now. Both are moves that every store has. In
 * this process no call comes between the two; in a shared store one may, and is then not counted.
 */

export interface SetCountsContext {
  readonly store: MemoryStore
  readonly shared: CompositeStore
  readonly now: () => number
}

/** Sets how much of their limit a caller of a rule has used as of now; returns how much is left. */
export async function setUsed(state: RuleState, who: Who, used: number, context: SetCountsContext): Promise<number> {
  const { limited, key } = countedFor(state, who)
  assertPermits(state, used, 0)
  return await charge(limited, key, Math.min(used, limited.rule.mostAtOnce), context)
}

/** Refunds permits that a caller has used; returns how much is left. */
export async function rewardUsed(
  state: RuleState,
  who: Who,
  permits: number,
  context: SetCountsContext,
): Promise<number> {
  const { limited, key } = countedFor(state, who)
  assertPermits(state, permits, 1)
  const left = await remaining(limited, key, context)
  const used = limited.rule.mostAtOnce - left
  return used === 0 ? left : await charge(limited, key, Math.max(0, used - permits), context)
}

/** Returns the limit of a caller, which is theirs by a plan or from outside the rules, and their key. */
function countedFor(state: RuleState, who: Who): { limited: RuleState; key: string } {
  const { rule } = state
  if (rule.limits.length > 1) {
    throw fault(rule.id, 'has several limits, which count one call apart: put each into a rule of its own')
  }
  if (rule.meters.some(meter => meter.held !== undefined)) {
    throw fault(rule.id, `counts calls under way, and ${rule.algorithm} frees their places when they end`)
  }
  const call: Call | undefined = state.plans === undefined ? undefined : callOf(state, who)
  return { limited: call === undefined ? state : planOf(state, call), key: keyOf(state, who) }
}

async function remaining({ table, counter, rule }: RuleState, key: string, context: SetCountsContext): Promise<number> {
  const { store, shared, now } = context
  if (counter !== undefined) {
    const asked = { ...sharedCharge(counter, table, rule.whenStoreDown), key, mayWait: false }
    await shared.look([asked], now())
    return Math.min(rule.mostAtOnce, asked.remaining[0]!)
  }
  const asked = { ...localCharge(table), key, mayWait: false }
  store.look([asked], 1, now())
  return Math.min(rule.mostAtOnce, asked.remaining[0]!)
}

async function charge(limited: RuleState, key: string, cost: number, context: SetCountsContext): Promise<number> {
  const { table, counter, rule } = limited
  const { store, shared, now } = context
  if (counter !== undefined) {
    table.reset(key)
    await shared.reset(counter, key)
    const taken = { ...sharedCharge(counter, table, rule.whenStoreDown), key, cost, mayWait: false }
    if (cost > 0) await shared.take([taken], now())
    return await remaining(limited, key, context)
  }
  if (key !== '' && table.find(key) === OVERFLOW_SLOT && store.keys >= store.maxKeys) {
    throw fault(rule.id, 'cannot count the caller apart, since the memory store is full: raise maxKeys')
  }
  table.reset(key)
  if (cost > 0) store.take([{ ...localCharge(table), key, cost, mayWait: false }], 1, now())
  return await remaining(limited, key, context)
}

function assertPermits({ rule: { id } }: RuleState, permits: number, least: number): void {
  if (Number.isSafeInteger(permits) && permits >= least) return
  throw fault(id, `takes a whole number of ${least} or more, not ${String(permits)}`)
}

function fault(rule: string, what: string): DianaError {
  return new DianaError('BAD_CALL', `rule "${rule}" ${what}`)
}
