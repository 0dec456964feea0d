import type { Meter } from '../algorithms/algorithm.ts'
import { isBlock } from './catch-up.ts'
import type { FleetCounter, FleetRule } from './store.ts'

/*
 * Keys look like `diana:login:account{ann}`: the rule, its dimensions and the caller. A rule with other dimensions starts from zero, and
 * one with another limit continues. The caller is in braces, so that on a Cluster all rules that count the same caller are decided
 * by one node. What could end a segment too early is escaped: no two rules or callers share a key.
 */

/** A counter whose callers have ledgers. */
export interface LedgerNames extends FleetCounter {
  /** The key of a caller's ledger. */
  ledgerKeyOf(key: string): string
}

/** The name of a rule in its keys: counters with one tag share their counts. */
export function tagOf({ id, by = [], meters }: Pick<FleetRule, 'id' | 'by' | 'meters'>): string {
  const kind = kindOf(meters)
  return [escapePart(id), by.map(escapePart).join(), ...(kind === 'rate' ? [] : [kind])].join(':')
}

/** Returns the function that names the ledger of a caller. */
export function ledgerKeys(prefix: string, tag: string): (key: string) => string {
  const head = `${prefix}:${tag}{`
  return key => `${head}${escapeCaller(key)}}`
}

/** The caller of a ledger's key; undefined if it is not one of this rule. */
export function callerOf(counter: LedgerNames, ledgerKey: string): string | undefined {
  const empty = counter.ledgerKeyOf('')
  const head = empty.slice(0, empty.indexOf(EMPTY, empty.lastIndexOf('{')))
  if (!ledgerKey.startsWith(head) || !ledgerKey.endsWith('}')) return undefined
  const caller = ledgerKey.slice(head.length, -1)
  if (caller === EMPTY) return ''
  return caller.replace(/%([0-9A-F]{2,4});/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** Returns the kind of a count: calls over time, calls under way, or the moment until which a caller is refused. */
function kindOf(meters: readonly Meter[]): 'rate' | 'held' | 'block' {
  if (meters.some(meter => meter.held !== undefined)) return 'held'
  return meters.some(isBlock) ? 'block' : 'rate'
}

/** Braces would choose a slot; and UTF-8 has one spelling for all lone surrogates. */
const UNSAFE = /[%{}:,\p{Surrogate}]/gu

/** Text that cannot be mistaken for the end of a segment of a key. */
export function escapePart(text: string): string {
  return text.replace(UNSAFE, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** The hash tag of a rule that counts all callers together: empty braces would not choose a slot. */
const EMPTY = '*'
const MAY_BE_UNSAFE = /[%{}*\ud800-\udfff]/
const UNSAFE_IN_CALLER = /[%{}*\p{Surrogate}]/gu

function escapeCaller(key: string): string {
  if (key === '') return EMPTY
  if (!MAY_BE_UNSAFE.test(key)) return key
  return key.replace(UNSAFE_IN_CALLER, character => `%${character.charCodeAt(0).toString(16).toUpperCase()};`)
}
