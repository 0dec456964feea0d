import type { LogEntry } from '../formats/format.ts'

/** Calls are put in order within this time of the log, and at most this number of them at once. */
const SLACK_US = 60_000_000
const MOST = 1 << 17
const ENOUGH = 1 << 13

/** Puts entries in the order of their moments: servers write a line when a request ends, and several files are read side by side. */
export class InOrder {
  /** Entries that came too late to be put in order; they are taken as of the moment that was reached. */
  late = 0
  /** All entries that were taken out. */
  taken = 0
  /** By how much the latest of them was late. */
  latestUs = 0
  #pending: LogEntry[] = []
  #isSorted = true
  #newest = Number.NEGATIVE_INFINITY
  #reached = Number.NEGATIVE_INFINITY

  /** Takes an entry; true if some can be taken out. */
  add(entry: LogEntry): boolean {
    if (entry.at < this.#newest) this.#isSorted = false
    else this.#newest = entry.at
    return this.#pending.push(entry) >= ENOUGH && this.#isDue()
  }

  /** Returns the entries before which none can come any more; all if `isEnd` is true. */
  take(isEnd: boolean): LogEntry[] {
    const pending = this.#pending
    if (!this.#isSorted) pending.sort((a, b) => a.at - b.at || a.turn - b.turn)
    else if (pending.length > 0 && pending[0]!.turn !== 0) pending.sort((a, b) => a.at - b.at || a.turn - b.turn)
    this.#isSorted = true
    let ready = pending.length
    if (!isEnd) {
      const until = this.#newest - SLACK_US
      ready = pending.length >= MOST ? pending.length >> 1 : 0
      while (ready < pending.length && pending[ready]!.at <= until) ready++
    }
    this.#pending = pending.slice(ready)
    pending.length = ready
    this.taken += pending.length
    for (const entry of pending) {
      if (entry.at >= this.#reached) this.#reached = entry.at
      else {
        this.late++
        this.latestUs = Math.max(this.latestUs, this.#reached - entry.at)
        entry.at = this.#reached
      }
    }
    return pending
  }

  #isDue(): boolean {
    return (
      this.#pending.length >= MOST ||
      this.#pending[0]!.at <= this.#newest - 2 * SLACK_US ||
      this.#pending.length % ENOUGH === 0
    )
  }
}
