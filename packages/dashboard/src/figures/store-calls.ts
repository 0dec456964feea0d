import type { StoreStats } from '../api/generated.ts'

const SECONDS = 60

/** The decisions about calls with rules in Redis in the last minute, by the place where they were made. */
export class StoreCalls {
  readonly #seconds: StoreStats[] = []

  /** Adds the newest second; undefined if nothing is counted in Redis. */
  add(second: StoreStats | undefined): void {
    if (second === undefined) this.#seconds.length = 0
    else this.#seconds.push(second)
    if (this.#seconds.length > SECONDS) this.#seconds.shift()
  }

  get newest(): StoreStats | undefined {
    return this.#seconds.at(-1)
  }

  /** The questions to Redis for each decision, leases included; undefined if there were no decisions. */
  get perDecision(): number | undefined {
    let [calls, decisions] = [0, 0]
    for (const { asked, decidedHere, leases } of this.#seconds) {
      calls += asked + leases.requests
      decisions += asked + decidedHere + leases.decided
    }
    return decisions === 0 ? undefined : calls / decisions
  }
}
