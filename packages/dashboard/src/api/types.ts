/** The answers of the gateway's admin API, version 1. */

export interface Counts {
  readonly allowed: number
  readonly refused: number
  readonly waited: number
  readonly shadowRefused: number
}

/** One second of figures, as the live stream tells it. */
export interface LiveStats {
  /** Left out if no rule reserves. */
  readonly costs?: Readonly<Record<string, RuleCosts>>
  readonly at: number
  readonly total: LiveCounts
  readonly rules: Readonly<Record<string, LiveRuleCounts>>
  /** Left out where nothing is counted in Redis. */
  readonly store?: StoreStats | undefined
  /** What adaptive rules have found. */
  readonly adaptive?: Readonly<Record<string, Estimate>> | undefined
  /** Left out unless the rule file has `overload`. */
  readonly overload?: OverloadStats | undefined
}

/** What an adaptive rule has found of the service behind it. */
export interface Estimate {
  readonly limit: number
  readonly inFlight: number
  /** Answers per second that the service can give; 0 if it is not known yet. */
  readonly perSecond: number
  /** The time of an answer while nothing waits. */
  readonly baseMs: number
  readonly latencyMs: number
  readonly limiting: boolean
}

/** How busy the gateway is, and the calls that it refused in a second for that, by level. */
export interface OverloadStats {
  readonly delayMs: number
  readonly utilization: number
  readonly share: number
  readonly shed: Readonly<Record<string, number>>
}

/** One number per second; null if it is not known. */
export type Curve = readonly (number | null)[]

/** What a rule has reserved since the start of the gateway, what became of it, and by what its calls were settled. */
export interface RuleCosts {
  readonly amounts?: Readonly<Record<'reserved' | 'settled' | 'released' | 'expired' | 'overrun', number>>
  readonly settled?: Readonly<Record<'usage' | 'header' | 'estimate' | 'none' | 'bounded', number>>
}

export interface LiveRuleCounts extends LiveCounts {
  readonly load?: number
  /** Permits that the processes of this gateway hold in advance. */
  readonly leased?: number
}

/** How calls with rules in Redis were decided. */
export interface StoreStats {
  /** Redis was asked about them. */
  readonly asked: number
  /** This process decided them by itself. */
  readonly decidedHere: number
  /** Permits held in advance: of how many callers, how many, the calls they decided, and the requests for them. */
  readonly leases: {
    readonly keys: number
    readonly permits: number
    readonly decided: number
    readonly requests: number
  }
}

export interface LiveCounts extends Counts {
  /** Calls that wait at this moment. */
  readonly waiting?: number
}

export type Series = { readonly [Name in keyof Counts]: readonly number[] }

export interface FiguresHistory {
  readonly at: number
  readonly stepMs: number
  readonly total: Series
  readonly rules: Readonly<Record<string, Series>>
  /** Of rules that had a call in the last minute: how full their busiest key was then. */
  readonly loads?: Readonly<Record<string, number>> | undefined
  readonly adaptive?:
    | Readonly<Record<string, { readonly limit: Curve; readonly inFlight: Curve; readonly latencyMs: Curve }>>
    | undefined
  readonly overload?: { readonly share: Curve; readonly shed: Readonly<Record<string, Curve>> } | undefined
}

export type HistoryScope = 'fleet' | 'gateway' | 'process'

/** A time in steps, and the time of the same length before it. */
export interface History {
  readonly scope: HistoryScope
  /** Why it is not the scope that was asked for. */
  readonly trouble?: string | undefined
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly series: StepSeries
  readonly before: StepSeries
  readonly rules: readonly (Counts & { readonly id: string; readonly before: Counts })[]
  readonly processes: readonly (Counts & { readonly name: string })[]
}

/** Calls in each step; null if nothing is known of it. */
export type StepSeries = { readonly [Name in keyof Counts]: Curve }

export interface SourceStatus {
  readonly name: string
  readonly role?: Where | undefined
  readonly version?: string | undefined
  readonly takenAt?: number | undefined
  readonly fromSnapshot?: boolean | undefined
  readonly trouble?: string | undefined
}

export interface Outage {
  readonly since: number
  readonly until?: number | undefined
  readonly trouble?: string | undefined
  readonly kind?: string | undefined
  /** Calls judged in this process meanwhile, and how many of them were beyond the limit, as far as can be told. */
  readonly calls?: number | undefined
  readonly over?: number | undefined
}

export interface StoreStatus {
  readonly healthy: boolean
  readonly since?: number | undefined
  readonly trouble?: string | undefined
  readonly kind?: string | undefined
  readonly fleet?: { readonly size?: number } | undefined
  /** The rules of the fleet that this process counts by itself at this moment. */
  readonly rules?: readonly string[] | undefined
  /** The last times without the store. */
  readonly outages?: readonly Outage[] | undefined
}

export interface Status {
  readonly version: string
  readonly startedAt: number
  readonly uptimeMs: number
  readonly demo: boolean
  readonly processes: number
  readonly keys: number
  readonly maxKeys: number
  readonly overflowing: readonly string[]
  readonly sources: readonly SourceStatus[]
  /** Whether the history of the whole fleet is known. */
  readonly fleetHistory?: boolean | undefined
  /** Each worker by itself; left out if one process decides all calls. */
  readonly workers?:
    | readonly {
        readonly keys: number
        readonly store?: { readonly healthy: boolean; readonly trouble?: string | undefined } | undefined
      }[]
    | undefined
  readonly store?: StoreStatus | undefined
  /** Routes of which addresses get no calls at this moment. */
  readonly troubledRoutes?: readonly {
    readonly id: string
    readonly route: string
    readonly unhealthy: number
    readonly of: number
  }[]
}

/** A period of the calendar. */
export type Unit = 'day' | 'week' | 'month' | 'year'

/** A change that was made through the admin API, or one that was refused. */
export interface Change {
  readonly at: number
  readonly operation: string
  readonly subject: string
  readonly from: string
  /** The name of the user, or which token was given. */
  readonly who?: string | undefined
  readonly via?: string | undefined
  readonly role?: string | undefined
  readonly refused?: string | undefined
  /** Why it was made, if the operator said so. */
  readonly comment?: string | undefined
}

export interface Changes {
  readonly changes: readonly Change[]
  readonly refused?: readonly Change[] | undefined
}

/** What became of one rule between two versions of a document. */
export interface RuleChange {
  readonly id: string
  readonly change: 'added' | 'changed' | 'removed'
}

/** What a text would do to the rules of a document. */
export interface DocumentChange {
  readonly rules: readonly RuleChange[]
  /** Whether options beside the rules differ. */
  readonly others: boolean
  /** The text with a comment above the rules; left out if it cannot stand there. */
  readonly noted?: string | undefined
}

/** A version of a document that was replaced, and the change that replaced it. */
export interface Version {
  readonly id: string
  readonly at: number
  readonly from?: string | undefined
  readonly who?: string | undefined
  readonly comment?: string | undefined
  /** The first of them. */
  readonly rules?: readonly RuleChange[] | undefined
  readonly changed?: number | undefined
}

/** A document with one rule changed or added, not written yet. */
export interface RuleDraft {
  readonly base: RuleDocument
  readonly text: string
  readonly rule: string
  readonly options: Readonly<Record<string, unknown>>
  readonly mistakes: readonly Mistake[]
}

/** The names that rules may use. */
export interface RuleNames {
  readonly algorithms: readonly { readonly name: string; readonly limit: 'rate' | 'count' }[]
  readonly dimensions: readonly string[]
  readonly namedDimensions: readonly string[]
}

export type Where = 'local' | 'remote'

export interface Rule {
  readonly id: string
  readonly origin?: string | undefined
  readonly where: Where
  readonly algorithm: string
  readonly limits: readonly { readonly count: number; readonly periodMs: number; readonly unit?: Unit | undefined }[]
  readonly by: readonly string[]
  readonly match?: object | undefined
  readonly whenFull: string
  readonly count: string
  readonly whenStoreDown: string
  readonly lease: string
  readonly state: 'on' | 'shadow' | 'off'
  readonly canBlock?: boolean | undefined
  /** Operators set limits of single callers. */
  readonly canOverride?: boolean | undefined
  readonly hasCredit?: boolean | undefined
  readonly waiting: number
  readonly text: string
}

/** What a caller did in the last ten minutes, by one rule. */
export interface Caller {
  /** For blocking, resetting and explaining, also while the key is masked. */
  readonly id: string
  readonly rule: string
  readonly key: string
  readonly masked: boolean
  readonly calls?: number | undefined
  /** `calls` comes from a sample and may differ by this much. */
  readonly callsError?: number | undefined
  readonly refusedError?: number | undefined
  readonly refused: number
  /** At most so many more refusals came before the caller was found. */
  readonly error: number
  readonly firstAt?: number | undefined
  readonly lastAt: number
  readonly blockedUntil?: number | undefined
  readonly canBlock?: boolean | undefined
  readonly limit?: number | undefined
  readonly periodMs?: number | undefined
  readonly remaining?: number | undefined
  readonly timeline?:
    | { readonly stepMs: number; readonly calls: readonly number[]; readonly refused: readonly number[] }
    | undefined
}

/** One refused call, with the numbers of that moment. */
export interface RefusedCall {
  readonly id: string
  readonly at: number
  /** Empty if no rule refused. */
  readonly rule: string
  readonly caller: string
  readonly key: string
  readonly masked: boolean
  readonly reason: string
  readonly method: string
  readonly path: string
  readonly limit?: number | undefined
  readonly periodMs?: number | undefined
  readonly remaining?: number | undefined
  readonly retryAfterMs: number | null
  readonly unsaid: number
}

export interface Block {
  readonly id: string
  readonly rule: string
  readonly key: string
  readonly since?: number | undefined
  readonly until: number
}

/** The limit that an operator has given one caller. */
export interface Override {
  readonly id: string
  readonly rule: string
  readonly key: string
  readonly limit: string
  /** Left out if it has no end. */
  readonly until?: number | undefined
  readonly setBy?: string | undefined
  readonly reason?: string | undefined
}

export interface Decision {
  readonly rule: string
  readonly limit: number
  readonly periodMs: number
  readonly calendar?: Unit | undefined
  readonly allowed: boolean
  readonly shadow: boolean
  readonly remaining: number
  readonly resetAfterMs: number | null
  readonly retryAfterMs: number | null
}

/** What one dimension found in a call. */
export interface KeyPart {
  readonly countedBy: 'value' | 'digest' | 'address' | 'absence'
  readonly value: string
}

export interface RuleExplanation {
  readonly rule: string
  readonly algorithm: string
  readonly key: Readonly<Record<string, KeyPart>>
  readonly decisions: readonly Decision[]
  /** Where a limit that depends on the caller comes from. */
  readonly limitFrom?: string | undefined
  /** What an adaptive rule has found for this key. */
  readonly estimate?: Estimate | undefined
  /** Permits that the caller has beside the limit. */
  readonly credit?: number | undefined
  /** Permits of this key that the processes of this gateway hold in advance. */
  readonly leased?: number | undefined
}

export interface Explanation {
  readonly call: { readonly method: string; readonly path: string; readonly ip?: string | undefined }
  readonly rules: readonly RuleExplanation[]
  readonly allowed: boolean
  readonly refusedBy?: string | undefined
  readonly answer?: { readonly status?: number } | undefined
  /** The explained call of a caller, as it can be asked about again. */
  readonly request?: string | undefined
}

export interface RuleDocument {
  readonly text: string
  readonly version: string
  readonly name: string
  readonly writable: boolean
  readonly reason?: string | undefined
}

export interface Mistake {
  readonly line: number
  readonly column: number
  readonly rule?: string | undefined
  readonly message: string
}

export interface Split {
  readonly allowed: number
  readonly refused: number
}

export interface Preview {
  readonly from: number
  readonly to: number
  readonly calls: number
  readonly sampled: boolean
  readonly rules: readonly { readonly id: string; readonly before: Split; readonly after: Split }[]
  readonly total: { readonly before: Split; readonly after: Split }
}

export interface Trial {
  readonly id: string
  readonly rule: string
  readonly text: string
  readonly since?: number | undefined
}

/** At the least and at the most; a log may not say exactly when calls came. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** What a document would have done to the calls of an access log. */
export interface LogReplay {
  readonly name: string
  readonly format: string
  readonly lines: number
  readonly bad: number
  readonly calls: number
  readonly refused: Range
  /** The plots are SVG that the gateway has made, without scripts. */
  readonly rules: readonly {
    readonly id: string
    readonly calls: number
    readonly refused: Range
    readonly plots: string
  }[]
  readonly unjudged: readonly { readonly id: string; readonly missing: readonly string[]; readonly remedy: string }[]
  readonly notes: readonly string[]
}
