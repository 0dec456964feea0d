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
  #timer: NodeJS.Timeout | undefined

  add(transfer: Transfer): void {
    this.#transfers.add(transfer)
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref()
  }

  delete(transfer: Transfer): void {
    this.#transfers.delete(transfer)
  }

  #check(): void {
    const now = performance.now()
    for (const transfer of this.#transfers) {
      if (transfer.isOver) this.#transfers.delete(transfer)
      else transfer.check(now)
    }
    if (this.#transfers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
