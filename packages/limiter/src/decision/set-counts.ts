import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import { callOf, keyOf, type Who } from './blocklist.ts'
import { planOf, type RuleState } from './rule-state.ts'

/*
 * What a caller has used is set by forgetting it, and by charging the new number as of now. Both are moves that every store has. In
 * this process no call comes between the two; in a shared store one may, and is then not counted.
 */

export interface SetCountsContext {
  readonly store: MemoryStore
  readonly shared: CompositeStore
  readonly now: () => number
}

/** Makes a caller of a rule have used so much of their limit, as of now; returns how much is left. */
export async function setUsed(state: RuleState, who: Who, used: number, context: SetCountsContext): Promise<number> {
  const { limited, key } = countedFor(state, who)
  assertPermits(state, used, 0)
  return await charge(limited, key, Math.min(used, limited.rule.mostAtOnce), context)
}

/** Gives a caller back so much of what they have used; returns how much is left. */
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
  if (rule.meters.some(meter => meter.needsRelease)) {
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
