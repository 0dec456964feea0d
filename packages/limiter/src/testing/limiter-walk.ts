import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { adminOf } from '../admin/limiter-admin.ts'
import type { Reservation } from '../decision/settlement.ts'
import type { Verdict } from '../verdict.ts'
import { CallLog } from './call-log.ts'
import { type ChangingLimiter, changingLimiter } from './changing-limiter.ts'
import { type Dice, pick } from './walk.ts'
import { hasPlans, type WalkLimit, type WalkRule } from './walk-rule.ts'

export interface LimiterWalkOptions {
  /** Counts also in this Redis, and compares; without it, one limiter counts in memory. */
  readonly redis?: string | undefined
  readonly prefix: string
  readonly rules: readonly Dice[]
  /** Leases permits of rules without plans; what is left is then known to Redis alone. */
  readonly leases?: boolean | undefined
  /** The kinds of moves that there are, as bits; default: all. */
  readonly kinds?: number | undefined
}

const ALGORITHMS = ['sliding-log', 'fixed-window', 'token-bucket', 'sliding-window', 'leaky-bucket']
const COUNTS = [1, 2, 3, 5, 8, 10, 20, 37]
const PERIODS_MS = [5, 1000, 7000, 10_000, 60_000]
const PLANS = ['default', 'pro', 'slow']
const ACCOUNTS = ['ann', 'bob']
/** The kind of a move that is none of the others: some calls. */
const CALLS = 16
/** All kinds of moves. */
const ALL = 0xffff
const START_MS = 1_794_744_000_000
/** The longest time for which calls of an account are remembered to be refunded or settled. */
const MOST_KNOWN = 40

interface Known {
  /** The verdict of each limiter. */
  readonly verdicts: readonly Verdict[]
  readonly account: string
}

/**
 * A random walk through the public API, on a limiter that counts in memory and, if there is a Redis, on one that counts there: calls by
 * several plans, refunds, costs settled up and down, reservations that are settled or end, resets, blocks, credit, overrides, and rules that
 * change, leave and come back. After every move both limiters must have answered alike, and both what an exact list of calls allows.
 */
export class LimiterWalk {
  readonly #sides: readonly ChangingLimiter[]
  readonly #log: CallLog
  readonly #leases: boolean
  readonly #kinds: number
  #rules: WalkRule[]
  #removed: WalkRule[] = []
  #known: Known[] = []
  #reserved: { readonly reservations: readonly Reservation[]; readonly account: string }[] = []
  #overrides = new Set<string>()

  private constructor(sides: readonly ChangingLimiter[], rules: WalkRule[], leases: boolean, kinds: number) {
    this.#sides = sides
    this.#rules = rules
    this.#leases = leases
    this.#kinds = kinds
    this.#log = new CallLog()
  }

  static async create({
    redis,
    prefix,
    rules: dice,
    leases = false,
    kinds = ALL,
  }: LimiterWalkOptions): Promise<LimiterWalk> {
    const rules = dice.map((one, i) => ruleFrom(`rule${i}`, one, leases))
    const sides = [await changingLimiter(documentsOf(rules, 0), { startMs: START_MS })]
    if (redis !== undefined)
      sides.push(await changingLimiter(documentsOf(rules, 1), { startMs: START_MS, redis, prefix }))
    return new LimiterWalk(sides, rules, leases, kinds)
  }

  /** The rules in force. */
  get rules(): readonly WalkRule[] {
    return this.#rules
  }

  async close(): Promise<void> {
    for (const { close } of this.#sides) await close()
  }

  /** Makes one move; throws an AssertionError if the limiters differ, or one is wrong. */
  async step(dice: Dice): Promise<void> {
    await this.#move(dice)
    if (this.#sides.length > 1) await this.#lookAll()
  }

  /** Compares what all accounts have left by all plans. */
  async #lookAll(): Promise<void> {
    for (const account of ACCOUNTS) await Promise.all(PLANS.map(plan => this.#look(account, plan)))
  }

  async #move(dice: Dice): Promise<void> {
    const [what = 0, who = 0, many = 0, size = 0, wait = 0] = dice
    const periodMs = pick(PERIODS_MS, size)
    const passMs = pick(
      [0, 0, 0, 0, 0.001, 1, 100, 400, 1000, 1500, 9999, 61_000, periodMs, periodMs - 0.001, periodMs / 2],
      wait,
    )
    for (const { time } of this.#sides) time.ms = Math.round((time.ms + passMs) * 1000) / 1000
    const account = pick(ACCOUNTS, who)
    const rule = pick(this.#rules, many)
    const kind = what % 32
    const isAsked = kind < 16 && (this.#kinds & (1 << kind)) > 0
    switch (isAsked ? kind : CALLS) {
      case 0:
      case 1:
        return this.#refund(who)
      case 2:
      case 3:
        return this.#settle(who, many % 12)
      case 4:
      case 5:
        return this.#reserve(account, pick(PLANS, many), 1 + (size % 5), pick([1, 50, 5000, 60_000], many))
      case 6:
      case 7:
        return this.#settleReserved(who, many % 15)
      case 8:
        return this.#reset(rule, account)
      case 9:
        return rule.blocks ? this.#block(rule, account, many) : this.#reset(rule, account)
      case 10:
        return rule.hasCredit ? this.#grant(rule, account, 1 + (many % 3)) : this.#look(account, pick(PLANS, many))
      case 11:
        return this.#override(rule, account, dice)
      case 12:
      case 13:
        return this.#change(rule, dice)
      case 14:
        return this.#remove(many)
      case 15:
        return this.#look(account, pick(PLANS, many))
      default:
        for (let call = 0; call <= many % 7; call++) {
          await this.#call(account, pick(PLANS, size), pick([1, 1, 1, 2, 5, 11], size >> 3))
        }
    }
  }

  async #call(account: string, plan: string, cost: number): Promise<void> {
    const call = callOf(account, plan)
    const verdicts = await Promise.all(this.#sides.map(({ limiter }) => limiter.check(call, { cost })))
    this.#compare(verdicts)
    this.#judge(verdicts[0]!, account, plan, cost)
    // a refused caller is blocked after the answer
    if (!verdicts[0]!.allowed) return this.#look(account, plan)
    this.#known.push({ verdicts, account })
    if (this.#known.length > MOST_KNOWN) this.#known.shift()
  }

  /** Checks an answer against the list of calls. */
  #judge(verdict: Verdict, account: string, plan: string, cost: number): void {
    // credit admits calls that no limit counts
    if (this.#rules.some(({ hasCredit }) => hasCredit)) {
      this.#log.amended([...this.#rules, ...this.#removed], account)
      return
    }
    const limitsOf = (rule: WalkRule) => rule.limits[plan] ?? rule.limits.default!
    const open = this.#rules.filter(rule => rule.overrun === undefined && !this.#overrides.has(`${rule.id} ${account}`))
    const { allowed, decisions, reason } = verdict
    const nowUs = Math.round(this.#sides[0]!.time.ms * 1000)
    for (const rule of open) {
      const own = decisions.filter(decision => decision.rule === rule.id)
      if (own.length === 0 || reason === 'blocked') continue
      const fits = own.every(decision => decision.allowed)
      if (allowed) this.#log.assertAdmitted(rule, account, limitsOf(rule), nowUs, cost)
      else if (!fits && !rule.blocks) this.#log.assertRefused(rule, account, limitsOf(rule), nowUs, cost)
    }
    if (allowed) for (const rule of this.#rules) this.#log.add(rule, account, nowUs, cost)
  }

  async #look(account: string, plan: string): Promise<void> {
    this.#compare(await Promise.all(this.#sides.map(({ limiter }) => limiter.peek(callOf(account, plan)))))
  }

  async #refund(who: number): Promise<void> {
    const [known] = this.#known.splice(who % Math.max(1, this.#known.length), 1)
    if (known === undefined) return
    await Promise.all(known.verdicts.map(verdict => verdict.refund()))
    this.#log.amended([...this.#rules, ...this.#removed], known.account)
    await this.#look(known.account, 'default')
  }

  /** Settles the cost of a call that was not reserved. What is missing is taken in two questions, one after the other. */
  async #settle(who: number, actual: number): Promise<void> {
    const known = this.#known[who % Math.max(1, this.#known.length)]
    if (known === undefined) return
    for (const verdict of known.verdicts) verdict.settle(actual)
    this.#log.amended([...this.#rules, ...this.#removed], known.account)
    for (const _ of [1, 2, 3])
      await Promise.all(this.#sides.map(({ limiter }) => limiter.peek(callOf(known.account, 'default'))))
    await this.#look(known.account, 'pro')
  }

  async #reserve(account: string, plan: string, cost: number, hold: number): Promise<void> {
    const call = callOf(account, plan)
    const reservations = await Promise.all(this.#sides.map(({ limiter }) => limiter.reserve(call, { cost, hold })))
    this.#compare(reservations.map(({ verdict }) => verdict))
    this.#judge(reservations[0]!.verdict, account, plan, cost)
    this.#log.amended([...this.#rules, ...this.#removed], account)
    if (reservations[0]!.allowed) this.#reserved.push({ reservations, account })
    else await this.#look(account, plan)
  }

  async #settleReserved(who: number, actual: number): Promise<void> {
    const [one] = this.#reserved.splice(who % Math.max(1, this.#reserved.length), 1)
    if (one === undefined) return
    await Promise.all(one.reservations.map(reservation => reservation.settle(actual)))
    this.#log.amended([...this.#rules, ...this.#removed], one.account)
    await this.#look(one.account, pick(PLANS, who))
  }

  async #reset(rule: WalkRule, account: string): Promise<void> {
    for (const { limiter } of this.#sides) await limiter.reset(rule.id, account)
    this.#log.forget(rule, account)
    await this.#look(account, 'default')
  }

  async #block(rule: WalkRule, account: string, many: number): Promise<void> {
    for (const { limiter } of this.#sides) {
      if (many % 3 > 0) await limiter.block(rule.id, account, 1 + (many % 3000))
      else await limiter.unblock(rule.id, account)
    }
    if (many % 3 === 0) this.#log.forget(rule, account)
    await this.#look(account, 'default')
  }

  async #grant(rule: WalkRule, account: string, permits: number): Promise<void> {
    const had = await Promise.all(this.#sides.map(({ limiter }) => limiter.grant(rule.id, account, permits)))
    for (const one of had) assert.equal(one, had[0])
  }

  async #override(rule: WalkRule, account: string, [, , many = 0, size = 0]: Dice): Promise<void> {
    if (!hasPlans(rule)) return
    const name = `${rule.id} ${account}`
    for (const { limiter } of this.#sides) {
      const admin = adminOf(limiter)
      if (this.#overrides.has(name)) await admin.removeOverride(rule.id, account)
      else await admin.setOverride(rule.id, account, { limit: `${pick(COUNTS, size)}/${pick(PERIODS_MS, many)}ms` })
    }
    if (!this.#overrides.delete(name)) this.#overrides.add(name)
    this.#log.changed(rule)
    // no call waits for a limit of a single caller: it is asked for in the background
    const limitIn = async ({ limiter }: ChangingLimiter) => {
      await pause(1)
      return (await limiter.peek(callOf(account, 'default'))).decisions.find(one => one.rule === rule.id)?.limit
    }
    for (let unchanged = 0; unchanged < 3; unchanged++) {
      const limits = await Promise.all(this.#sides.map(limitIn))
      if (new Set(limits).size > 1) unchanged = 0
    }
    await this.#look(account, 'pro')
  }

  async #change(rule: WalkRule, dice: Dice): Promise<void> {
    const next = ruleFrom(rule.id, dice, this.#leases, rule)
    // a change between one limit and several begins with nothing counted, and operators' limits need a rule that has several
    if (hasPlans(next) !== hasPlans(rule)) return
    await this.#publish(this.#rules.map(one => (one === rule ? next : one)))
    this.#log.changed(rule)
    await this.#look('ann', 'pro')
    await this.#look('bob', 'default')
  }

  /** Removes a rule, or puts one back. */
  async #remove(which: number): Promise<void> {
    // memory reads what a call was charged from the rules in force, and Redis knows it
    this.#known = []
    const [back] = this.#removed.splice(0, 1)
    if (back !== undefined) await this.#publish([...this.#rules, back])
    else if (this.#rules.length > 1) {
      const gone = pick(this.#rules, which)
      this.#removed.push(gone)
      await this.#publish(this.#rules.filter(rule => rule !== gone))
      this.#log.changed(gone)
    }
    await this.#look('ann', 'default')
  }

  async #publish(rules: WalkRule[]): Promise<void> {
    this.#rules = rules
    for (const [place, side] of this.#sides.entries()) await side.change(documentsOf(rules, place))
  }

  #compare([first, ...others]: readonly Verdict[]): void {
    const isLeased = this.#leases && this.#rules.some(({ lease }) => lease === 'auto')
    const seen = (verdict: Verdict) => {
      const { allowed, rule, reason, retryAfterMs, decisions } = verdict
      if (isLeased) return { allowed }
      const all = decisions.map(({ rule, limit, allowed, remaining, resetAfterMs, retryAfterMs }) => {
        return { rule, limit, allowed, remaining, resetAfterMs, retryAfterMs }
      })
      return { allowed, rule, reason, retryAfterMs, decisions: all }
    }
    for (const other of others) assert.deepStrictEqual(seen(other), seen(first!))
  }
}

const callOf = (account: string, plan: string) => ({ method: 'GET', path: '/', attributes: { account, plan } })

function ruleFrom(id: string, dice: Dice, leases: boolean, before?: WalkRule): WalkRule {
  const [kind = 0, count = 0, period = 0, more = 0, extra = 0] = dice
  const { hasCredit, blocks } = before ?? { hasCredit: extra % 11 === 0, blocks: extra % 11 > 8 }
  const algorithm = pick(ALGORITHMS, kind)
  const limitAt = (place: number): WalkLimit => {
    return { count: pick(COUNTS, count + place * 3), periodMs: pick(PERIODS_MS, period + place * (1 + (more % 4))) }
  }
  const levels = Array.from({ length: hasCredit ? 1 : 1 + (more % 3) }, (_, level) => limitAt(level))
  const distinct = [...new Map(levels.map(level => [level.periodMs, level])).values()]
  const plans = { default: [limitAt(0)], pro: [limitAt(1)], slow: [limitAt(more % 2 === 0 ? 2 : 5)] }
  const isLeased = leases && extra % 2 === 0
  return {
    ...{
      id,
      by: 'account',
      algorithm,
      overrun: pick([undefined, undefined, 'debt', 'clip', 'debt'] as const, extra),
      hasCredit,
      blocks,
    },
    limits: !isLeased && (kind >> 3) % 2 === 0 ? plans : { default: distinct },
    burst: algorithm === 'leaky-bucket' ? extra % 9 : undefined,
    lease: isLeased ? 'auto' : 'off',
  }
}

/** Returns the rules for one of the limiters: the second one counts in Redis. */
function documentsOf(rules: readonly WalkRule[], place: number): object[] {
  return rules.map(rule => ({ ...optionsOf(rule), ...(place > 0 && { lease: rule.lease }) }))
}

function optionsOf(rule: WalkRule): object {
  const { id, by, algorithm, limits, burst, overrun, hasCredit, blocks } = rule
  const texts = Object.fromEntries(
    Object.entries(limits).map(([plan, all]) => [plan, all.map(({ count, periodMs }) => `${count}/${periodMs}ms`)]),
  )
  const { default: standard, ...others } = texts
  const values = Object.fromEntries(Object.entries(others).map(([plan, [limit]]) => [plan, limit]))
  const limit = hasPlans(rule) ? { by: 'attribute:plan', values, overrides: true, default: standard![0] } : standard
  return {
    ...{ id, by, algorithm, limit },
    ...(overrun !== undefined && { cost: { overrun, hold: '1m' } }),
    ...(burst !== undefined && { burst }),
    ...(hasCredit && { credit: true }),
    ...(blocks && { block: '1s' }),
  }
}
