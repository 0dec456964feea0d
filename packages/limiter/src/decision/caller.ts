import type { Call } from '../call.ts'
import { callOfKey } from '../dimensions/describe-key.ts'
import { DianaError } from '../errors.ts'
import type { RuleState } from './rule-state.ts'

/** A caller that a rule refuses for a time. */
export interface BlockedCaller {
  readonly rule: string
  /** The key under which the rule counts the caller; `describeKey` reads it. */
  readonly key: string
  readonly leftMs: number
}

/**
 * A caller of a rule: a call of theirs, their value of the one dimension that the rule counts by (`'ann'`, `'203.0.113.9'`),
 * or the key under which `blocks` lists them.
 */
export type Who = Call | string | Pick<BlockedCaller, 'key'>

/** The key under which a rule counts a caller. */
export function keyOf({ rule }: RuleState, who: Who): string {
  if (isCall(who)) return rule.key(who)
  return typeof who === 'string' ? rule.key(callBy(rule, who)) : who.key
}

/** A call that a rule counts under the caller's key. */
export function callOf({ rule }: RuleState, who: Who): Call {
  if (isCall(who)) return who
  const call = typeof who === 'string' ? callBy(rule, who) : callOfKey(who.key, rule.by)
  if (call) return call
  throw new DianaError('BAD_CALL', `rule "${rule.id}": this key is a digest of a long value; give a call of the caller`)
}

export function isCall(who: Who): who is Call {
  return typeof who === 'object' && who !== null && !('key' in who)
}

function callBy({ id, keyParts }: RuleState['rule'], value: string): Call {
  const [part, ...more] = keyParts
  if (part === undefined || more.length > 0) {
    throw new DianaError('BAD_CALL', `rule "${id}" does not count by one dimension: give a call of the caller`)
  }
  const [name, , field] = part
  const call = { method: '', path: '/' }
  // a field of the call is normalized when it is read: an address has several spellings and one key
  return field === undefined ? { ...call, attributes: { [name]: value } } : { ...call, [field]: value }
}
