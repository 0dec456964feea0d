import type { LedgerChange, TransactionalStore } from 'diana-limiter/store'

/** The store in which the processes of a case count together, as long as it is not down. */
export class SharedCounts implements TransactionalStore {
  isDown = false
  readonly #ledgers = new Map<string, string>()

  async transact(_keys: readonly string[], change: LedgerChange): Promise<void> {
    this.#ask()
    for (const { key, ledger } of change(this.#ledgers)) {
      if (ledger === undefined) this.#ledgers.delete(key)
      else this.#ledgers.set(key, ledger)
    }
  }

  async keys(prefix: string, most: number): Promise<string[]> {
    this.#ask()
    return [...this.#ledgers.keys()].filter(key => key.startsWith(prefix)).slice(0, most)
  }

  #ask(): void {
    if (this.isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  }
}
