import { DianaError } from '../../../packages/limiter/src/errors.ts'
import { type CatchUp, catchUpTable } from '../../../packages/limiter/src/stores/catch-up.ts'
import { type LocalCharge, localCharge, MemoryStore } from '../../../packages/limiter/src/stores/memory/memory-store.ts'
import type { Table } from '../../../packages/limiter/src/stores/memory/table.ts'
import type {
  Answered,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  SharedStore,
  StoreWatcher,
} from '../../../packages/limiter/src/stores/store.ts'

interface DoubleCounter extends FleetCounter {
  readonly table: Table
}

/** A shared store in the test's process that fails on demand. */
export class FleetDouble implements SharedStore {
  now = 1e15
  asked = 0
  era = 1
  watcher: StoreWatcher | undefined
  /** What happens to each question before it is answered. */
  before: () => Promise<void> = async () => {}
  readonly #memory = new MemoryStore()
  readonly #counters = new Map<string, DoubleCounter>()

  createCounter({ id, meters }: FleetRule): FleetCounter {
    const known = this.#counters.get(id)
    if (known) return known
    const table = this.#memory.createTable(id, meters)
    const counter = { meters, table, needsRelease: meters.some(meter => meter.held !== undefined) }
    this.#counters.set(id, counter)
    return counter
  }

  async take(charges: readonly FleetCharge[]): Promise<Answered> {
    this.asked++
    await this.before()
    const local = charges.map(localOf)
    const allowed = this.#memory.take(local, local.length, this.now)
    return this.#answer(charges, local, allowed)
  }

  async look(charges: readonly FleetCharge[]): Promise<Answered> {
    this.asked++
    await this.before()
    const local = charges.map(localOf)
    return this.#answer(charges, local, this.#memory.look(local, local.length, this.now))
  }

  giveBack(refunds: readonly FleetRefund[]): void {
    for (const { counter, key, cost, moment } of refunds) {
      const { table } = counter as DoubleCounter
      const slot = table.find(key)
      table.giveBack(slot, this.now, cost, moment)
    }
  }

  async catchUp(missed: CatchUp<FleetCounter>): Promise<void> {
    this.asked++
    await this.before()
    const { table } = missed.counter as DoubleCounter
    catchUpTable(table, this.#memory.slotFor(table, missed.key, this.now)!, missed, this.now)
  }

  watch(watcher: StoreWatcher): void {
    this.watcher = watcher
  }

  /** Loses its memory, as a server does that is started without its data. */
  forget(): void {
    this.era++
    for (const { table } of this.#counters.values()) for (const [key] of table.entries()) table.reset(key)
  }

  async keys(counter: FleetCounter, most: number): Promise<string[]> {
    await this.before()
    return Array.from((counter as DoubleCounter).table.entries(), ([key]) => key).slice(0, most)
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    ;(counter as DoubleCounter).table.reset(key)
  }

  close(): void {
    throw new DianaError('CLOSED', 'a shared client is closed by its owner')
  }

  /** What is left of a rule's level; default: the first level. */
  left(counter: FleetCounter, key: string, level = 0): number {
    const { table } = counter as DoubleCounter
    const slot = table.find(key)
    return table.meters[level]!.remaining(table.state(slot), table.base(slot) + table.offsets[level]!, this.now)
  }

  #answer(charges: readonly FleetCharge[], local: readonly LocalCharge[], allowed: boolean): Answered {
    charges.forEach((charge, i) => {
      const { delays, wait, fits, remaining, resets } = local[i]!
      Object.assign(charge, { wait, fits })
      charge.delays.splice(0, delays.length, ...delays)
      charge.remaining.splice(0, remaining.length, ...remaining)
      charge.resets.splice(0, resets.length, ...resets)
    })
    return { allowed, now: this.now }
  }
}

function localOf({ counter, key, cost, enforced, mayWait }: FleetCharge): LocalCharge {
  return Object.assign(localCharge((counter as DoubleCounter).table), { key, cost, enforced, mayWait })
}
