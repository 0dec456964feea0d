/** One request of a process for the permits that it holds of a key: to report, to keep, to give back and to get some. */
export interface LeaseRequest<Counter> {
  readonly counter: Counter
  readonly key: string
  /** Larger than that of the request before. A number that is repeated is answered as before, and counts nothing again. */
  readonly sequence: number
  /** Permits that were used since the request before, the oldest first. */
  readonly used: readonly Use[]
  /** Permits that are not used yet, and are kept. What is neither used nor kept is given back. */
  readonly kept: number
  /** Calls wait for this many more: all of them are granted that are free. */
  readonly needed: number
  /** How many more are wanted for calls to come: they are granted if enough is left for other processes. */
  readonly wanted: number
}

/** Permits that were used, the last of them so long before they were reported. */
export interface Use {
  /** Infinity if it is not known how many. */
  readonly amount: number
  readonly ageUs: number
}

export interface LeaseAnswer {
  /** How many permits the process holds now, those it has kept among them. */
  readonly amount: number
  /** For how long, from before it asked. */
  readonly lastsUs: number
  /** Too little is left to grant all that is wanted in advance: the process asks again no sooner than after this time; else 0. */
  readonly retryUs: number
  /** When the store answered, by its own clock: used permits are counted as of this moment, less their age. */
  readonly now: number
  /** A window counts no call before the newest that it has: permits that were used before this moment are counted as of it. */
  readonly newest: number
  /** For each level what is left beside all leases, the microseconds until all of it is, and until one permit is free. */
  readonly remaining: readonly number[]
  readonly resets: readonly number[]
  readonly delays: readonly number[]
}
