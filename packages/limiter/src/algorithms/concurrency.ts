import type { Algorithm, Limit, Meter } from './algorithm.ts'

/*
 * Concurrency: how many calls are under way at one time. A call takes a place when it begins and gives it back when it
 * ends, however it ends; time alone frees nothing.
 *
 *   in flight |    __    ____
 *             | __|  |__|    |_      limit: 50
 *             +------------------ time
 *
 * A changed limit applies to the calls that come; those under way finish.
 */
const IN_FLIGHT = 0

export const concurrency: Algorithm = {
  name: 'concurrency',
  limit: 'count',
  options: {},
  meter(limit: Limit): Meter {
    return new Concurrency(limit.count)
  },
}

class Concurrency implements Meter {
  readonly slots = 1
  readonly held = true
  readonly patienceUs = 0
  readonly #count: number

  constructor(count: number) {
    this.#count = count
  }

  delay(state: Float64Array, at: number, _now: number, cost: number): number {
    return state[at + IN_FLIGHT]! + cost <= this.#count ? 0 : Number.POSITIVE_INFINITY
  }

  take(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = state[at + IN_FLIGHT]! + cost
  }

  giveBack(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = Math.max(0, state[at + IN_FLIGHT]! - cost)
  }

  remaining(state: Float64Array, at: number): number {
    return Math.max(0, this.#count - state[at + IN_FLIGHT]!)
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + IN_FLIGHT] === 0 ? 0 : Number.POSITIVE_INFINITY
  }
}
