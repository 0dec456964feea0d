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
  /** How many more are wanted. */
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
  /** None were granted: after so long, some are free at once; 0 if that is not known. */
  readonly retryUs: number
  /** The limit is reached, and so much is free soon that calls are refused until then instead of asking for single permits. */
  readonly isClosed: boolean
  /** When the store answered, by its own clock: used permits are counted as of this moment. */
  readonly now: number
  /** What is left beside all leases, and the microseconds until all of it is, for each level. */
  readonly remaining: readonly number[]
  readonly resets: readonly number[]
}
