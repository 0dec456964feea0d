/** A call that has ended at an address, as far as it is counted here. */
export interface EndedCall {
  readonly status: number
  readonly end: 'complete' | 'aborted' | 'broken'
  readonly endedAt: number
  /** How long the address took to begin its answer; undefined if it did not. */
  readonly answerMs: number | undefined
}

/** What became of the calls of one route at one address, since the first of them, as plain values. */
export interface AddressTrafficStats {
  /** How long it has been counted. */
  readonly ageMs: number
  /** Tries of calls that have ended here: answered or failed. */
  readonly calls: number
  /** Of these, those with a 5xx status, an answer that broke off, or a failure after which the call was tried again. */
  readonly errors: number
  /** Calls that came here after a try had failed. */
  readonly retries: number
  /** How long answers took to begin, counted by `latencyBoundsMs`. */
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

  /** A call has ended, and this was the address that it was sent to last. */
  add(route: string, { status, end, endedAt, answerMs }: EndedCall): void {
    const counts = this.#find(route, endedAt)
    counts.calls++
    if (status >= 500 || end === 'broken') counts.errors++
    if (answerMs !== undefined) counts.latency.add(answerMs)
  }

  /** A try has failed, and the call is tried again, here or elsewhere. */
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

  /** The counts of each route that had a call after `since`. */
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
