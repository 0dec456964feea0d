import type { ActualCost, Verdict } from '../verdict.ts'
import type { CheckOptions } from './check-options.ts'

/** How an amount is reserved. */
export interface ReserveOptions extends CheckOptions {
  /** What nobody settles is released after so long, milliseconds or a duration such as `10m`; default: that of each rule, or 10m. */
  readonly hold?: number | string | undefined
}

/**
 * An amount that was charged in advance by all rules of a call, or by none. It is settled once, at what was really used, or
 * released; what is neither is released by the store.
 */
export interface Reservation extends AsyncDisposable {
  /** Identifies it in the store. */
  readonly id: string
  readonly allowed: boolean
  readonly verdict: Verdict
  /** Makes it count as what was really used; resolves when the stores know. Again, or after `release`, it does nothing. */
  settle(actual: ActualCost): Promise<void>
  /** Takes back what was reserved, by the rules whose costs can be settled; resolves when the stores know. */
  release(): Promise<void>
}

/** A reservation by a verdict, which is released when the block that uses it ends, unless it was settled. */
export class VerdictReservation implements Reservation {
  readonly id: string
  readonly verdict: Verdict
  readonly #arrival: () => Promise<void>
  #isEnded = false

  /** `arrival` resolves when the stores know what was settled. */
  constructor(id: string, verdict: Verdict, arrival: () => Promise<void>) {
    this.id = id
    this.verdict = verdict
    this.#arrival = arrival
  }

  get allowed(): boolean {
    return this.verdict.allowed
  }

  async settle(actual: ActualCost): Promise<void> {
    if (this.#isEnded) return
    this.verdict.settle(actual)
    this.#isEnded = true
    await this.#arrival()
  }

  async release(): Promise<void> {
    await this.settle(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
