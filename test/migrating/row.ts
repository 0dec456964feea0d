/** One option of another limiter, what to write instead, and a check that it does the same. */
export interface Row {
  /** The option as it is written there, and what to write here: both stand in docs/migrating.md. */
  readonly theirs: string
  readonly ours: string
  /** What differs, for the page. */
  readonly note?: string
  /** How `ours` is used: the options of a filter, a rule of a rule file, statements of a program, or what runs jobs. */
  readonly as: 'express' | 'fastify' | 'nest' | 'rule' | 'program' | 'jobs'
  /** For jobs the other limiter itself, which is run beside `ours`: a program that returns a function which schedules a job. */
  readonly peer?: string
  /** A function that gives the options of each job by its number, for `schedule`. */
  readonly options?: string
  /** How many jobs are scheduled at once, how long each takes, and when each begins, in milliseconds; undefined if it is rejected. */
  readonly jobs?: { readonly count: number; readonly workMs: number; readonly starts: readonly (number | undefined)[] }
  /** More options of the filter, or the rules of the program's limiter. */
  readonly beside?: string
  /**
   * Calls in order, each with the status that it gets: `200`, `ann=200` with the API key ann, `/health=200`, `203.0.113.1=200` through a
   * proxy, `!401` if the service answers 401; `@60` lets 60 seconds pass. For a rule `200` is pass, `503` is refused and `+500` is a wait
   * of 500 ms.
   */
  readonly calls?: string
  /** What the last answer has. */
  readonly last?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string | RegExp | undefined>> }
  /** What a program returns. */
  readonly gives?: unknown
}

/** A limiter that people come from. */
export interface Section {
  readonly from: string
  readonly rows: readonly Row[]
}
