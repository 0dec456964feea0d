import type { LedgerChange, TransactionalStore } from '../../stores/transactional-store.ts'

/** Ledgers in a map that several limiters of a test share. */
export class MapStore implements TransactionalStore {
  readonly ledgers: Map<string, string>

  constructor(ledgers: Map<string, string> = new Map()) {
    this.ledgers = ledgers
  }

  async transact(_keys: readonly string[], change: LedgerChange): Promise<void> {
    for (const { key, ledger } of change(this.ledgers)) {
      if (ledger === undefined) this.ledgers.delete(key)
      else this.ledgers.set(key, ledger)
    }
  }

  async keys(prefix: string, most: number): Promise<string[]> {
    return [...this.ledgers.keys()].filter(key => key.startsWith(prefix)).slice(0, most)
  }
}
