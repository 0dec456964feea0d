import { ESTIMATE_SLOTS } from './adaptive/estimate-state.ts'
import { ConcurrencyEstimator, type Ending, type Estimate } from './adaptive/estimator.ts'
import {
  type Algorithm,
  InvalidLimitError,
  type Limit,
  type Meter,
  type MeterHeld,
  type MeterLearning,
  type MeterMigration,
} from './algorithm.ts'

export interface AdaptiveOptions {
  /** The least that is admitted at one time, whatever is measured; default 2. */
  readonly min?: number | undefined
}

/*
 * Adaptive concurrency: how many calls are in flight at one time, with a limit that is found by watching the service
 * (adaptive/estimator.ts has the idea). The limit of the rule is the most that is ever admitted, `min` the least.
 *
 *   in flight |        ______ limit found
 *             |    ___/~~~~~~\____
 *             |~~~~               ~~~~
 *             +--------------------------- time
 */
export const adaptive: Algorithm = {
  name: 'adaptive',
  limit: 'count',
  options: ({ z }) => ({
    min: z.int().min(1).max(1e9).optional().describe('the least that is admitted at one time; default: 2'),
  }),
  meter({ count }: Limit, options: AdaptiveOptions): Meter {
    const min = options.min ?? Math.min(2, count)
    if (min > count) {
      const message = `min ${min} is above the limit ${count}: the limit is the most that is admitted, so lower min or raise limit`
      throw new InvalidLimitError('min', message)
    }
    return new Adaptive(min, count)
  },
}

class Adaptive implements Meter, MeterLearning, MeterMigration {
  readonly slots = ESTIMATE_SLOTS
  readonly maxWaitUs = 0
  readonly held: MeterHeld = { learns: this }
  readonly migrate: MeterMigration = this
  readonly scale: readonly number[] = [0]
  readonly #estimator: ConcurrencyEstimator

  constructor(min: number, max: number) {
    this.#estimator = new ConcurrencyEstimator(min, max)
  }

  delay(state: Float64Array, at: number, now: number, cost: number, priority = 0): number {
    const inFlight = this.#estimator.inFlight(state, at)
    return cost === 0 || inFlight + cost <= this.#estimator.allowed(state, at, now, priority)
      ? 0
      : Number.POSITIVE_INFINITY
  }

  take(state: Float64Array, at: number, now: number, cost: number, _delay: number, priority = 0): void {
    this.#estimator.begin(state, at, now, cost, priority)
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    this.#estimator.end(state, at, now, cost, moment, 'unknown')
  }

  end(state: Float64Array, at: number, now: number, cost: number, moment: number, ending: Ending): void {
    this.#estimator.end(state, at, now, cost, moment, ending)
  }

  estimate(state: Float64Array, at: number, now: number): Estimate {
    return this.#estimator.read(state, at, now)
  }

  remaining(state: Float64Array, at: number, now: number, priority = 0): number {
    return Math.max(0, this.#estimator.allowed(state, at, now, priority) - this.#estimator.inFlight(state, at))
  }

  inherit(old: ArrayLike<number>, _oldScale: readonly number[], state: Float64Array, at: number): void {
    for (let i = 0; i < ESTIMATE_SLOTS; i++) state[at + i] = old[i]!
  }

  idleAt(state: Float64Array, at: number): number {
    return this.#estimator.idleAt(state, at)
  }
}
