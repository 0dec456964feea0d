import { createHash } from 'node:crypto'
import type { Meter } from '../../algorithms/algorithm.ts'
import { DianaError } from '../../errors.ts'
import { leaseTermsOf } from '../leases/lease-terms.ts'
import { canContinue } from '../memory/limit-family.ts'
import { type FleetCharge, type FleetCounter, type FleetRule, fleetCharge } from '../store.ts'
import { numberInSlots, SLOTS, slotOf } from './slot.ts'

/** The format of the states; another format counts under other keys. */
const VERSION = 'd6'
/** On a Cluster the callers of a rule are spread over so many slots, evenly, so that as many masters share the load. */
export const PARTITIONS_ON_CLUSTER = 256
const SLOTS_PER_PARTITION = SLOTS / PARTITIONS_ON_CLUSTER

/** The concurrency slots of a process that renews nothing for so long are released. */
export const LEASE_MS = 5000

/** A hash of callers of a rule, in two generations: the current hash becomes the previous one from time to time. */
export interface RedisPartition {
  readonly current: string
  readonly previous: string
  /** The slot of a Cluster that both belong to. */
  readonly slot: number
  /** When it was created, by the clock of Redis: another moment after Redis has lost it; 0 if not known yet. */
  createdAt: number
  /** When the partition that Redis has lost was created; 0 if it has lost none. */
  lost: number
  /** Until when an answer that this process got matters there, by its own clock, in milliseconds. */
  mattersUntil: number
}

/** What is counted in Redis for one rule. */
export interface RedisCounter extends FleetCounter {
  /** The rule as the script reads it; `clock` is that of Redis as far as it is known, in microseconds. */
  json(clock: () => number): string
  /** The name in its keys: counters with one tag share their counts. */
  readonly tag: string
  /** Identifies the limit among those with the same tag. */
  readonly mark: number
  readonly enforced: boolean
  partitionOf(key: string): RedisPartition
  /** One key for each of its partitions. */
  keyPerPartition(): readonly string[]
}

/** A caller's key as a field of its partition. Keys that UTF-8 cannot represent are escaped. */
export function fieldOf(key: string): string {
  return key.isWellFormed() ? `:${key}` : `~${JSON.stringify(key)}`
}

/** The key of a field; undefined if the field describes the partition itself. */
export function keyOf(field: string): string | undefined {
  if (field.startsWith(':')) return field.slice(1)
  return field.startsWith('~') ? (JSON.parse(field.slice(1)) as string) : undefined
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

export interface RedisCounterOptions {
  readonly prefix: string
  readonly isCluster?: boolean | undefined
  /** The partitions that the store knows, by the name of the current hash. */
  readonly partitions?: Map<string, RedisPartition> | undefined
  /** The number under which this process holds concurrency slots. */
  readonly holder: number
  /** Since when the limit with this mark is in force, by the clock of Redis; undefined if that is not known. */
  readonly sinceOf?: ((tag: string, mark: number) => number | undefined) | undefined
}

/**
 * Keys look like `diana:d6{rule:kind:by}`: a rule with other dimensions starts from zero, while one with another limit
 * continues, and one with another algorithm counts the calls that the other admits. The braces make the whole of it choose the slot, and what could end
 * a segment too early is escaped: no two rules share a key, and a caller cannot choose the slot by their name.
 */
export function redisCounter(rule: RedisCounterRule, options: RedisCounterOptions): RedisCounter {
  const { id, meters, algorithm, by = [], enforced, limitMeters } = rule
  const levelOf = ({ lua, numbers, slots: usual, coreSlots, scale = [], maxWaitUs, needsRelease, reportUs }: Meter) => {
    if (!lua) throw new DianaError('BAD_RULES', `rule "${id}": its algorithm cannot count in Redis; write count: local`)
    // concurrency slots in Redis are a list of leases, empty at first
    const slots = needsRelease ? 0 : usual
    const lease = needsRelease ? { needsRelease, holder: options.holder, leaseUs: LEASE_MS * 1000 } : {}
    const waitOptions = maxWaitUs > 0 ? { maxWaitUs } : { reportUs }
    const stored = { slots, coreSlots: coreSlots === slots ? undefined : coreSlots }
    const shape = [slots, ...scale, `=${algorithm}`].join(' ')
    return { ...numbers, ...lease, ...waitOptions, name: lua.name, ...stored, shape }
  }
  // calls under way are counted alike by all limits
  const varies = limitMeters !== undefined && !meters.some(({ needsRelease }) => needsRelease)
  const marked = (meter: Meter, now: number | undefined) => {
    const { most } = meter
    const level = { ...levelOf(meter), ...(most === undefined ? {} : { most }) }
    return { ...level, ...numbersOf(meter, now), mark: markOf(JSON.stringify(level)) }
  }
  /** The levels, with numbers that change with time as they are at `now`. */
  const levelsAt = (now?: number) => {
    if (!varies) {
      return meters.map(meter => ({ ...levelOf(meter), windowUs: meter.windowUs, ...numbersOf(meter, now) }))
    }
    const limits = limitMeters.map(meter => marked(meter, now))
    return meters.map(meter => varyingLevel(marked(meter, now), limits, algorithm, !canContinue(limitMeters)))
  }
  const levels = levelsAt()
  const mark = markOf(levels.map(({ shape }) => shape).join(';'))
  const tag = `${escapePart(id)}:${varies ? 'limits' : kindOf(meters)}:${by.map(escapePart).join()}`
  const since = options.sinceOf?.(tag, mark)
  const encode = (now: number): string => {
    return JSON.stringify({ mark, since, levels: levelsAt(now), shadow: enforced ? undefined : true })
  }
  return {
    meters,
    tag,
    mark,
    json: timedJson([...meters, ...(limitMeters ?? [])], encode),
    enforced,
    needsRelease: meters.some(meter => meter.needsRelease),
    lease: leaseTermsOf(rule),
    partitionOf: partitionsOf(tag, options),
    keyPerPartition: () => (options.isCluster ? KEY_PER_PARTITION : ['']),
  }
}

function numbersOf(meter: Meter, now: number | undefined): Readonly<Record<string, number>> | undefined {
  return now === undefined ? undefined : meter.numbersAt?.(now).numbers
}

/** The text of a rule; with numbers that change with time, it is made again when they do. */
function timedJson(meters: readonly Meter[], encode: (now: number) => string): (clock: () => number) => string {
  const timed = meters.filter(({ numbersAt }) => numbersAt !== undefined)
  if (timed.length === 0) {
    const json = encode(0)
    return () => json
  }
  let [json, from, until] = ['', 0, 0]
  return clock => {
    const now = clock()
    if (now >= from && now < until) return json
    const numbers = timed.map(meter => meter.numbersAt!(now))
    from = Math.max(...numbers.map(one => one.from))
    until = Math.min(...numbers.map(one => one.until))
    json = encode(now)
    return json
  }
}

/** The level of a rule whose limit depends on the caller, as varying.lua reads it: all limits have one shape. */
function varyingLevel(
  inner: { readonly maxWaitUs?: number },
  limits: readonly object[],
  algorithm: string,
  isEager: boolean,
) {
  const { maxWaitUs } = inner
  const name = '*varying'
  return { name, slots: 0, shape: `0 =${algorithm}*`, maxWaitUs, inner, limits: distinct(limits), isEager }
}

function distinct(limits: readonly object[]): object[] {
  return [...new Map(limits.map(limit => [JSON.stringify(limit), limit])).values()]
}

/** What is counted: calls over time, calls under way, or nothing but until when a caller is refused. */
function kindOf(meters: readonly Meter[]): string {
  if (meters.some(({ needsRelease }) => needsRelease)) return 'held'
  return meters.some(({ costLasting }) => costLasting) ? 'block' : 'rate'
}

function partitionsOf(
  tag: string,
  { prefix, isCluster, partitions: known = new Map() }: RedisCounterOptions,
): RedisCounter['partitionOf'] {
  const createPartition = (name: string): RedisPartition => {
    const current = `${prefix}:${VERSION}{${name}}`
    const partition = known.get(current) ?? {
      current,
      previous: `${current}:old`,
      slot: slotOf(current),
      createdAt: 0,
      lost: 0,
      mattersUntil: 0,
    }
    known.set(current, partition)
    return partition
  }
  if (!isCluster) {
    const partition = createPartition(tag)
    return () => partition
  }
  const partitions: RedisPartition[] = []
  const partitionAt = (place: number): RedisPartition => {
    partitions[place] ??= createPartition(partitionName(tag, place))
    return partitions[place]
  }
  return key => partitionAt(slotOf(key) % PARTITIONS_ON_CLUSTER)
}

/** A name whose slot is in the range of partition number `place`. */
function partitionName(tag: string, place: number): string {
  const name = `${tag}:${place}.`
  return `${name}${numberInSlots(name, place * SLOTS_PER_PARTITION, (place + 1) * SLOTS_PER_PARTITION)}`
}

const KEY_PER_PARTITION: readonly string[] = keyPerPartition()

function keyPerPartition(): string[] {
  const keys = new Map<number, string>()
  for (let i = 0; keys.size < PARTITIONS_ON_CLUSTER; i++) keys.set(slotOf(String(i)) % PARTITIONS_ON_CLUSTER, String(i))
  return [...keys.values()]
}

/** A whole number below 2^53 that identifies the shape of a state. */
function markOf(shape: string): number {
  const bytes = createHash('sha1').update(shape).digest()
  return bytes.readUIntBE(0, 6) * 32 + (bytes[6]! & 31)
}

/** Braces would choose a slot; and UTF-8 has one spelling for all lone surrogates. */
const UNSAFE = /[%{}:,\p{Surrogate}]/gu

/** Text that cannot be mistaken for the end of a segment of a key. */
export function escapePart(text: string): string {
  return text.replace(UNSAFE, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
