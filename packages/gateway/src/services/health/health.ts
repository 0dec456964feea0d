/** When an address that fails is left alone. */
export interface HealthOptions {
  /** After so many failed calls in a row it rests. */
  readonly failures: number
  readonly restMs: number
  /** After how many health checks in a row its state changes; checks are made only if this is given. */
  readonly check?: { readonly healthy: number; readonly unhealthy: number } | undefined
}

/** How an address is doing: healthy, left alone after failed calls, or found unhealthy by checks. */
export interface HealthState {
  readonly state: 'healthy' | 'resting' | 'unhealthy'
  /** How long it has been in this state; left out if it has been since the start. */
  readonly forMs?: number | undefined
  /** How long the rest still takes. */
  readonly restMs?: number | undefined
  /** What the last failure was. */
  readonly why?: string | undefined
}

const mostDoublings = 4

/**
 * What calls and checks tell about one address. After so many failures in a row it rests; then one call tries it, and either it
 * is well again or it rests for twice as long, up to sixteen times the first rest. Checks have a say of their own: an address is
 * healthy if neither calls nor checks speak against it.
 */
export class Health {
  readonly #options: HealthOptions
  #failures = 0
  #rests = 0
  #restsUntil = 0
  #restingSince = 0
  #isUnhealthy = false
  #unhealthySince = 0
  #checksAgainst = 0
  #why: string | undefined
  #healthySince: number
  /** Told when calls begin to stay away, and when they come again. */
  onChange: (state: HealthState) => void = () => {}

  /** An address that was added while calls came is new at `since`. */
  constructor(options: HealthOptions, since: number = Number.NEGATIVE_INFINITY) {
    this.#options = options
    this.#healthySince = since
  }

  /** Since when it has been healthy without a break. */
  get healthySince(): number {
    return this.#healthySince
  }

  isResting(now: number): boolean {
    return now < this.#restsUntil || this.#isUnhealthy
  }

  state(now: number): HealthState {
    const why = this.#why
    if (this.#isUnhealthy) return { state: 'unhealthy', forMs: now - this.#unhealthySince, why }
    if (now < this.#restsUntil) {
      return { state: 'resting', forMs: now - this.#restingSince, restMs: this.#restsUntil - now, why }
    }
    const since = this.#rests > 0 ? this.#restsUntil : this.#healthySince
    return Number.isFinite(since) ? { state: 'healthy', forMs: Math.max(0, now - since) } : { state: 'healthy' }
  }

  /** A call is sent: where it is the one that tries, the others stay away until it is known how it ended. */
  begin(now: number): void {
    if (this.#rests > 0 && now >= this.#restsUntil) this.#restsUntil = now + this.#options.restMs
  }

  succeed(now: number): void {
    const wasResting = this.#rests > 0
    if (wasResting) this.#healthySince = now
    this.#failures = 0
    this.#rests = 0
    this.#restsUntil = 0
    if (wasResting) this.onChange(this.state(now))
  }

  fail(now: number, why?: string): void {
    this.#failures++
    this.#why = why
    if (this.#rests === 0 && this.#failures < this.#options.failures) return
    this.#restsUntil = now + this.#options.restMs * 2 ** Math.min(this.#rests, mostDoublings)
    this.#rests++
    if (this.#rests === 1) this.#restingSince = now
    if (this.#rests === 1) this.onChange(this.state(now))
  }

  /** A health check has ended; `fault` is what was wrong, if anything. */
  check(now: number, fault: string | undefined): void {
    const isAgainst = (fault === undefined) === this.#isUnhealthy
    this.#checksAgainst = isAgainst ? this.#checksAgainst + 1 : 0
    const { healthy, unhealthy } = this.#options.check!
    if (fault !== undefined) this.#why = fault
    if (this.#checksAgainst < (this.#isUnhealthy ? healthy : unhealthy)) return
    this.#checksAgainst = 0
    this.#isUnhealthy = !this.#isUnhealthy
    if (this.#isUnhealthy) this.#unhealthySince = now
    else this.#healthySince = now
    this.onChange(this.state(now))
  }
}
