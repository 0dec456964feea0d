import { createHash } from 'node:crypto'
import type { Meter } from '../../algorithms/algorithm.ts'
import { DianaError } from '../../errors.ts'
import { type FleetCharge, type FleetCounter, type FleetRule, fleetCharge } from '../store.ts'
import { numberInSlots, SLOTS, slotOf } from './slot.ts'

/** The format of the states; another format counts under other keys. */
const VERSION = 'd5'
/** On a Cluster the callers of a rule are spread over so many slots, evenly, so that as many masters have a part of them. */
export const HOMES_ON_CLUSTER = 256
const SLOTS_PER_HOME = SLOTS / HOMES_ON_CLUSTER

const [SPACE, LAST_OF_ASCII, QUOTE, BACKSLASH] = [0x20, 0x7e, 0x22, 0x5c]

/** The places of a process that says nothing for so long are free again. */
export const LEASE_MS = 5000

/** Where callers of a rule live: two hashes, of which the young one becomes the old one now and then. */
export interface RedisHome {
  readonly young: string
  readonly old: string
  /** The slot of a Cluster that both belong to. */
  readonly slot: number
  /** When Redis says that it was born, which is another moment once Redis has lost it; 0 as long as that is not known. */
  born: number
  /** When the home was born that Redis has lost; 0 if it has lost none. */
  lost: number
  /** Until when something that this process was told of matters there, by its own clock, in milliseconds. */
  mattersUntil: number
}

/** What is counted in Redis for one rule. */
export interface RedisCounter extends FleetCounter {
  /** The rule as the script reads it. */
  readonly json: string
  /** What its keys are called by: counters of one tag go on with the same counts. */
  readonly tag: string
  /** By what limits of one tag are told apart. */
  readonly mark: number
  readonly enforced: boolean
  homeOf(key: string): RedisHome
  /** A key that lives in each of its homes. */
  keyPerHome(): readonly string[]
}

/** A caller's key as a field of its home. What UTF-8 cannot tell apart is spelled out. */
export function fieldOf(key: string): string {
  return key.isWellFormed() ? `:${key}` : `~${JSON.stringify(key)}`
}

/** The key of a field; none if the field says something of the home itself. */
export function keyOf(field: string): string | undefined {
  if (field.startsWith(':')) return field.slice(1)
  return field.startsWith('~') ? (JSON.parse(field.slice(1)) as string) : undefined
}

/** The same in JSON. Most keys need nothing escaped, and asking them one by one is cheaper than JSON.stringify. */
export function fieldJsonOf(key: string): string {
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code < SPACE || code > LAST_OF_ASCII || code === QUOTE || code === BACKSLASH)
      return JSON.stringify(fieldOf(key))
  }
  return `":${key}"`
}

/** A charge to one key's counts in Redis. */
export interface RedisCharge extends FleetCharge {
  counter: RedisCounter
}

export function redisCharge(counter: RedisCounter): RedisCharge {
  return fleetCharge(counter) as RedisCharge
}

/** What is counted, by whom: the parts of a rule that a counter depends on. */
export type RedisCounterRule = FleetRule

export interface RedisCounterOptions {
  readonly prefix: string
  readonly isCluster?: boolean | undefined
  /** The homes that the store knows, by the name of the young hash. */
  readonly homes?: Map<string, RedisHome> | undefined
  /** A number of this process's own, under which it holds places. */
  readonly holder: number
  /** Since when the limit with this mark is in force, by the clock of Redis; undefined if that is not known. */
  readonly sinceOf?: ((tag: string, mark: number) => number | undefined) | undefined
}

/**
 * Keys look like `diana:d5{rule:kind:by}`: a rule that is counted per somebody else begins anew, while one with another limit
 * goes on, and one with another algorithm knows of the calls that the other admits. The braces make the whole of it choose the slot, and what could end
 * a part too early is escaped: no two rules share a key, and nobody picks a slot by his name.
 */
export function redisCounter(rule: RedisCounterRule, options: RedisCounterOptions): RedisCounter {
  const { id, meters, algorithm, by = [], enforced } = rule
  const levels = meters.map(({ lua, numbers, slots: usual, coreSlots, scale = [], maxWaitUs, needsRelease }) => {
    if (!lua) throw new DianaError('BAD_RULES', `rule "${id}": its algorithm cannot count in Redis; write count: local`)
    // what is held in Redis is a list of leases, empty at first
    const slots = needsRelease ? 0 : usual
    const lease = needsRelease ? { needsRelease, holder: options.holder, leaseUs: LEASE_MS * 1000 } : {}
    const waitOptions = maxWaitUs > 0 ? { maxWaitUs } : {}
    const stored = { slots, coreSlots: coreSlots === slots ? undefined : coreSlots }
    const shape = [slots, ...scale, `=${algorithm}`].join(' ')
    return { ...numbers, ...lease, ...waitOptions, name: lua.name, ...stored, shape }
  })
  const mark = markOf(levels.map(({ shape }) => shape).join(';'))
  const tag = `${escapePart(id)}:${kindOf(meters)}:${by.map(escapePart).join()}`
  return {
    meters,
    tag,
    mark,
    json: JSON.stringify({
      mark,
      since: options.sinceOf?.(tag, mark),
      levels,
      isWatching: enforced ? undefined : true,
    }),
    enforced,
    needsRelease: meters.some(meter => meter.needsRelease),
    homeOf: homesOf(tag, options),
    keyPerHome: () => (options.isCluster ? KEY_PER_HOME : ['']),
  }
}

/** What is counted: calls over time, calls under way, or nothing but until when a caller is refused. */
function kindOf(meters: readonly Meter[]): string {
  if (meters.some(({ needsRelease }) => needsRelease)) return 'held'
  return meters.some(({ costLasting }) => costLasting) ? 'block' : 'rate'
}

function homesOf(
  tag: string,
  { prefix, isCluster, homes: known = new Map() }: RedisCounterOptions,
): RedisCounter['homeOf'] {
  const createHome = (name: string): RedisHome => {
    const young = `${prefix}:${VERSION}{${name}}`
    const home = known.get(young) ?? {
      young,
      old: `${young}:old`,
      slot: slotOf(young),
      born: 0,
      lost: 0,
      mattersUntil: 0,
    }
    known.set(young, home)
    return home
  }
  if (!isCluster) {
    const home = createHome(tag)
    return () => home
  }
  const homes: RedisHome[] = []
  const homeAt = (place: number): RedisHome => {
    homes[place] ??= createHome(nameOfPlace(tag, place))
    return homes[place]
  }
  return key => homeAt(slotOf(key) % HOMES_ON_CLUSTER)
}

/** A name within the part of the slots that belongs to a place. */
function nameOfPlace(tag: string, place: number): string {
  const name = `${tag}:${place}.`
  return `${name}${numberInSlots(name, place * SLOTS_PER_HOME, (place + 1) * SLOTS_PER_HOME)}`
}

const KEY_PER_HOME: readonly string[] = keyPerHome()

function keyPerHome(): string[] {
  const keys = new Map<number, string>()
  for (let i = 0; keys.size < HOMES_ON_CLUSTER; i++) keys.set(slotOf(String(i)) % HOMES_ON_CLUSTER, String(i))
  return [...keys.values()]
}

/** A whole number below 2^53 by which shapes of states are told apart. */
function markOf(shape: string): number {
  const bytes = createHash('sha1').update(shape).digest()
  return bytes.readUIntBE(0, 6) * 32 + (bytes[6]! & 31)
}

/** Braces would choose a slot; and UTF-8 has one spelling for all lone surrogates. */
const UNSAFE = /[%{}:,\p{Surrogate}]/gu

/** Text that cannot be mistaken for the end of a part of a key. */
export function escapePart(text: string): string {
  return text.replace(UNSAFE, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
