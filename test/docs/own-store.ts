import {
  type Answered,
  type CatchUp,
  catchUpState,
  decideCharges,
  type FleetCharge,
  type FleetCounter,
  type FleetRefund,
  type FleetRule,
  idleAt,
  refundCharge,
  resetState,
  type SharedStore,
  stateSize,
} from 'diana-limiter/store'

/** The numbers of each key, by rule and key: what a database would hold. */
export type Rows = Map<string, Map<string, Float64Array>>

interface RowCounter extends FleetCounter {
  readonly rows: Map<string, Float64Array>
}

/** Counts in a map that several limiters share. `now` is in microseconds. */
export class MapStore implements SharedStore {
  readonly #rows: Rows
  readonly #now: () => number

  constructor(rows: Rows, now: () => number = () => Date.now() * 1000) {
    this.#rows = rows
    this.#now = now
  }

  createCounter({ id, algorithm, by, meters }: FleetRule): RowCounter {
    const name = JSON.stringify([id, algorithm, by, meters.map(({ slots }) => slots)])
    const rows = this.#rows.get(name) ?? new Map<string, Float64Array>()
    this.#rows.set(name, rows)
    return { meters, needsRelease: meters.some(meter => meter.held !== undefined), rows }
  }

  async take(charges: readonly FleetCharge[]): Promise<Answered> {
    return this.#decide('take', charges)
  }

  async look(charges: readonly FleetCharge[]): Promise<Answered> {
    return this.#decide('look', charges)
  }

  giveBack(refunds: readonly FleetRefund[]): void {
    for (const refund of refunds) refundCharge(refund, stateOf(refund), this.#now())
  }

  refund(charges: readonly FleetCharge[], now: number): void {
    this.giveBack(charges.map(({ counter, key, cost, wait }) => ({ counter, key, cost, moment: now + wait, wait })))
  }

  async catchUp(missed: CatchUp<FleetCounter>): Promise<void> {
    catchUpState(missed, stateOf(missed), this.#now())
  }

  async keys(counter: FleetCounter, most: number): Promise<string[]> {
    return [...(counter as RowCounter).rows.keys()].slice(0, most)
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    resetState(stateOf({ counter, key }), this.#now() + 1)
  }

  /** Deletes keys whose state means nothing any more; to be called from time to time. */
  sweep(counter: FleetCounter): void {
    const { rows } = counter as RowCounter
    for (const [key, state] of rows) if (idleAt(counter, state) <= this.#now()) rows.delete(key)
  }

  close(): void {}

  // a database reads, decides and writes the states of all charges in one transaction
  #decide(what: 'take' | 'look', charges: readonly FleetCharge[]): Answered {
    const now = this.#now()
    return { allowed: decideCharges(what, charges, charges.map(stateOf), now), now }
  }
}

function stateOf({ counter, key }: { counter: FleetCounter; key: string }): Float64Array {
  const { rows } = counter as RowCounter
  const state = rows.get(key) ?? new Float64Array(stateSize(counter))
  rows.set(key, state)
  return state
}
