import assert from 'node:assert/strict'
import type { Meter } from '../algorithms/algorithm.ts'
import { blocking, blockMeter, firstBlockCost, growingBlockMeter } from '../algorithms/block.ts'
import { concurrency } from '../algorithms/concurrency.ts'
import type { Charge } from '../stores/charge.ts'
import { LEASE_MS } from '../stores/held-slots.ts'
import { type LocalCharge, localCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import { refundLocal } from '../stores/memory/refund-local.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type FleetCharge, type FleetCounter, fleetCharge } from '../stores/store.ts'
import { subjects } from './subject.ts'
import { costFrom, type Dice, nextMoment, pick, startFrom } from './walk.ts'
import { WalkReservations } from './walk-reservations.ts'
import type { CreateWalkedStore, WalkedStore } from './walked-store.ts'

/** The algorithms that a walk can count by. */
export const walkAlgorithms: readonly string[] = [...Object.keys(subjects), 'concurrency']

const KEYS = ['one', 'other', 'third']
/** Blocks that last as long as they are set for, and blocks that grow. */
const blockMeters = [blockMeter, growingBlockMeter({ firstMs: 7, factor: 1.7, maxMs: 4000, forgetAfterMs: 60_000 })]

interface Counted {
  readonly table: Table
  readonly counter: FleetCounter
}

interface Rule extends Counted {
  readonly id: string
  readonly algorithm: string
  readonly enforced: boolean
  readonly timeoutUs: number | undefined
  readonly meters: readonly Meter[]
  readonly gate: Counted
}

/** A charge that both stores have counted. */
interface Receipt extends Pick<Rule, 'table' | 'counter'> {
  readonly key: string
  readonly cost: number
  readonly moment: number
  readonly wait: number
  readonly slot: number
  readonly resetsBefore: number
}

interface Asked extends Counted {
  readonly key: string
  readonly cost: number
  readonly enforced: boolean
  readonly mayWait: boolean
}

export interface StoreWalkOptions {
  readonly create: CreateWalkedStore
  readonly prefix: string
  readonly start: number
  /** Versions of rules are kept for a while after a change; default: they are forgotten at once. */
  readonly keepsVersions?: boolean | undefined
  /** The algorithm of each rule. */
  readonly algorithms: readonly string[]
  /** Numbers for each rule. */
  readonly rules: readonly Dice[]
}

/**
 * One and the same random walk on memory and a shared store: calls alone and together, refunds, costs settled up and down, reservations that
 * are settled, released or left to end, resets, blocks, and rules that change their limits, levels and algorithms. Every answer of the one is compared with the other's.
 */
export class StoreWalk {
  readonly #memory = new MemoryStore()
  readonly #store: WalkedStore
  readonly #rules: Rule[]
  readonly #usedAlgorithms: Set<string>[]
  readonly #end: number
  readonly #keepsVersions: boolean
  readonly #reservations: WalkReservations
  #receipts: Receipt[] = []
  #now: number
  #retryUs = 0

  constructor({ create, prefix, start, keepsVersions = false, algorithms, rules }: StoreWalkOptions) {
    this.#now = startFrom(start)
    // no process renews leases here, and in memory none ends
    this.#end = this.#now + LEASE_MS * 1000 - 1000
    this.#keepsVersions = keepsVersions
    this.#store = create({ prefix, now: () => this.#now, forgetsLimits: !keepsVersions })
    this.#reservations = new WalkReservations(this.#memory, this.#store)
    this.#usedAlgorithms = rules.map((_, i) => new Set([pick(algorithms, i)]))
    this.#rules = rules.map((dice, i) => this.#createRule(`rule${i}`, pick(algorithms, i), dice))
  }

  /** Makes one move; throws an AssertionError if the stores differ. */
  async step(dice: Dice): Promise<void> {
    const [what = 0, who = 0, many = 0] = dice
    const limit = { count: 1 + (many % 20), periodMs: pick([1, 100, 1000, 60_000], many) }
    const next = nextMoment(this.#now, dice.slice(3), limit, this.#retryUs)
    this.#now = this.#rules.some(({ counter }) => counter.needsRelease)
      ? Math.max(this.#now, Math.min(next, this.#end))
      : next
    this.#reservations.releaseEnded(this.#now)
    const place = who % this.#rules.length
    const rule = this.#rules[place]!
    const key = pick(KEYS, many)
    switch (what % 20) {
      case 0:
        return this.#refund(who, 1)
      case 1:
        return this.#refund(who, many)
      case 2:
        return this.#settleUp(who, 1 + (many % 9))
      case 3:
        return this.#change(place, dice)
      case 4:
        return many % 5 === 0 ? this.#changeAlgorithm(place, dice) : this.#change(place, dice)
      case 5:
        return this.#reset(rule, key)
      case 6:
        return many % 2 === 0 ? this.#block(rule, key, blockCostFrom(many)) : this.#unblock(rule, key, many % 4 === 1)
      case 8:
      case 9:
      case 10:
        return this.#reservations.settle(dice, this.#now)
      case 11:
        return this.#reservations.repeat(dice, this.#now)
      default: {
        // calls of one turn travel together, one that comes alone goes another way through the script
        const calls = pick([1, 1, 2, 5], many)
        await Promise.all(Array.from({ length: calls }, (_, i) => this.#call(dice.map(die => die + i * 37))))
      }
    }
  }

  close(): void {
    this.#store.close()
  }

  #createRule(id: string, algorithm: string, dice: Dice): Rule {
    const [levels = 0, wait = 0, shadow = 0] = dice
    const enforced = shadow % 4 > 0
    const timeoutUs = pick([undefined, undefined, 1, 1000, 1_000_000], wait)
    const meters = metersOf(algorithm, limitsFrom(levels, dice), dice, timeoutUs)
    const gateRule = { id, algorithm: blocking.name, enforced, meters: [pick(blockMeters, levels)] }
    return {
      ...{ id, algorithm, enforced, timeoutUs, meters },
      table: this.#memory.createTable(id, meters),
      counter: this.#store.createCounter({ id, algorithm, enforced, meters }),
      gate: {
        table: this.#memory.createTable(`${id} block`, gateRule.meters),
        counter: this.#store.createCounter(gateRule),
      },
    }
  }

  async #call(dice: Dice): Promise<void> {
    const [kind = 0, who = 0, wait = 0] = dice
    const what = kind % 20 === 7 ? 'look' : 'take'
    const met = this.#rules.filter((_, i) => ((who >> i) & 1) === 0 || i === who % this.#rules.length)
    const asked = met.flatMap((rule, i) => {
      const { table, counter, enforced } = rule
      const key = pick(KEYS, who >> (2 + i))
      const mayWait = (wait >> i) % 3 > 0
      const charge: Asked = { table, counter, key, cost: costFrom(dice.slice(2), 10), enforced, mayWait }
      const gate: Asked = { ...rule.gate, key, cost: 0, enforced, mayWait: false }
      return (kind >> 5) % 2 === 0 ? [charge] : [charge, gate]
    })
    await this.#ask(asked, what, this.#reservations.termsFrom(dice))
  }

  /** Sends a call to both stores, and compares their answers. */
  async #ask(
    asked: readonly Asked[],
    what: 'take' | 'look',
    { id, holdUs } = { id: 0, holdUs: 0 },
  ): Promise<{ allowed: boolean; locals: LocalCharge[] }> {
    const locals = asked.map(({ table, key, cost, enforced, mayWait }): LocalCharge => {
      return { ...localCharge(table), key, cost, enforced, mayWait }
    })
    const shared = asked.map(({ counter, key, cost, enforced, mayWait }): FleetCharge => {
      const reserves = holdUs > 0 && cost > 0 && !counter.needsRelease
      return {
        ...fleetCharge(counter),
        ...{ key, cost, enforced, mayWait },
        ...(reserves && { holdUs, reservation: id }),
      }
    })
    const resetsBefore = resetsSoFar()
    const allowed = this.#memory[what](locals, locals.length, this.#now)
    const expected = { allowed, now: this.#now, charges: locals.map(seen) }
    const answer = await this.#store[what](shared)
    assert.deepStrictEqual({ allowed: answer.allowed, now: answer.now, charges: shared.map(seen) }, expected)
    const retryUs = Math.max(...locals.map(({ wait }) => wait))
    // a changed limit may need thousands of years, which no clock counts in microseconds
    this.#retryUs = retryUs < 1e14 ? retryUs : 0
    if (what === 'look' || !allowed) return { allowed, locals }
    locals.forEach(({ key, cost, fits, wait, slot }, i) => {
      const { table, counter } = asked[i]!
      if (cost === 0 || !fits) return
      const receipt = { table, counter, key, cost, moment: this.#now + wait, wait, slot, resetsBefore }
      if (shared[i]!.holdUs > 0) this.#reservations.add({ ...receipt, id, holdUs, until: this.#now + holdUs })
      else this.#receipts.push(receipt)
    })
    return { allowed, locals }
  }

  /** Gives back a charge, or a part of it. */
  async #refund(which: number, share: number): Promise<void> {
    const last = this.#receipts.length - 1
    if (last < 0) return
    const [receipt] = this.#receipts.splice(which % 3 > 0 ? last : which % (last + 1), 1)
    const { counter, key, moment, wait, resetsBefore } = receipt!
    const cost = Math.max(1, receipt!.cost - (share % receipt!.cost))
    if (cost < receipt!.cost) this.#receipts.push({ ...receipt!, cost: receipt!.cost - cost })
    this.#store.giveBack([{ counter, key, cost, moment, wait, resetsBefore }])
    refundLocal({ ...receipt!, cost }, this.#now, 'all')
    await this.#arrival(this.#rules.find(({ table }) => table === receipt!.table)!.counter)
  }

  /** Resolves when a refund has arrived. No caller waits for it; the next question is answered after it. */
  async #arrival(counter: FleetCounter): Promise<void> {
    await this.#store.look([fleetCharge(counter)])
  }

  /** Charges more to a call that was admitted, as far as there is room. */
  async #settleUp(which: number, missing: number): Promise<void> {
    const receipt = this.#receipts[which % Math.max(1, this.#receipts.length)]
    if (!receipt || receipt.counter.needsRelease) return
    const { table, key } = receipt
    const { counter, enforced } = this.#rules.find(rule => rule.table === table)!
    const charge: Asked = { table, counter, key, cost: missing, enforced, mayWait: false }
    const { locals } = await this.#ask([charge], 'take')
    const room = Math.min(missing, ...locals[0]!.remaining)
    if (!locals[0]!.fits && room > 0) await this.#ask([{ ...charge, cost: room }], 'take')
  }

  async #reset({ table, counter }: Counted, key: string): Promise<void> {
    this.#reservations.forget(table, key)
    table.reset(key)
    await this.#store.reset(counter, key)
  }

  /** Ends a block; as a limiter does it, with what the rule has counted, or alone. */
  async #unblock(rule: Rule, key: string, isAlone: boolean): Promise<void> {
    if (!isAlone && !rule.counter.needsRelease) await this.#reset(rule, key)
    await this.#reset(rule.gate, key)
  }

  async #block({ gate }: Rule, key: string, ms: number): Promise<void> {
    await this.#ask([{ ...gate, key, cost: ms, enforced: true, mayWait: false }], 'take')
    this.#receipts.pop()
  }

  /** Gives a rule other limits, periods and levels. */
  async #change(place: number, dice: Dice): Promise<void> {
    const rule = this.#rules[place]!
    await this.#reservations.settleAll(rule.table, this.#now)
    const meters = metersOf(rule.algorithm, limitsFrom(dice[2]!, dice), dice, rule.timeoutUs)
    const counter = this.#store.createCounter({ ...rule, meters })
    await this.#store.continued()
    rule.table.adopt(meters, this.#now, { keepsPast: this.#keepsVersions })
    this.#rules[place] = { ...rule, meters, counter }
    await this.#arrival(counter)
  }

  /** Gives a rule an algorithm that it did not have before: it goes on if it counts in the same way, and starts again if not. */
  async #changeAlgorithm(place: number, dice: Dice): Promise<void> {
    const used = this.#usedAlgorithms[place]!
    const algorithm = walkAlgorithms.find((name, i) => i >= dice[1]! % walkAlgorithms.length && !used.has(name))
    if (algorithm === undefined) return
    used.add(algorithm)
    const before = this.#rules[place]!
    // a call that waits by another algorithm is known to its version as long as that is kept, and so is a reset since: not so to this walk
    this.#receipts = this.#receipts.filter(({ table, moment }) => table !== before.table || moment <= this.#now)
    if (algorithm !== 'concurrency' && before.algorithm !== 'concurrency') {
      this.#rules[place] = { ...before, algorithm }
      return this.#change(place, dice)
    }
    const { table, id } = before
    await this.#reservations.settleAll(table, this.#now)
    this.#receipts = this.#receipts.filter(receipt => receipt.table !== table)
    const { gate, ...rule } = this.#createRule(id, algorithm, dice)
    this.#rules[place] = { ...rule, gate }
    // Redis would go on with calls that the rule has counted before it counted slots, which memory has forgotten
    for (const { counter } of [rule, gate]) for (const key of KEYS) await this.#store.reset(counter, key)
    this.#now++
  }
}

/** Returns the cost of a block that is set by hand, or by the rule. */
function blockCostFrom(many: number): number {
  const ms = 1 + (many % 5000)
  return many % 4 === 0 ? ms : firstBlockCost(ms)
}

function limitsFrom(levels: number, dice: Dice): Dice[] {
  return Array.from({ length: 1 + (levels % 3) }, (_, level) => dice.slice(level, level + 2))
}

function metersOf(algorithm: string, limits: readonly Dice[], options: Dice, timeoutUs: number | undefined): Meter[] {
  return limits.map(limit => {
    if (algorithm === 'concurrency') return concurrency.meter({ count: limit[0]! % 7, periodMs: 0 }, {})
    return subjects[algorithm]!(limit, options, timeoutUs).meter
  })
}

/** Returns the answer of a store to a charge. Delays over 285 years are none that pass: Redis answers "never" for them. */
export function seen({ delays, wait, fits, remaining, resets }: Charge): object {
  const sane = (us: number) => {
    if (us > Number.MAX_SAFE_INTEGER) return Number.POSITIVE_INFINITY
    // of a hundred years and more, a number has no room for the fractions that both sides round
    return us < 3e15 ? us : Math.round(us / 1000) * 1000
  }
  return { delays: delays.map(sane), wait: sane(wait), fits, remaining: [...remaining], resets: resets.map(sane) }
}
