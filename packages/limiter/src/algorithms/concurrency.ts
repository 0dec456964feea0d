import type { Algorithm, Limit, Meter, MeterHeld, MeterMigration, MeterRedis } from './algorithm.ts'

/*
 * Concurrency: how many calls are in flight at one time. A call takes a slot when it begins and releases it when it
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

class Concurrency implements Meter, MeterMigration {
  readonly slots = 1
  readonly maxWaitUs = 0
  readonly held: MeterHeld = {}
  readonly redis: MeterRedis
  readonly migrate: MeterMigration = this
  readonly scale: readonly number[] = [0]
  readonly #count: number

  constructor(count: number) {
    this.#count = count
    this.redis = { lua: { name: 'concurrency' }, numbers: { count } }
  }

  delay(state: Float64Array, at: number, _now: number, cost: number): number {
    return state[at + IN_FLIGHT]! + cost <= this.#count ? 0 : Number.POSITIVE_INFINITY
  }

  take(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = state[at + IN_FLIGHT]! + cost
  }

  refund(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = Math.max(0, state[at + IN_FLIGHT]! - cost)
  }

  remaining(state: Float64Array, at: number): number {
    return Math.max(0, this.#count - state[at + IN_FLIGHT]!)
  }

  inherit(old: ArrayLike<number>, _oldScale: readonly number[], state: Float64Array, at: number): void {
    state[at + IN_FLIGHT] = old[IN_FLIGHT]!
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + IN_FLIGHT] === 0 ? 0 : Number.POSITIVE_INFINITY
  }
}
