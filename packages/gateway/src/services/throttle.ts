import type { ThrottleSettings } from '../settings/upstreams/upstream-settings.ts'

const parts = 20
/** The number of calls that are always sent: a few failures are no trouble. */
const FREE_CALLS = 10

/*
 * Adaptive throttling by the client (Google's SRE book, "Handling Overload"): with `requests` calls in the window, of which the
 * service has accepted `accepts`, the next one is refused with the probability
 *
 *   max(0, (requests - ratio * accepts) / (requests + 1))
 *
 * The calls that are refused here count as requests, so a service that accepts nothing gets ever fewer, but never none; what it
 * accepts again opens the way within the window.
 */
export class Throttle {
  readonly #settings: ThrottleSettings
  readonly #requests = new Float64Array(parts)
  readonly #accepts = new Float64Array(parts)
  #part = 0

  constructor(settings: ThrottleSettings) {
    this.#settings = settings
  }

  /** Counts a call, and returns whether it is to be refused; `draw` is a random number from 0 to 1. */
  refuses(now: number, draw: number): boolean {
    const refused = draw < this.chance(now)
    this.#requests[this.#part % parts]!++
    return refused
  }

  /** Notes that the service has taken a call: it did not refuse it for lack of room, nor fail. */
  accepted(now: number): void {
    this.#advance(now)
    this.#accepts[this.#part % parts]!++
  }

  /** Returns the probability with which the next call is refused. */
  chance(now: number): number {
    this.#advance(now)
    const requests = sum(this.#requests)
    if (requests < FREE_CALLS) return 0
    return Math.max(0, (requests - this.#settings.ratio * sum(this.#accepts) - FREE_CALLS) / (requests + 1))
  }

  #advance(now: number): void {
    const part = Math.max(this.#part, Math.floor((now / this.#settings.windowMs) * parts))
    const first = Math.max(this.#part + 1, part - parts + 1)
    for (let past = first; past <= part; past++) this.#requests[past % parts] = this.#accepts[past % parts] = 0
    this.#part = part
  }
}

/** True if an answer says that the service has taken the call. */
export function isAccepted(status: number): boolean {
  return status < 500 && status !== 429
}

function sum(numbers: Float64Array): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
