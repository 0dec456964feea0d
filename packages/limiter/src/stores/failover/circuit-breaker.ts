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
  readonly #calls = new Float64Array(SECONDS)
  readonly #failures = new Float64Array(SECONDS)
  #second = 0
  #row = 0
  #lastSuccess = Number.NEGATIVE_INFINITY
  /** When the first of the answers was late that were late within the last seconds, and when the last. */
  #lateSince = Number.NEGATIVE_INFINITY
  #lastLate = Number.NEGATIVE_INFINITY

  constructor(options: { readonly quietMs: number }) {
    this.#quietMs = options.quietMs
  }

  succeeded(now: number): void {
    this.#calls[this.#slotAt(now)]!++
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
    const slot = this.#slotAt(now)
    this.#calls[slot]!++
    this.#failures[slot]!++
    this.#row++
    if (this.#row >= FLOOR && now - this.#lastSuccess >= this.#quietMs) return true
    const calls = sum(this.#calls)
    return calls >= FLOOR && sum(this.#failures) * 2 >= calls
  }

  reset(): void {
    this.#calls.fill(0)
    this.#failures.fill(0)
    this.#row = 0
    this.#lastLate = Number.NEGATIVE_INFINITY
  }

  #slotAt(now: number): number {
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      const passed = Math.min(SECONDS, Math.max(1, second - this.#second))
      for (let i = 0; i < passed; i++) {
        const slot = Math.abs(second - i) % SECONDS
        this.#calls[slot] = 0
        this.#failures[slot] = 0
      }
      this.#second = second
    }
    return Math.abs(second) % SECONDS
  }
}

function sum(numbers: Float64Array): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
