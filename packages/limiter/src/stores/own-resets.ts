import { resetsSoFar } from './memory/table.ts'
import type { FleetCounter, FleetRefund } from './store.ts'

/** The largest number of callers whose resets are known. */
const MOST_RESETS = 10_000

/** The counter of a store that keeps a ledger for each caller. */
interface LedgerCounter extends FleetCounter {
  ledgerKeyOf(key: string): string
}

/**
 * The callers that this process has reset. A store knows charges of before a reset by their moments; those of the very same moment, of one
 * batch or of a clock in whole milliseconds, this process knows by their order.
 */
export class OwnResets {
  /** By ledger, how many keys had been reset in this process then. */
  readonly #resets = new Map<string, number>()

  note(counter: LedgerCounter, key: string): void {
    const ledgerKey = counter.ledgerKeyOf(key)
    this.#resets.delete(ledgerKey)
    this.#resets.set(ledgerKey, resetsSoFar())
    if (this.#resets.size > MOST_RESETS) this.#resets.delete(this.#resets.keys().next().value!)
  }

  /** True if the caller of a charge was reset after it. */
  isForgotten({ counter, key, resetsBefore }: FleetRefund): boolean {
    if (this.#resets.size === 0 || resetsBefore === undefined) return false
    return (this.#resets.get((counter as LedgerCounter).ledgerKeyOf(key)) ?? 0) > resetsBefore
  }
}
