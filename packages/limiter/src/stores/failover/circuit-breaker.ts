import { StepRing } from '../../common/step-ring.ts'

const SECONDS = 5
const FLOOR = 20
const LATE_MS = 1000

/**
 * Says when to stop asking a store: when half of at least 20 calls in 5 seconds have failed, or 20 in a row while none
 * succeeded for `quietMs`. Answers that are late together, after one pause of the store, are no reason to stop: they count
 * only if answers have been late for a second. Moments are milliseconds.
 */
export class Breaker {
  readonly #quietMs: number
  readonly #calls = new StepRing(new Float64Array(SECONDS))
  readonly #failures = new StepRing(new Float64Array(SECONDS))
  #row = 0
  #lastSuccess = Number.NEGATIVE_INFINITY
  /** When the first of the answers was late that were late within the last seconds, and when the last. */
  #lateSince = Number.NEGATIVE_INFINITY
  #lastLate = Number.NEGATIVE_INFINITY

  constructor(options: { readonly quietMs: number }) {
    this.#quietMs = options.quietMs
  }

  succeeded(now: number): void {
    this.#calls.add(secondAt(now), 1)
    this.#row = 0
    this.#lastSuccess = now
  }

  /** A call has not got its answer in time; whether to stop asking. */
  late(now: number): boolean {
    if (now - this.#lastLate > SECONDS * 1000) this.#lateSince = now
    this.#lastLate = now
    return this.failed(now) && now - this.#lateSince >= LATE_MS
  }

  /** A call has failed; whether to stop asking. */
  failed(now: number): boolean {
    const second = secondAt(now)
    this.#calls.add(second, 1)
    this.#failures.add(second, 1)
    this.#row++
    if (this.#row >= FLOOR && now - this.#lastSuccess >= this.#quietMs) return true
    const calls = this.#calls.sum(second, SECONDS)
    return calls >= FLOOR && this.#failures.sum(second, SECONDS) * 2 >= calls
  }

  reset(): void {
    this.#calls.clear()
    this.#failures.clear()
    this.#row = 0
    this.#lastLate = Number.NEGATIVE_INFINITY
  }
}

function secondAt(now: number): number {
  return Math.floor(now / 1000)
}
