import assert from 'node:assert/strict'
import type { CompiledRule } from '../../rules/compile.ts'
import { type LocalCharge, localCharge, MemoryStore } from '../../stores/memory/memory-store.ts'
import { refundLocal } from '../../stores/memory/refund-local.ts'
import { resetsSoFar, type Table } from '../../stores/memory/table.ts'
import { type FleetCharge, type FleetCounter, fleetCharge, type SharedStore } from '../../stores/store.ts'
import { seen } from '../store-walk.ts'
import { costFrom, type Dice, nextMoment, pick, startFrom } from '../walk.ts'

const KEYS = ['one', 'other', 'third {} \u{1f3f9} "quoted"']

interface ComparedRule {
  readonly rule: CompiledRule
  readonly table: Table
  readonly counter: FleetCounter
}

interface Receipt extends ComparedRule {
  readonly key: string
  readonly cost: number
  readonly moment: number
  readonly wait: number
  readonly slot: number
  readonly resetsBefore: number
}

/** The clock of both stores, in whole microseconds. */
export interface TestClock {
  now: number
}

/** Random calls, refunds and resets on a shared store and in memory: every answer must be the same. */
export class StoreComparison {
  readonly #store: SharedStore
  readonly #clock: TestClock
  readonly #memory = new MemoryStore()
  readonly #rules: readonly ComparedRule[]
  readonly #receipts: Receipt[] = []
  #retryUs = 0

  constructor(store: SharedStore, clock: TestClock, rules: readonly CompiledRule[], start = 0) {
    this.#store = store
    this.#clock = clock
    clock.now = startFrom(start)
    this.#rules = rules.map(rule => ({
      rule,
      table: this.#memory.createTable(rule.id, rule.meters),
      counter: store.createCounter(rule),
    }))
  }

  /** Makes one move; throws an AssertionError if the stores differ. */
  async step(dice: Dice): Promise<void> {
    const [what = 0, who = 0, many = 0] = dice
    const asked = this.#rules[who % this.#rules.length]!
    // slots are held by leases, which end by time in some stores
    if (!this.#rules.some(({ counter }) => counter.needsRelease)) {
      const { periodMs } = asked.rule.limits[0]!
      const limit = { count: asked.rule.limits[0]!.count || 1, periodMs: periodMs || 1000 }
      this.#clock.now = nextMoment(this.#clock.now, dice.slice(3), limit, this.#retryUs)
    }
    if (what % 10 === 0) return await this.#refund(many)
    if (what % 10 === 1) return await this.#reset(asked, pick(KEYS, many))
    const rules = this.#rules.filter(one => one === asked || many % 2 === 0)
    await this.#decide(what % 10 === 2 ? 'look' : 'take', rules, dice)
  }

  async #decide(what: 'take' | 'look', rules: readonly ComparedRule[], dice: Dice): Promise<void> {
    const [, who = 0, many = 0] = dice
    const asked = rules.map(({ rule }, i) => ({
      key: pick(KEYS, who >> (2 + i)),
      cost: costFrom(dice.slice(2), Math.min(20, rule.limits[0]!.count)),
      enforced: rule.enforced,
      mayWait: (many >> i) % 3 > 0,
    }))
    const locals = rules.map(({ table }, i): LocalCharge => ({ ...localCharge(table), ...asked[i]! }))
    const charges = rules.map(({ counter }, i): FleetCharge => ({ ...fleetCharge(counter), ...asked[i]! }))
    const { now } = this.#clock
    const resetsBefore = resetsSoFar()
    const allowed = this.#memory[what](locals, locals.length, now)
    const answer = await this.#store[what](charges)
    assert.deepStrictEqual(
      { allowed: answer.allowed, now: answer.now, charges: charges.map(seen) },
      { allowed, now, charges: locals.map(seen) },
      `${what} at ${now} µs of ${asked.map(({ key, cost }) => `cost ${cost} for ${JSON.stringify(key)}`).join(' and ')}`,
    )
    const retryUs = Math.max(...locals.map(({ wait }) => wait))
    this.#retryUs = retryUs < 1e14 ? retryUs : 0
    if (what === 'look' || !allowed) return
    locals.forEach(({ key, cost, fits, wait, slot }, i) => {
      if (cost > 0 && fits) {
        this.#receipts.push({ ...rules[i]!, key, cost, moment: now + wait, wait, slot, resetsBefore })
      }
    })
  }

  async #refund(which: number): Promise<void> {
    if (this.#receipts.length === 0) return
    const [receipt] = this.#receipts.splice(which % this.#receipts.length, 1)
    const { counter, key, cost, moment, wait, resetsBefore } = receipt!
    this.#store.giveBack([{ counter, key, cost, moment, wait, resetsBefore }])
    refundLocal(receipt!, this.#clock.now, 'all')
    // a refund has no answer, and is seen by the next request
    await this.#store.look([{ ...fleetCharge(counter), key }])
  }

  async #reset({ table, counter }: ComparedRule, key: string): Promise<void> {
    table.reset(key)
    await this.#store.reset(counter, key)
  }
}
