import { StepRing } from '../../../limiter/src/common/step-ring.ts'
import type { StoreStats } from '../api/generated.ts'

const SECONDS = 60

/** The decisions about calls with rules in Redis in the last minute, by the place where they were made. */
export class StoreCalls {
  readonly #questions = new StepRing(new Float64Array(SECONDS))
  readonly #decisions = new StepRing(new Float64Array(SECONDS))
  #second = 0
  #newest: StoreStats | undefined

  /** Writes the newest second; undefined if nothing is counted in Redis. */
  write(second: number, stats: StoreStats | undefined): void {
    this.#second = second
    this.#newest = stats
    if (stats === undefined) {
      this.#questions.clear()
      this.#decisions.clear()
      return
    }
    const { asked, decidedHere, leases } = stats
    this.#questions.write(second, asked + leases.requests)
    this.#decisions.write(second, asked + decidedHere + leases.decided)
  }

  get newest(): StoreStats | undefined {
    return this.#newest
  }

  /** The questions to Redis for each decision, leases included; undefined if there were no decisions. */
  get perDecision(): number | undefined {
    const decisions = this.#decisions.sum(this.#second, SECONDS)
    return decisions === 0 ? undefined : this.#questions.sum(this.#second, SECONDS) / decisions
  }
}
