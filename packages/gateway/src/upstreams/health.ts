/** When an address that fails is left alone. */
export interface HealthOptions {
  readonly failures: number
  readonly restMs: number
}

const mostDoublings = 4

/**
 * What calls tell about one address. After so many failures in a row it rests; then one call tries it, and either it is
 * well again or it rests for twice as long, up to sixteen times the first rest.
 */
export class Health {
  readonly #options: HealthOptions
  #failures = 0
  #rests = 0
  #restsUntil = 0

  constructor(options: HealthOptions) {
    this.#options = options
  }

  isResting(now: number): boolean {
    return now < this.#restsUntil
  }

  /** A call is sent: where it is the one that tries, the others stay away until it is known how it ended. */
  begin(now: number): void {
    if (this.#rests > 0 && now >= this.#restsUntil) this.#restsUntil = now + this.#options.restMs
  }

  succeed(): void {
    this.#failures = 0
    this.#rests = 0
    this.#restsUntil = 0
  }

  fail(now: number): void {
    this.#failures++
    if (this.#rests === 0 && this.#failures < this.#options.failures) return
    this.#restsUntil = now + this.#options.restMs * 2 ** Math.min(this.#rests, mostDoublings)
    this.#rests++
  }
}
