import type { Call } from '../call.ts'
import { FOREVER, FOREVER_MS, parseDuration } from '../common/duration.ts'
import { callOfKey } from '../dimensions/describe-key.ts'
import { DianaError } from '../errors.ts'
import { suggest } from '../rules/suggest.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import type { BlockCounters, RuleState } from './rule-state.ts'

/** The number of callers of a rule that are listed at most. */
const MAX_LISTED = 10_000

export interface BlocklistContext {
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
}

/** Blocks a caller by a rule, for the rule's own time unless given; throws if the rule or the time does not allow it. */
export async function blockBy(
  state: RuleState,
  who: Who,
  time: string | number | undefined,
  context: BlocklistContext,
): Promise<void> {
  const { id, blockMs } = state.rule
  const blocks = requireBlocks(state)
  const given = time === FOREVER ? FOREVER_MS : typeof time === 'string' ? parseDuration(time) : (time ?? blockMs)
  const ms = given === undefined ? undefined : Math.min(given, FOREVER_MS)
  if (ms === undefined || !Number.isSafeInteger(ms) || ms < 1) {
    throw new DianaError(
      'BAD_CALL',
      `rule "${id}": the time of a block must be a duration such as 10m, a whole number of milliseconds, or forever`,
    )
  }
  const key = keyOf(state, who)
  if (await blockCaller(blocks, key, ms, context)) {
    if (state.rule.blockClears) await clearCaller(state, key, context.shared)
    return
  }
  const message = `rule "${id}": the memory store is full, so the caller is not blocked: raise maxKeys`
  throw new DianaError('BAD_CALL', message)
}

/**
 * Ends a block, and forgets what the rule has counted for the caller: the next call would be over the limit and block them
 * again. Concurrency slots of calls that are running are not forgotten.
 */
export async function unblockBy(state: RuleState, who: Who, shared?: CompositeStore): Promise<void> {
  const blocks = requireBlocks(state)
  const key = keyOf(state, who)
  const isHeld = state.rule.meters.some(meter => meter.held !== undefined)
  for (const counted of isHeld ? [blocks] : [state, blocks]) await clearCaller(counted, key, shared)
}

/** Forgets what is counted for a caller: in this process at once, in the shared store when the promise resolves. */
export function clearCaller(
  { table, counter }: BlockCounters,
  key: string,
  shared?: CompositeStore,
): Promise<void> | undefined {
  table.reset(key)
  return counter && shared?.reset(counter, key)
}

/** Returns the callers that a rule blocks now, by itself or by `block`. */
export async function blockedBy(state: RuleState, { shared, now }: BlocklistContext): Promise<BlockedCaller[]> {
  const { rule, blocks } = state
  if (!blocks) return []
  const { table, counter } = blocks
  if (!counter || !shared) {
    const at = now()
    const blocked = [...table.entries()].flatMap(([key, slot]) => {
      return blockedFor(rule.id, key, table.meters[0]!.delay(table.state(slot), table.base(slot), at, 0))
    })
    return blocked.slice(0, MAX_LISTED)
  }
  const keys = await shared.keys(counter, table, MAX_LISTED)
  const charges = keys.map(key => ({ ...sharedCharge(counter, table, 'local'), key, mayWait: false }))
  // one by one, since each may be in another slot of a Cluster
  await Promise.all(charges.map(charge => shared.look([charge], now())))
  return charges.flatMap(({ key, delays }) => blockedFor(rule.id, key, delays[0] ?? 0))
}

/** Returns for how long a rule still blocks the caller of a call; 0 if it does not. */
export async function blockLeftMs({ rule, blocks }: RuleState, call: Call, context: BlocklistContext): Promise<number> {
  if (!blocks) return 0
  const { store, shared, now } = context
  const { table, counter } = blocks
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
 * Blocks a caller, at the cost that `blockMeter` reads: in this process, or in the shared store if the rule is counted there.
 * If the memory store is full, no caller is added: new keys share one slot, and all of them would be blocked. Returns
 * whether the caller is blocked now.
 */
export function blockCaller(
  { table, counter }: BlockCounters,
  key: string,
  cost: number,
  { store, shared, now }: BlocklistContext,
): boolean | Promise<boolean> {
  if (counter && shared) {
    return shared.take([{ ...sharedCharge(counter, table, 'local'), key, cost, mayWait: false }], now())
  }
  if (key !== '' && table.find(key) === OVERFLOW_SLOT && store.keys >= store.maxKeys) return false
  return store.take([{ ...localCharge(table), key, cost, mayWait: false }], 1, now())
}

function requireBlocks({ rule: { id }, blocks }: RuleState): BlockCounters {
  if (blocks) return blocks
  const message = `rule "${id}" does not block callers: give it block: manual, or a time such as block: 10m`
  throw new DianaError('BAD_CALL', message)
}

/** A caller that a rule refuses for a time. */
export interface BlockedCaller {
  readonly rule: string
  /** The key under which the rule counts the caller; `describeKey` reads it. */
  readonly key: string
  readonly leftMs: number
}

/**
 * A caller by plain values of the dimensions that a rule counts by: `'ann'` for one dimension, `['ann', '203.0.113.9']` in their
 * order, or `{ account: 'ann', ip: '203.0.113.9' }` for several; `[]` for a rule that counts all calls together.
 */
export type PlainKey = string | number | readonly (string | number)[] | Readonly<Record<string, string | number>>

/** A caller of a rule: a call of theirs, plain values, or the key under which `blocks` lists them. */
export type Who = Call | PlainKey | Pick<BlockedCaller, 'key'>

/** Returns the key under which a rule counts a caller. */
export function keyOf({ rule }: RuleState, who: Who): string {
  if (isCall(who)) return rule.key(who)
  return isListed(who) ? who.key : rule.key(callBy(rule, who))
}

/** Returns a call that a rule counts under the caller's key. */
export function callOf({ rule }: RuleState, who: Who): Call {
  if (isCall(who)) return who
  const call = isListed(who) ? callOfKey(who.key, rule.by) : callBy(rule, who)
  if (call) return call
  throw new DianaError('BAD_CALL', `rule "${rule.id}": this key is a digest of a long value; give a call of the caller`)
}

export function isCall(who: Who): who is Call {
  return isRecord(who) && 'path' in who
}

function isListed(who: Exclude<Who, Call>): who is Pick<BlockedCaller, 'key'> {
  return isRecord(who) && typeof who.key === 'string'
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a call that has a value for each dimension of a rule. */
function callBy(rule: RuleState['rule'], who: PlainKey): Call {
  const call: Record<string, unknown> = { method: '', path: '/' }
  const attributes: Record<string, string> = {}
  for (const [at, value] of valuesOf(rule, who).entries()) {
    const [name, , field] = rule.keyParts[at]!
    // a field of the call is normalized when it is read: an address has several spellings and one key
    if (field === undefined) attributes[name] = value
    else call[field] = value
  }
  return { ...call, attributes } as unknown as Call
}

function valuesOf({ id, keyParts }: RuleState['rule'], who: PlainKey): string[] {
  const names = keyParts.map(([name]) => name)
  if (isRecord(who)) {
    const unknown = Object.keys(who).find(name => !names.includes(name))
    if (unknown !== undefined) {
      const meant = suggest(unknown, names)
      throw fault(`rule "${id}" does not count by ${unknown}; ${meant ? `did you mean ${meant}?` : counts(names)}`)
    }
  }
  const values = isRecord(who) ? names.map(name => who[name]) : Array.isArray(who) ? who : [who]
  if (values.length === names.length && values.every(isPlainValue)) return values.map(String)
  throw fault(`rule "${id}" ${counts(names)}`)
}

function isPlainValue(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || Number.isFinite(value)
}

function counts(names: readonly string[]): string {
  const example = names.length === 0 ? '[]' : `{ ${names.map(name => `'${name}': …`).join(', ')} }`
  const by = names.length === 0 ? 'all calls together' : `by ${names.join(' and ')}`
  return `counts ${by}: give a text or a number for each, as in ${example}, or give a call of the caller`
}

function fault(message: string): DianaError {
  return new DianaError('BAD_CALL', message)
}
