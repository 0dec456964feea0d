/** The ledgers of a transaction; none under a key that was never written, or is deleted. */
export interface StoredLedgers {
  get(key: string): string | null | undefined
}

/** A ledger to be written. */
export interface LedgerWrite {
  readonly key: string
  /** Undefined: the ledger is deleted. */
  readonly ledger: string | undefined
  /** After this time it counts nothing, and may be deleted. */
  readonly keepMs: number
}

/**
 * Decides what is written, by what was read, and at once. It may be called again, with what was read then; if it throws, nothing is
 * written. `nowMs` is the clock of the store, in milliseconds since 1970; default: the clock of this process.
 */
export type LedgerChange = (ledgers: StoredLedgers, nowMs?: number) => readonly LedgerWrite[]

/** A store of your own: a text for each key, which is read and written in transactions. */
export interface TransactionalStore {
  /**
   * Reads the ledgers of these keys, which are sorted, calls `change` with them, and writes what it returns: all of it or nothing, and as
   * if no other transaction had come between. If that fails, it throws.
   */
  transact(keys: readonly string[], change: LedgerChange): Promise<unknown>
  /** Lists keys that begin with `prefix`, at most `most`. Without it, a rule that is changed continues only callers that come again soon. */
  keys?(prefix: string, most: number): Promise<readonly string[]>
  /** Ends what the store has opened, when the limiter is closed. */
  close?(): unknown
}
