/** So far a store's clock may be off without having stepped: clocks drift, by a thousandth at most. */
const LEAST_STEP_MS = 500
const DRIFT = 0.001

/**
 * Notices when the clock of a store steps. Every answer has the store's time at some moment between request and answer;
 * so the two clocks are known to differ by something between two numbers, and if no difference fits both this answer and the
 * one before, one clock has stepped. That of this process never does.
 */
export class ClockSteps {
  #least = 0
  #most = 0
  #atMs: number | undefined

  /** How far the clock has stepped since the last answer, in milliseconds; 0 if it has not. */
  observe(thereMs: number, sentAtMs: number, answeredAtMs: number): number {
    const [least, most] = [thereMs - answeredAtMs, thereMs - sentAtMs]
    const slackMs = LEAST_STEP_MS + DRIFT * (answeredAtMs - (this.#atMs ?? answeredAtMs))
    const isFirst = this.#atMs === undefined
    const [back, forward] = [most - this.#least, least - this.#most]
    this.#least = least
    this.#most = most
    this.#atMs = answeredAtMs
    if (isFirst) return 0
    if (back < -slackMs) return Math.round(back)
    return forward > slackMs ? Math.round(forward) : 0
  }
}
