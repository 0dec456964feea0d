/** A call that has ended at an address, as far as it is counted here. */
export interface EndedCall {
  readonly status: number
  readonly end: 'complete' | 'aborted' | 'broken'
  readonly endedAt: number
  /** The time until the address began its answer; undefined if it did not. */
  readonly answerMs: number | undefined
}

/** The outcomes of the calls of one route at one address, since the first of them, as plain values. */
export interface AddressTrafficStats {
  /** The time for which they have been counted. */
  readonly ageMs: number
  /** Tries of calls that have ended here: answered or failed. */
  readonly calls: number
  /** The number of these with a 5xx status, an answer that broke off, or a failure after which the call was tried again. */
  readonly errors: number
  /** Calls that came here after a try had failed. */
  readonly retries: number
  /** The times until answers began, counted by `latencyBoundsMs`. */
  readonly latency: readonly number[]
}

/** The counts of one route. */
class RouteTraffic {
  readonly since: number
  readonly latency: LatencyCounts = new LatencyCounts()
  lastAt = 0
  calls = 0
  errors = 0
  retries = 0

  constructor(since: number) {
    this.since = since
  }
}

const maxRoutes = 256

/** Counts what became of calls at one address, by route. Times are those of `performance.now()`. */
export class AddressTraffic {
  readonly #routes = new Map<string, RouteTraffic>()
  #lastRoute = ''
  #last: RouteTraffic | undefined

  /** Counts a call that has ended; this was the address that it was sent to last. */
  add(route: string, { status, end, endedAt, answerMs }: EndedCall): void {
    const counts = this.#find(route, endedAt)
    counts.calls++
    if (status >= 500 || end === 'broken') counts.errors++
    if (answerMs !== undefined) counts.latency.add(answerMs)
  }

  /** Counts a try that has failed; the call is tried again, here or elsewhere. */
  addFailedTry(route: string, now: number): void {
    const counts = this.#find(route, now)
    counts.calls++
    counts.errors++
  }

  addRetry(route: string, now: number): void {
    this.#find(route, now).retries++
  }

  has(route: string): boolean {
    return this.#routes.has(route)
  }

  /** Returns the counts of each route that had a call after `since`. */
  stats(now: number, since: number): [route: string, stats: AddressTrafficStats][] {
    const active = [...this.#routes].filter(([, { lastAt }]) => lastAt >= since)
    return active.map(([route, { calls, errors, retries, latency, since: from }]) => {
      return [route, { ageMs: now - from, calls, errors, retries, latency: latency.read() }]
    })
  }

  #find(route: string, now: number): RouteTraffic {
    // most addresses have one route
    const found = this.#last !== undefined && this.#lastRoute === route ? this.#last : this.#findOther(route, now)
    found.lastAt = now
    return found
  }

  #findOther(route: string, now: number): RouteTraffic {
    let found = this.#routes.get(route)
    if (found === undefined) {
      if (this.#routes.size >= maxRoutes) this.#forgetOldest()
      found = new RouteTraffic(now)
      this.#routes.set(route, found)
    }
    this.#lastRoute = route
    this.#last = found
    return found
  }

  /** Routes come and go with reloads, and the address may stay. */
  #forgetOldest(): void {
    const [oldest] = [...this.#routes].sort(([, one], [, other]) => one.lastAt - other.lastAt)
    this.#routes.delete(oldest![0])
  }
}

/** Upper bounds of latencies in milliseconds: each is at most twice the one before, so that quantiles are close. */
export const latencyBoundsMs: readonly number[] = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000,
  15_000, 20_000, 30_000, 60_000,
]

/** Counts latencies: one count per bound, not cumulative, and one for all that are longer. */
export class LatencyCounts {
  readonly #counts: number[] = Array(latencyBoundsMs.length + 1).fill(0)

  add(ms: number): void {
    let at = 0
    while (at < latencyBoundsMs.length && ms > latencyBoundsMs[at]!) at++
    this.#counts[at]!++
  }

  read(): number[] {
    return [...this.#counts]
  }
}

/** The conditions under which an address that fails is left alone. */
export interface HealthOptions {
  /** The number of failed calls in a row after which it rests. */
  readonly failures: number
  readonly restMs: number
  /** After how many health checks in a row its state changes; checks are made only if this is given. */
  readonly check?: { readonly healthy: number; readonly unhealthy: number } | undefined
}

/** The health of an address: healthy, left alone after failed calls, or found unhealthy by checks. */
export interface HealthState {
  readonly state: 'healthy' | 'resting' | 'unhealthy'
  /** The time for which it has been in this state; left out if it has been since the start. */
  readonly forMs?: number | undefined
  /** The time until the end of its rest. */
  readonly restMs?: number | undefined
  /** The last failure. */
  readonly why?: string | undefined
}

const mostDoublings = 4

/**
 * Judges one address by calls and checks. After a configured number of failures in a row it rests; then one call tries it, and either it is well
 * again or it rests for twice as long, up to sixteen times the first rest. Checks have a say of their own: an address is healthy if
 * neither calls nor checks speak against it.
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
  /** Is called when calls begin to stay away, and when they come again. */
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

  /** Notes that a call is sent; if it is the one that tries a resting address, the others stay away until its end is known. */
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

  /** Takes the result of a health check; `fault` is what was wrong, if anything. */
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
