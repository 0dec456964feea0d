import type { ActualCost } from 'diana-limiter'

/** A place in a file. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A caller. Names that are neither headers nor cookies are dimensions that the application knows, such as `account`. */
export interface Caller {
  readonly ip?: string | undefined
  readonly host?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly attributes: Readonly<Record<string, string>>
}

/** The calls of a step that repeats: `200 calls in 1s` are evenly spaced, the first at once. */
export interface Loop {
  readonly calls: number
  readonly everyUs: number
}

/** The expectation of a step. Of a loop, `result` holds for each call, the counts for all of them, and the rest for the last one. */
export interface Expectation {
  readonly place: Place
  readonly result?: 'pass' | 'refused' | undefined
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** The rule in shadow mode that would refuse the call. */
  readonly reportedBy?: string | undefined
  readonly waitsMs?: number | undefined
  readonly left?: number | undefined
  /** The rule whose remaining permits `left` says; left out, the least of all rules. */
  readonly leftOf?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly passed?: number | undefined
  readonly refused?: number | undefined
  /** The number of calls that each rule refuses. */
  readonly refusedBy: Readonly<Record<string, number>>
}

/** One or more calls. */
export interface Step {
  readonly place: Place
  /** From the beginning of the case. */
  readonly atUs: number
  readonly method: string
  /** `{n}` stands for the number of the call in its loop, from 1. */
  readonly target: string
  readonly who: Caller
  /** True if it is a message of the WebSocket that the call has opened. */
  readonly isMessage?: boolean | undefined
  readonly cost?: number | undefined
  readonly loop: Loop
  readonly takesUs: number
  /** The status with which the service answers; 0 if the caller leaves before the answer. */
  readonly ends: number
  readonly settle?: ActualCost | undefined
  readonly rule?: string | undefined
  /** From 1. */
  readonly process: number
  readonly body?: unknown
  readonly expect: Expectation
}

export interface Outage {
  readonly fromUs: number
  readonly toUs: number
}

export interface Case {
  readonly name: string
  readonly place: Place
  /** Microseconds since 1970. */
  readonly beginUs: number
  readonly processes: number
  readonly outages: readonly Outage[]
  readonly steps: readonly Step[]
}

/** The names that the rules define and cases may use. */
export interface RuleNames {
  readonly rules: readonly string[]
  readonly dimensions: readonly string[]
}
