import { createHash } from 'node:crypto'
import type { Meter } from '../../algorithms/algorithm.ts'
import { DianaError } from '../../errors.ts'
import { isBlock } from '../catch-up.ts'
import { leaseTermsOf } from '../leases/lease-terms.ts'
import { canContinue } from '../memory/limit-family.ts'
import { type FleetCharge, type FleetCounter, type FleetRule, fleetCharge } from '../store.ts'

/** Names how counts are stored: another one whenever processes with and without a change would not find each other's counts. */
export const FORMAT = 'caller-keys'

/** The concurrency slots of a process that renews nothing for so long are released. */
export const LEASE_MS = 5000

/** A rule as the engine reads it. The engine keeps descriptions by their ids, so that requests carry only these. */
export interface RuleDescription {
  readonly id: number
  readonly json: string
}

/** What is counted in Redis for one rule. */
export interface RedisCounter extends FleetCounter {
  /** The description of the rule; `clock` is that of Redis as far as it is known, in microseconds. */
  description(clock: () => number): RuleDescription
  /** The name in its keys: counters with one tag share their counts. */
  readonly tag: string
  /** Identifies the limit among those with the same tag. */
  readonly mark: number
  readonly enforced: boolean
  /** True if its limit depends on the caller: another limit with the same tag is then no other version of the rule. */
  readonly varies: boolean
  /** When the limit was put in force, by the clock of Redis, if it was changed in this process; else -1. */
  since: number
  /** Since when it counts all calls, which is earlier if the rule was changed and soon changed back. */
  countsSince: number
  /** The key of a caller's ledger. */
  ledgerKeyOf(key: string): string
}

/** A charge to one key's counts in Redis. */
export interface RedisCharge extends FleetCharge {
  counter: RedisCounter
}

export function redisCharge(counter: RedisCounter): RedisCharge {
  return fleetCharge(counter) as RedisCharge
}

/** The fields of a rule that a counter depends on. */
export type RedisCounterRule = FleetRule

/**
 * Keys look like `diana:login:account{ann}`: the rule, its dimensions and the caller. A rule with other dimensions starts from zero, and
 * one with another limit continues. The caller is in braces, so that on a Cluster all rules that count the same caller are decided
 * by one node. What could end a segment too early is escaped: no two rules or callers share a key.
 */
export function redisCounter(rule: RedisCounterRule, prefix: string): RedisCounter {
  const { id, meters, by = [], enforced, limitMeters } = rule
  const kind = kindOf(meters)
  const tag = [escapePart(id), by.map(escapePart).join(), ...(kind === 'rate' ? [] : [kind])].join(':')
  const levelOf = (meter: Meter, now: number | undefined) => {
    const { redis, slots, maxWaitUs, migrate, held, rate } = meter
    if (!redis)
      throw new DianaError('BAD_RULES', `rule "${id}": its algorithm cannot count in Redis; write count: local`)
    // concurrency slots in Redis are a list of leases, empty at first
    const stored = held ? 0 : slots
    const lease = held ? { needsRelease: true, leaseUs: LEASE_MS * 1000 } : {}
    const waitOptions = maxWaitUs > 0 ? { maxWaitUs } : { reportUs: rate?.reportUs }
    const shape = [stored, ...(migrate?.scale ?? [])].join(' ')
    const timed = now === undefined ? undefined : redis.numbersAt?.(now).numbers
    const [name, most, windowUs] = [redis.lua.name, rate?.most, rate?.windowUs]
    return { ...redis.numbers, ...lease, ...waitOptions, ...timed, name, slots: stored, most, windowUs, shape }
  }
  // calls under way are counted alike by all limits
  const variants = meters.some(meter => meter.held !== undefined) ? undefined : limitMeters
  // a changed count of the same shape goes on with the same numbers, while the limits of single callers are told apart
  const markAmong = (levels: ReturnType<typeof levelOf>[]) => {
    return markOf(JSON.stringify([prefix, tag, variants ? levels : levels.map(({ name, shape }) => [name, shape])]))
  }
  const limitAt = (some: readonly Meter[], now?: number) => {
    return {
      mark: markAmong(some.map(meter => levelOf(meter, undefined))),
      levels: some.map(meter => levelOf(meter, now)),
    }
  }
  const describe = (now: number): RuleDescription => {
    const limits = variants && distinct(variants.map(meter => limitAt([meter], now)))
    const isEager = variants && !canContinue(variants) ? true : undefined
    const text = JSON.stringify({
      tag: `${prefix}:${tag}`,
      ...limitAt(meters, now),
      limits,
      isEager,
      shadow: enforced ? undefined : true,
    })
    const ruleId = hashOf(text)
    return { id: ruleId, json: `{"id":${ruleId},${text.slice(1)}` }
  }
  const head = `${prefix}:${tag}{`
  return {
    meters,
    tag,
    mark: limitAt(meters).mark,
    description: timed([...meters, ...(limitMeters ?? [])], describe),
    enforced,
    varies: variants !== undefined,
    since: -1,
    countsSince: -1,
    needsRelease: meters.some(meter => meter.held !== undefined),
    lease: leaseTermsOf(rule),
    ledgerKeyOf: key => `${head}${escapeCaller(key)}}`,
  }
}

/** The caller of a ledger's key; undefined if it is not one of this rule. */
export function callerOf(counter: RedisCounter, ledgerKey: string): string | undefined {
  const empty = counter.ledgerKeyOf('')
  const head = empty.slice(0, empty.indexOf(EMPTY, empty.lastIndexOf('{')))
  if (!ledgerKey.startsWith(head) || !ledgerKey.endsWith('}')) return undefined
  const caller = ledgerKey.slice(head.length, -1)
  if (caller === EMPTY) return ''
  return caller.replace(/%([0-9A-F]{2,4});/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** A description; with numbers that change with time, it is made again when they do. */
function timed(
  meters: readonly Meter[],
  describe: (now: number) => RuleDescription,
): (clock: () => number) => RuleDescription {
  const changing = meters.flatMap(({ redis }) => (redis?.numbersAt ? [redis] : []))
  if (changing.length === 0) {
    const description = describe(0)
    return () => description
  }
  let [from, until] = [0, 0]
  let description: RuleDescription | undefined
  return clock => {
    const now = clock()
    if (description && now >= from && now < until) return description
    const numbers = changing.map(redis => redis.numbersAt!(now))
    from = Math.max(...numbers.map(one => one.from))
    until = Math.min(...numbers.map(one => one.until))
    description = describe(now)
    return description
  }
}

function distinct<T extends { readonly mark: number }>(limits: readonly T[]): T[] {
  return [...new Map(limits.map(limit => [limit.mark, limit])).values()]
}

/** What is counted: calls over time, calls under way, or nothing but until when a caller is refused. */
function kindOf(meters: readonly Meter[]): 'rate' | 'held' | 'block' {
  if (meters.some(meter => meter.held !== undefined)) return 'held'
  return meters.some(isBlock) ? 'block' : 'rate'
}

/** A whole number below 2^53 that identifies a description. */
function hashOf(text: string): number {
  const bytes = createHash('sha1').update(text).digest()
  return bytes.readUIntBE(0, 6) * 32 + (bytes[6]! & 31)
}

/** A whole number below 2^32 that identifies a limit among those of a rule: it is stored with every caller. */
function markOf(text: string): number {
  return createHash('sha1').update(text).digest().readUInt32BE(0)
}

/** Braces would choose a slot; and UTF-8 has one spelling for all lone surrogates. */
const UNSAFE = /[%{}:,\p{Surrogate}]/gu

/** Text that cannot be mistaken for the end of a segment of a key. */
export function escapePart(text: string): string {
  return text.replace(UNSAFE, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** What stands for a rule that counts all callers together: empty braces would not choose a slot. */
const EMPTY = '*'
const MAY_BE_UNSAFE = /[%{}*\ud800-\udfff]/
const UNSAFE_IN_CALLER = /[%{}*\p{Surrogate}]/gu

function escapeCaller(key: string): string {
  if (key === '') return EMPTY
  if (!MAY_BE_UNSAFE.test(key)) return key
  return key.replace(UNSAFE_IN_CALLER, character => `%${character.charCodeAt(0).toString(16).toUpperCase()};`)
}
