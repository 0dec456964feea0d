import { parseDuration } from '../common/duration.ts'
import { DianaError } from '../errors.ts'
import { LONGEST_HOLD_MS } from '../rules/schema/cost.ts'
import type { ActualCost, Verdict } from '../verdict.ts'
import type { CheckOptions } from './check-options.ts'
import type { PendingVerdict } from './pending-verdict.ts'

/** How an amount is reserved. */
export interface ReserveOptions extends CheckOptions {
  /** What is not settled is released after so long, milliseconds or a duration such as `10m`; default: that of each rule, or 10m. */
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

/** A reservation by a verdict. */
export class VerdictReservation implements Reservation {
  readonly #verdict: PendingVerdict
  #isEnded = false

  constructor(verdict: PendingVerdict) {
    this.#verdict = verdict
  }

  get id(): string {
    return (this.#verdict.reservation ?? 0).toString(36)
  }

  get verdict(): Verdict {
    return this.#verdict
  }

  get allowed(): boolean {
    return this.#verdict.allowed
  }

  async settle(actual: ActualCost): Promise<void> {
    if (this.#isEnded) return
    this.#verdict.settle(actual)
    this.#isEnded = true
    await this.#verdict.arrival()
  }

  async release(): Promise<void> {
    await this.settle(0)
  }

  /** For `await using`: what was not settled by the end of the block is released. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** In microseconds; 0 if that is left to the rules. */
export function holdUsOf({ hold }: ReserveOptions): number {
  if (hold === undefined) return 0
  const ms = typeof hold === 'string' ? parseDuration(hold) : hold
  if (typeof ms === 'number' && ms >= 1 && ms <= LONGEST_HOLD_MS) return Math.round(ms * 1000)
  throw new DianaError('BAD_CALL', `hold must be a duration from 1 ms to 1d, such as 10m, not ${String(hold)}`)
}
