import type { Overrun } from '../../algorithms/algorithm.ts'
import type { MemoryStore } from '../memory/memory-store.ts'
import type { Table } from '../memory/table.ts'
import { type Expiring, OpenReservations } from '../open-reservations.ts'

/** So long it is known that a reservation was settled after its end. */
const SETTLED_US = 60_000_000

/** A charge that waits to be settled, or, with an amount of 0, one that was settled after its end. */
interface Reserved extends Expiring {
  readonly name: string
  readonly table: Table
  readonly key: string
  readonly cost: number
  readonly moment: number
}

/** What was really used of a charge. */
export interface Settled {
  readonly id: number
  readonly key: string
  readonly cost: number
  readonly moment: number
  readonly wait: number
  readonly actual: number
  readonly until: number
  readonly overrun: Overrun
}

/** The reservations of all processes that count together here; the ids are those of the processes. */
export class ReservedCharges {
  readonly #store: MemoryStore
  readonly #open = new OpenReservations<Reserved>()
  readonly #byName = new Map<string, Reserved>()

  constructor(store: MemoryStore) {
    this.#store = store
  }

  add(id: number, counted: { name: string; table: Table }, charge: Omit<Reserved, 'name' | 'table'>): void {
    const { name, table } = counted
    const { key, cost, moment, holdUs, until } = charge
    const reserved = { name: nameOf(id, name, key), table, key, cost, moment, holdUs, until }
    this.#byName.set(reserved.name, reserved)
    const dropped = this.#open.add(reserved)
    if (dropped) this.#byName.delete(dropped.name)
  }

  /** Refunds what was not settled in time, each as of its end; before anything else is counted. */
  releaseEnded(now: number, giveBack: (charge: Reserved) => void): void {
    for (const reserved of this.#open.takeEnded(now)) {
      this.#byName.delete(reserved.name)
      if (reserved.cost > 0) giveBack(reserved)
    }
  }

  /** Settles a reservation, once; after its end, all that was used is charged. */
  settle(counted: { name: string; table: Table }, settled: Settled, now: number): void {
    const { name, table } = counted
    const { id, key, cost, moment, wait, actual, until, overrun } = settled
    const known = this.#byName.get(nameOf(id, name, key))
    if (known?.cost === 0 || (known === undefined && until > now)) return
    if (known) {
      this.#open.delete(known)
      this.#byName.delete(known.name)
    } else this.add(id, counted, { key, cost: 0, moment, holdUs: SETTLED_US, until: now + SETTLED_US })
    const slot = table.find(key)
    if (table.isResetSince(key, moment - wait)) return
    const reserved = known ? cost : 0
    if (actual < reserved) table.giveBack(slot, now, reserved - actual, moment)
    else if (actual > reserved) this.#store.overdraw(table, key, now, actual - reserved, overrun)
  }
}

function nameOf(id: number, name: string, key: string): string {
  return `${id} ${name} ${key}`
}
