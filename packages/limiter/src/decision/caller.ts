import type { Call } from '../call.ts'
import { callOfKey } from '../dimensions/describe-key.ts'
import { DianaError } from '../errors.ts'
import { suggest } from '../rules/suggest.ts'
import type { RuleState } from './rule-state.ts'

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

/** The key under which a rule counts a caller. */
export function keyOf({ rule }: RuleState, who: Who): string {
  if (isCall(who)) return rule.key(who)
  return isListed(who) ? who.key : rule.key(callBy(rule, who))
}

/** A call that a rule counts under the caller's key. */
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

/** A call that has a value for each dimension of a rule. */
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
