import type { Meter } from '../../algorithms/algorithm.ts'
import { nodeCrypto } from '../../common/node-modules.ts'
import { DianaError } from '../../errors.ts'
import { LEASE_MS } from '../held-slots.ts'
import { leaseTermsOf } from '../leases/lease-terms.ts'
import { type LedgerNames, ledgerKeys, tagOf } from '../ledger-keys.ts'
import { canContinue } from '../memory/limit-family.ts'
import { type FleetCharge, type FleetRule, fleetCharge } from '../store.ts'

/** Names how counts are stored: another one whenever processes with and without a change would not find each other's counts. */
export const FORMAT = 'caller-keys'

/** A rule as the engine reads it. The engine keeps descriptions by their ids, so that requests carry only these. */
export interface RuleDescription {
  readonly id: number
  readonly json: string
}

/** What is counted in Redis for one rule. */
export interface RedisCounter extends LedgerNames {
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

export function redisCounter(rule: RedisCounterRule, prefix: string): RedisCounter {
  const { id, meters, enforced, limitMeters } = rule
  const tag = tagOf(rule)
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
    ledgerKeyOf: ledgerKeys(prefix, tag),
  }
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

/** A whole number below 2^53 that identifies a description. */
function hashOf(text: string): number {
  const bytes = nodeCrypto().createHash('sha1').update(text).digest()
  return bytes.readUIntBE(0, 6) * 32 + (bytes[6]! & 31)
}

/** A whole number below 2^32 that identifies a limit among those of a rule: it is stored with every caller. */
function markOf(text: string): number {
  return nodeCrypto().createHash('sha1').update(text).digest().readUInt32BE(0)
}
