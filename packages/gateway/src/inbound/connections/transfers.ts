import { type Repeated, repeat, visitAll } from 'diana-limiter/gateway'

/** Something under way, looked at again and again. */
export interface Transfer {
  /** Ends itself if it takes too long. */
  check(now: number): void
  /** Whether it need not be looked at any more. */
  readonly isOver?: boolean
}

const checkMs = 500

/** Everything under way: one clock for all of it. */
export class Transfers {
  readonly #transfers = new Set<Transfer>()
  #repeated: Repeated | undefined

  add(transfer: Transfer): void {
    this.#transfers.add(transfer)
    this.#repeated ??= repeat('transfers', checkMs, () => this.#check())
  }

  delete(transfer: Transfer): void {
    this.#transfers.delete(transfer)
  }

  #check(): void {
    const now = performance.now()
    const drop = (transfer: Transfer): boolean => this.#transfers.delete(transfer)
    const look = (transfer: Transfer): unknown => (transfer.isOver ? drop(transfer) : transfer.check(now))
    visitAll('transfers', this.#transfers, look, drop)
    if (this.#transfers.size > 0) return
    this.#repeated?.stop()
    this.#repeated = undefined
  }
}
