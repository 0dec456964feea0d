import type { Meter } from '../algorithms/algorithm.ts'
import { DianaError } from '../errors.ts'
import { blankCharge, type Charge } from './charge.ts'

/** The format of the states; another format counts under other keys. */
const VERSION = 'd1'

/** The places of a process that says nothing for so long are free again. */
export const LEASE_MS = 5000

/** What is counted in Redis for one rule. */
export interface RedisCounter {
  readonly meters: readonly Meter[]
  /** The rule as the script reads it. */
  readonly json: string
  /** A charge to it lasts until it is given back, or until its lease ends. */
  readonly held: boolean
  /** The Redis key of a caller's key. */
  keyOf(key: string): string
}

/** A charge to one key's counts in Redis. */
export interface RedisCharge extends Charge {
  counter: RedisCounter
}

export function redisCharge(counter: RedisCounter): RedisCharge {
  const charge = blankCharge() as RedisCharge
  charge.counter = counter
  return charge
}

/** What is counted, by whom: the parts of a rule that a counter depends on. */
export interface RedisCounterRule {
  readonly id: string
  readonly meters: readonly Meter[]
  readonly algorithm: string
  readonly by?: readonly string[] | undefined
  readonly enforced: boolean
}

export interface RedisCounterOptions {
  readonly prefix: string
  /** A number of this process's own, under which it holds places. */
  readonly holder: number
}

/**
 * Keys look like `diana:d1{rule:algorithm:by:value}`, so that a rule with another algorithm, or counted per somebody
 * else, begins anew, while one with another limit goes on. The braces make the whole of it choose the slot, and what
 * could end a part too early is escaped: no two callers share a key, and nobody picks a slot by his name.
 */
export function redisCounter(rule: RedisCounterRule, { prefix, holder }: RedisCounterOptions): RedisCounter {
  const { id, meters, algorithm, by = [], enforced } = rule
  const levels = meters.map(({ twin, numbers, slots: usual, scale = [], patienceUs, held }) => {
    if (!twin)
      throw new DianaError('BAD_RULES', `rule "${id}": its algorithm cannot count in Redis; write count: local`)
    // what is held in Redis is a list of leases, empty at first
    const slots = held ? 0 : usual
    const lease = held ? { holder, leaseUs: LEASE_MS * 1000 } : {}
    return { ...numbers, ...lease, name: twin.name, slots, scale, shape: [slots, ...scale].join(' '), held, patienceUs }
  })
  const head = `${prefix}:${VERSION}{${escapePart(id)}:${escapePart(algorithm)}:${by.map(escapePart).join()}:`
  return {
    meters,
    json: JSON.stringify({ enforced, levels }),
    held: meters.some(meter => meter.held),
    keyOf: key => `${head}${escapeValue(key)}}`,
  }
}

/** Braces would choose a slot; and UTF-8 has one spelling for all lone surrogates. */
const UNSAFE = /[%{}\p{Surrogate}]/u

function escapeValue(text: string): string {
  return UNSAFE.test(text) ? text.replace(new RegExp(UNSAFE, 'gu'), percentOf) : text
}

/** Text that cannot be mistaken for the end of a part of a key. */
export function escapePart(text: string): string {
  return escapeValue(text).replace(/[:,]/g, percentOf)
}

function percentOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
