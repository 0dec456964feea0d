import { within } from './deadline.ts'
import { type FleetCounter, type FleetStore, fleetCharge } from './fleet-store.ts'
import type { SharedCharge } from './shared-charge.ts'
import { CROWD, type Table } from './table.ts'

interface Debt {
  readonly counter: FleetCounter
  readonly key: string
  readonly table: Table
  cost: number
}

const MOST = 100_000
const AT_ONCE = 64
const TRIES = 3
/** A store that takes longer for so few does not answer. */
const CHUNK_MS = 1000

/**
 * What was admitted in this process without the store, to be counted there when it can be asked again: as much as still
 * matters, and as fits. What does not fit was over the limit.
 */
export class Debts {
  #debts = new Map<FleetCounter, Map<string, Debt>>()
  #size = 0
  /** Places that calls under way hold in this process only. */
  readonly #places = new Set<SharedCharge>()

  get isEmpty(): boolean {
    return this.#size === 0 && this.#places.size === 0
  }

  add(charge: SharedCharge): void {
    const { counter, key, cost, table, slot } = charge
    if (counter.held) {
      this.#places.add(charge)
      return
    }
    // whom this process could not tell apart from others, the store cannot be told of
    if (slot === CROWD && key !== '') return
    const known = this.#debts.get(counter) ?? new Map<string, Debt>()
    this.#debts.set(counter, known)
    const debt = known.get(key)
    if (debt) debt.cost += cost
    else if (this.#size < MOST) {
      known.set(key, { counter, key, table, cost })
      this.#size++
    }
  }

  /** The store has counted it after all; or the place of a call that has ended is free. */
  cancel(charge: SharedCharge): void {
    if (charge.counter.held) this.#places.delete(charge)
    else this.#pay(charge.counter, charge.key, charge.cost)
  }

  forget(counter: FleetCounter, key: string): void {
    this.#pay(counter, key, Number.POSITIVE_INFINITY)
  }

  /**
   * Counts in the store what is owed; where the store `hasForgotten`, also what is known here of the time before. Returns
   * what did not fit. Throws where the store cannot be asked; what was not counted is then still owed.
   */
  async settle(store: FleetStore, now: () => number, hasForgotten: boolean): Promise<number> {
    await within(Promise.all([...this.#places].map(charge => this.#hold(charge, store))), CHUNK_MS)
    const owed = [...this.#debts.values()].flatMap(known => [...known.values()])
    const failures: unknown[] = []
    let over = 0
    for (let from = 0; from < owed.length; from += AT_ONCE) {
      const some = owed.slice(from, from + AT_ONCE)
      const counting = Promise.allSettled(some.map(debt => this.#count(debt, store, now(), hasForgotten)))
      for (const outcome of await within(counting, CHUNK_MS)) {
        if (outcome.status === 'fulfilled') over += outcome.value
        else failures.push(outcome.reason)
      }
    }
    if (failures.length > 0) throw failures[0]
    return over
  }

  async #count(debt: Debt, store: FleetStore, now: number, hasForgotten: boolean): Promise<number> {
    const { counter, key, cost } = debt
    const used = usedHere(debt, now)
    const due = hasForgotten ? used : Math.min(cost, used)
    let left = due
    for (let tries = 0; left > 0 && tries < TRIES; tries++) {
      const charge = Object.assign(fleetCharge(counter), { key, cost: 1, mayWait: false })
      await store.look([charge])
      const fitting = Math.min(left, ...charge.remaining)
      if (fitting === 0) break
      const taken = Object.assign(fleetCharge(counter), { key, cost: fitting, mayWait: false })
      if ((await store.take([taken])).allowed) left -= fitting
    }
    this.#pay(counter, key, cost)
    return left
  }

  /** Lets a place that is held here be held in the store, where its call gives it back. */
  async #hold(charge: SharedCharge, store: FleetStore): Promise<void> {
    const { counter, key, cost } = charge
    const held = Object.assign(fleetCharge(counter), { key, cost, enforced: charge.enforced })
    const { allowed, now } = await store.take([held])
    if (!allowed) return
    if (!this.#places.delete(charge)) store.refund([held], now)
    else Object.assign(charge, { countedBy: 'fleet', moment: now })
  }

  #pay(counter: FleetCounter, key: string, cost: number): void {
    const known = this.#debts.get(counter)
    const debt = known?.get(key)
    if (!known || !debt) return
    debt.cost -= cost
    if (debt.cost > 0) return
    known.delete(key)
    this.#size--
    if (known.size === 0) this.#debts.delete(counter)
  }
}

/** The most that any level knows to be used. */
function usedHere({ table, key }: Debt, now: number): number {
  const slot = table.find(key)
  if (slot === CROWD && key !== '') return 0
  const used = table.meters.map((meter, level) => {
    const capacity = meter.remaining(new Float64Array(meter.slots), 0, 0)
    return capacity - meter.remaining(table.state(slot), table.base(slot) + table.offsets[level]!, now)
  })
  return Math.max(...used)
}
