import type { RetryBudgetSettings } from '../settings/upstreams/upstream-settings.ts'

const seconds = 10

/** Bounds second tries by the calls of the last ten seconds, so that the calls of an outage are not sent twice. */
export class RetryBudget {
  readonly #settings: RetryBudgetSettings
  readonly #calls = new Float64Array(seconds)
  readonly #tries = new Float64Array(seconds)
  #second = 0

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings
  }

  /** A call has come. */
  count(now: number): void {
    this.#advance(now)
    this.#calls[this.#second % seconds]!++
  }

  /** Whether a call may be tried again now; counts the try if so. */
  take(now: number): boolean {
    this.#advance(now)
    const { percent, perSecond } = this.#settings
    const most = (sum(this.#calls) * percent) / 100 + perSecond * seconds
    if (sum(this.#tries) + 1 > most) return false
    this.#tries[this.#second % seconds]!++
    return true
  }

  /** Forgets the seconds that have left the window. */
  #advance(now: number): void {
    const second = Math.max(this.#second, Math.floor(now / 1000))
    const first = Math.max(this.#second + 1, second - seconds + 1)
    for (let past = first; past <= second; past++) this.#calls[past % seconds] = this.#tries[past % seconds] = 0
    this.#second = second
  }
}

function sum(numbers: Float64Array): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
