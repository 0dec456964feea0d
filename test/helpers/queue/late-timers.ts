import type { Timers } from '../../../packages/limiter/src/queue/timers.ts'

interface Due {
  readonly at: number
  readonly order: number
  run(): void
}

/**
 * Timers in virtual time, each of them late by what `latenessMs` says when it is set, so that a later one may fire before an earlier
 * one; a timer with an infinite delay is lost.
 */
export class LateTimers implements Timers {
  /** Microseconds. */
  now: number
  /** By how much the next timers fire late. */
  latenessMs = 0
  /** By how much the next turn of the event loop is late. */
  turnMs = 0
  readonly #due = new Set<Due>()
  #order = 0

  constructor(now: number) {
    this.now = now
  }

  /** How many timers are set. */
  get size(): number {
    return this.#due.size
  }

  set(run: () => void, ms: number): NodeJS.Timeout {
    const at = this.now + (Math.max(1, Math.floor(ms)) + this.latenessMs) * 1000
    return this.at(at, run) as unknown as NodeJS.Timeout
  }

  clear(timer: NodeJS.Timeout | undefined): void {
    this.#due.delete(timer as unknown as Due)
  }

  soon(run: () => void): void {
    this.at(this.now + this.turnMs * 1000, run)
  }

  /** Runs something at a moment exactly. */
  at(moment: number, run: () => void): object {
    const due = { at: moment, order: this.#order++, run }
    this.#due.add(due)
    return due
  }

  /** Loses the timer that was set as the `index`th of those that have not fired. */
  lose(index: number): void {
    this.#due.delete([...this.#due][index]!)
  }

  /** Moves on to a moment; what is due until then runs at its own moment, and `settle` after each. */
  async advanceTo(moment: number, settle: () => Promise<void>): Promise<void> {
    for (let next = this.#next(moment); next; next = this.#next(moment)) {
      this.#due.delete(next)
      this.now = Math.max(this.now, next.at)
      next.run()
      await settle()
    }
    this.now = Math.max(this.now, moment)
  }

  #next(until: number): Due | undefined {
    let next: Due | undefined
    for (const due of this.#due) {
      if (due.at > until) continue
      if (!next || due.at < next.at || (due.at === next.at && due.order < next.order)) next = due
    }
    return next
  }
}
