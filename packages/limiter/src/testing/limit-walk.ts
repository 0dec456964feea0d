import assert from 'node:assert/strict'
import type { Algorithm, Limit, Meter } from '../algorithms/algorithm.ts'
import { algorithms } from '../algorithms/index.ts'
import { LimitFamily } from '../stores/memory/limit-family.ts'
import { localCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import { refundLocal } from '../stores/memory/refund-local.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type FleetCounter, fleetCharge } from '../stores/store.ts'
import { type Dice, pick } from './walk.ts'
import type { CreateWalkedStore, WalkedStore } from './walked-store.ts'

/** Options without which an algorithm counts nothing. */
const needed: Readonly<Record<string, object>> = { 'warm-up': { warmUp: 1000 } }

/** The algorithms that count a key with several limits. */
export const limitSubjects: ReadonlyMap<string, Algorithm> = new Map(
  algorithms.flatMap(algorithm => (algorithm.limit === 'rate' ? [[algorithm.name, algorithm] as const] : [])),
)

/** Returns the most calls that a limit lets pass from one moment to another. */
function mostOf({ rate }: Meter, us: number): number {
  const { ceiling, most, onlyForCost1 } = rate!.envelope!
  if (most !== undefined) return most(us + 1)
  // calls of a higher cost pass and pay later
  if (ceiling === undefined || onlyForCost1) return Number.POSITIVE_INFINITY
  if (ceiling.kind === 'bucket') return ceiling.units + Math.floor(us * ceiling.perUs + 1e-6)
  const begun = Math.ceil(us / ceiling.periodUs)
  return ceiling.units * (ceiling.kind === 'window' ? Math.ceil((us + 1) / ceiling.periodUs) : 1 + begun)
}

interface Counted {
  readonly limit: Limit
  readonly table: Table
  readonly counter: FleetCounter
}

/**
 * A key whose limit changes from call to call, in memory and in a shared store: upgrades, downgrades, limits that the rule does not state, and
 * refunds. Both must give the same answers, and no interval may have more calls than the largest of the limits admits.
 */
export class LimitWalk {
  readonly #memory = new MemoryStore()
  readonly #store: WalkedStore
  readonly #algorithm: Algorithm
  readonly #family = new LimitFamily()
  readonly #stated: Counted[]
  readonly #others: Counted[]
  readonly #admitted: {
    readonly moment: number
    readonly cost: number
    readonly table: Table
    readonly slot: number
  }[] = []
  #now = 1_794_744_000_000_000
  #current = 0

  constructor(name: string, create: CreateWalkedStore, prefix: string, limits: readonly Limit[], stated: number) {
    this.#algorithm = limitSubjects.get(name)!
    this.#store = create({ prefix, now: () => this.#now, forgetsLimits: false })
    const meters = limits.map(limit => this.#algorithm.meter(limit, (needed[name] as Record<string, unknown>) ?? {}))
    const counted = limits.map((limit, i) => this.#countedBy(limit, i, meters[i]!, meters.slice(0, stated)))
    counted.forEach(({ table }, i) => void this.#family.add(table, i < stated))
    this.#stated = counted.slice(0, stated)
    this.#others = counted.slice(stated)
  }

  async step([what = 0, which = 0, wait = 0, many = 0]: Dice): Promise<void> {
    this.#now += pick([0, 0, 0, 1, 1000, 100_000, 400_000, 1_000_000, 7_000_000, 61_000_000, 200_000_000], wait)
    const limits = what % 11 === 0 && this.#others.length > 0 ? this.#others : this.#stated
    if (what % 3 === 0) this.#current = which
    // the store cannot take back what a limit from outside has admitted once another limit has continued it
    if (what % 13 === 1 && this.#others.length === 0) return this.#refund(which)
    await this.#ask(pick(limits, this.#current), what % 7 === 2 ? 'look' : 'take', pick([1, 1, 1, 2, 5], many))
  }

  /** Throws if an interval has more calls than any of the limits admits. */
  assertBound(): void {
    // a limit from outside of another period continues what the one before it has in its window
    if (this.#others.length > 0 && !this.#isOnePeriod) return
    const meters = [...this.#stated, ...this.#others].map(({ table }) => table.meters[0]!)
    for (let first = 0; first < this.#admitted.length; first++) {
      let sum = 0
      for (let last = first; last < this.#admitted.length; last++) {
        sum += this.#admitted[last]!.cost
        const us = this.#admitted[last]!.moment - this.#admitted[first]!.moment
        const most = Math.max(...meters.map(meter => mostOf(meter, us)))
        assert.ok(sum <= most, `${sum} calls in ${us} us, and the largest limit admits ${most}`)
      }
    }
  }

  get #isOnePeriod(): boolean {
    return new Set([...this.#stated, ...this.#others].map(({ limit }) => limit.periodMs)).size === 1
  }

  close(): void {
    this.#store.close()
  }

  #countedBy(limit: Limit, i: number, meter: Meter, limitMeters: readonly Meter[]): Counted {
    const table = this.#memory.createTable(`limit ${i}`, [meter])
    const { name } = this.#algorithm
    const rule = { id: 'rule', algorithm: name, enforced: true, meters: [meter], limitMeters }
    return { limit, table, counter: this.#store.createCounter(rule) }
  }

  async #ask({ table, counter }: Counted, what: 'look' | 'take', cost: number): Promise<void> {
    const local = { ...localCharge(table), key: 'ann', cost, mayWait: false }
    const shared = { ...fleetCharge(counter), key: 'ann', cost, mayWait: false }
    const allowed = this.#memory[what]([local], 1, this.#now)
    const answer = await this.#store[what]([shared])
    const seen = ({ fits, delays, remaining, resets }: typeof local | typeof shared) => ({
      fits,
      delays,
      remaining,
      resets,
    })
    assert.deepStrictEqual({ allowed: answer.allowed, ...seen(shared) }, { allowed, ...seen(local) })
    if (what === 'take' && allowed) this.#admitted.push({ moment: this.#now, cost, table, slot: local.slot })
  }

  async #refund(which: number): Promise<void> {
    const place = which % 2 === 0 ? this.#admitted.length - 1 : which % Math.max(1, this.#admitted.length)
    const [charged] = this.#admitted.splice(place, 1)
    if (charged === undefined) return
    const { cost, moment, table } = charged
    const { counter } = this.#stated.find(one => one.table === table) ?? this.#stated[0]!
    this.#store.giveBack([{ counter, key: 'ann', cost, moment, wait: 0 }])
    refundLocal({ ...charged, key: 'ann', resetsBefore: resetsSoFar() }, this.#now, 'all')
    await this.#store.look([fleetCharge(counter)])
  }
}
