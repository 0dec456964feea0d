import assert from 'node:assert/strict'
import { hasPlans, type WalkLimit, type WalkRule } from './walk-rule.ts'

interface Counted {
  readonly moment: number
  readonly cost: number
}

/** An account of one rule. */
interface Account {
  calls: Counted[]
  /** True if calls were refunded, or cost more or less than was charged: the list says only what was admitted. */
  isAmended: boolean
  /** True if the limit was changed: what was counted before is known to the new one only in part. */
  isChanged: boolean
}

/**
 * An exact model of rules, for what a random walk admits and refuses: the list of all calls, and sums over it. Moments are microseconds. A
 * call is admitted only if its limit has room for it, counting all calls of the account; and none is refused that has room by the limit
 * of its plan, and by those of all other plans, too.
 */
export class CallLog {
  readonly #accounts = new Map<string, Account>()

  add(rule: WalkRule, account: string, moment: number, cost: number): void {
    if (cost > 0) this.#of(rule, account).calls.push({ moment, cost })
  }

  forget(rule: WalkRule, account: string): void {
    this.#accounts.delete(nameOf(rule, account))
  }

  /** Notes that another cost counts of a call than was charged. */
  amended(rules: readonly WalkRule[], account: string): void {
    for (const rule of rules) this.#of(rule, account).isAmended = true
  }

  changed({ id }: WalkRule): void {
    for (const [name, known] of this.#accounts) if (name.startsWith(`${id} `)) known.isChanged = true
  }

  assertAdmitted(rule: WalkRule, account: string, limits: readonly WalkLimit[], now: number, cost: number): void {
    const known = this.#of(rule, account)
    if (known.isAmended || known.isChanged) return
    for (const limit of limits) {
      const used = usedOf(rule, limit, known.calls, now)
      assert.ok(
        used + cost <= capacityOf(rule, limit) + 1e-6,
        `${rule.id} ${JSON.stringify(limit)} admits ${cost} beyond ${used} at ${now}: ${JSON.stringify(known.calls)}`,
      )
    }
  }

  assertRefused(rule: WalkRule, account: string, limits: readonly WalkLimit[], now: number, cost: number): void {
    const known = this.#of(rule, account)
    if (known.isAmended || known.isChanged) return
    const all = [...limits, ...Object.values(rule.limits).flat()]
    const isFull = all.some(limit => atMost(rule, limit, known.calls, now) + cost > capacityOf(rule, limit) - 1e-6)
    assert.ok(
      isFull,
      `${rule.id} ${JSON.stringify(limits)} refuses ${cost} at ${now} though it fits: ${JSON.stringify(known.calls)}`,
    )
  }

  #of(rule: WalkRule, account: string): Account {
    const name = nameOf(rule, account)
    const known = this.#accounts.get(name) ?? { calls: [], isAmended: false, isChanged: false }
    this.#accounts.set(name, known)
    return known
  }
}

const nameOf = ({ id }: WalkRule, account: string): string => `${id} ${account}`

function capacityOf({ algorithm, burst = 0 }: WalkRule, { count }: WalkLimit): number {
  return algorithm === 'leaky-bucket' ? burst + 1 : count
}

/** Returns what calls use of a limit at least. */
function usedOf(rule: WalkRule, limit: WalkLimit, calls: readonly Counted[], now: number): number {
  const { algorithm } = rule
  const periodUs = limit.periodMs * 1000
  if (algorithm === 'fixed-window') {
    const start = Math.floor(now / periodUs) * periodUs
    return sumOf(calls.filter(({ moment }) => moment >= start))
  }
  if (algorithm.startsWith('sliding')) return sumOf(calls.filter(({ moment }) => moment > now - periodUs))
  // several limits of a bucket each owe what the faster ones admit only until they are full
  return hasPlans(rule) ? 0 : levelOf(limit, calls, now)
}

/** Returns what they use at most: a sliding window keeps a segment of a tenth until its last call has left. */
function atMost(rule: WalkRule, limit: WalkLimit, calls: readonly Counted[], now: number): number {
  const periodUs = limit.periodMs * 1000
  if (rule.algorithm === 'sliding-window') return sumOf(calls.filter(({ moment }) => moment > now - periodUs * 1.3))
  return rule.algorithm.endsWith('bucket') ? levelOf(limit, calls, now) : usedOf(rule, limit, calls, now)
}

/** Returns the level of a bucket in which all calls are. */
function levelOf({ count, periodMs }: WalkLimit, calls: readonly Counted[], now: number): number {
  const perUs = count / (periodMs * 1000)
  let [level, last] = [0, 0]
  for (const { moment, cost } of calls) {
    level = Math.max(0, level - (moment - last) * perUs) + cost
    last = moment
  }
  return Math.max(0, level - (now - last) * perUs)
}

function sumOf(calls: readonly Counted[]): number {
  return calls.reduce((sum, { cost }) => sum + cost, 0)
}
