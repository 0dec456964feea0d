import type { Call } from '../call.ts'
import { parseDuration } from '../common/duration.ts'
import type { CompositeStore } from '../distributed/composite-store.ts'
import { DianaError } from '../errors.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import type { BlockCounters, RuleState } from './pending-verdict.ts'

/** A caller whom a rule refuses for a time. */
export interface BlockedCaller {
  readonly rule: string
  /** What the rule counts the caller under; `describeKey` reads it. */
  readonly key: string
  readonly leftMs: number
}

/** A caller: by a call of theirs, by their value of the rule's one dimension, or as they were listed. */
export type Who = Call | string | Pick<BlockedCaller, 'key'>

/** So many callers of a rule are listed at most. */
const MOST_LISTED = 10_000

export interface GateKeeping {
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
}

/** Blocks somebody by a rule, for its own time unless told; throws where it makes no sense. */
export async function blockBy(
  counted: RuleState,
  who: Who,
  time: string | number | undefined,
  keeping: GateKeeping,
): Promise<void> {
  const { id, blockMs } = counted.rule
  const gate = requireGate(counted)
  const ms = typeof time === 'string' ? parseDuration(time) : (time ?? blockMs)
  if (ms === undefined || !Number.isSafeInteger(ms) || ms < 1) {
    throw new DianaError('BAD_CALL', `rule "${id}": block for how long? Say 10m, or a whole number of milliseconds`)
  }
  if (await blockCaller(gate, keyOf(counted, who), ms, keeping)) return
  const message = `rule "${id}": as many keys are live as may be, so nobody is blocked: raise maxKeys`
  throw new DianaError('BAD_CALL', message)
}

/**
 * Lets a blocked caller in again, and forgets what the rule has counted for them: the next call would be over the limit and
 * block them anew. Places that calls under way hold are not forgotten.
 */
export async function unblockBy(counted: RuleState, who: Who, shared?: CompositeStore): Promise<void> {
  const gate = requireGate(counted)
  const key = keyOf(counted, who)
  const isHeld = counted.rule.meters.some(meter => meter.needsRelease)
  for (const { table, counter } of isHeld ? [gate] : [counted, gate]) {
    table.reset(key)
    if (counter) await shared?.reset(counter, key)
  }
}

/** Those whom a rule blocks now: whoever it blocked itself, and those who were blocked by hand. */
export async function blockedBy(counted: RuleState, { shared, now }: GateKeeping): Promise<BlockedCaller[]> {
  const { rule, gate } = counted
  if (!gate) return []
  const { table, counter } = gate
  if (!counter || !shared) {
    const at = now()
    const blocked = [...table.entries()].flatMap(([key, slot]) => {
      return blockedFor(rule.id, key, table.meters[0]!.delay(table.state(slot), table.base(slot), at, 0))
    })
    return blocked.slice(0, MOST_LISTED)
  }
  const keys = await shared.keys(counter, table, MOST_LISTED)
  const charges = keys.map(key => ({ ...sharedCharge(counter, table, 'local'), key, mayWait: false }))
  // one by one, since each may be in another slot of a Cluster
  await Promise.all(charges.map(charge => shared.look([charge], now())))
  return charges.flatMap(({ key, delays }) => blockedFor(rule.id, key, delays[0] ?? 0))
}

/** For how long a rule still blocks the caller of a call; 0 if it does not. */
export async function blockLeftMs({ rule, gate }: RuleState, call: Call, keeping: GateKeeping): Promise<number> {
  if (!gate) return 0
  const { store, shared, now } = keeping
  const { table, counter } = gate
  const asked = { key: rule.key(call), mayWait: false }
  if (counter && shared) {
    const charge = { ...sharedCharge(counter, table, 'local'), ...asked }
    await shared.look([charge], now())
    return (charge.delays[0] ?? 0) / 1000
  }
  const charge = { ...localCharge(table), ...asked }
  store.look([charge], 1, now())
  return charge.delays[0]! / 1000
}

function blockedFor(rule: string, key: string, leftUs: number): BlockedCaller[] {
  return leftUs > 0 ? [{ rule, key, leftMs: leftUs / 1000 }] : []
}

/**
 * Blocks a caller, at the cost that `blockMeter` reads: here, or for the whole fleet if the rule is counted there. Where as many keys are live as may
 * be, nobody is added: a stranger's block would be every stranger's. Says whether the caller is blocked now.
 */
export function blockCaller(
  { table, counter }: BlockCounters,
  key: string,
  cost: number,
  { store, shared, now }: GateKeeping,
): boolean | Promise<boolean> {
  if (counter && shared) {
    return shared.take([{ ...sharedCharge(counter, table, 'local'), key, cost, mayWait: false }], now())
  }
  if (key !== '' && table.find(key) === OVERFLOW_SLOT && store.keys >= store.maxKeys) return false
  return store.take([{ ...localCharge(table), key, cost, mayWait: false }], 1, now())
}

function requireGate({ rule: { id }, gate }: RuleState): BlockCounters {
  if (gate) return gate
  const message = `rule "${id}" blocks nobody: give it block: manual, or a time such as block: 10m`
  throw new DianaError('BAD_CALL', message)
}

/** What a rule counts a caller under. */
export function keyOf({ rule }: RuleState, who: Who): string {
  if (typeof who !== 'string') return 'key' in who ? who.key : rule.key(who)
  const [part, ...more] = rule.keyParts
  if (part === undefined || more.length > 0) {
    throw new DianaError('BAD_CALL', `rule "${rule.id}" does not count by one dimension: say whom by a call`)
  }
  const [name, , field] = part
  const call = { method: '', path: '/' }
  // a field of the call is normalized as it is read: an address has several spellings
  return rule.key(field === undefined ? { ...call, attributes: { [name]: who } } : { ...call, [field]: who })
}
