import type { Estimate } from './algorithms/adaptive/estimator.ts'
import type { OverloadStatus } from './overload/overload-guard.ts'
import type { SourceStatus } from './reload/source-state.ts'
import type { Mistake } from './rules/mistake.ts'
import type { StoreStatus } from './stores/failover/store-health.ts'

/** The state of the limiter at this moment. */
export interface Status {
  readonly rules: readonly RuleStatus[]
  readonly sources: readonly SourceStatus[]
  /** The state of Redis; undefined if nothing is counted there. */
  readonly store?: StoreStatus | undefined
  /** The state of the counting process of this machine; undefined if this process counts by itself. */
  readonly counting?: StoreStatus | undefined
  /** The load of this process, and what it refuses for it; undefined unless the document has `overload`. */
  readonly overload?: OverloadStatus | undefined
  readonly keys: number
  readonly maxKeys: number
  /** Rules whose new callers share one counter, because as many keys are live as may be. */
  readonly overflowing: readonly string[]
}

export interface RuleStatus {
  readonly id: string
  readonly algorithm: string
  /** The source it came from. */
  readonly origin: string | undefined
  /** Calls that wait for it in this process. */
  readonly waiting: number
  /** Permits of it that this process holds in advance; undefined if it never does. */
  readonly leased?: number | undefined
  /** The findings of a rule that finds its limit; of its keys, for the one with the most calls in flight. */
  readonly estimate?: Estimate | undefined
}

/** The events of a limiter, each with its arguments. */
export interface LimiterEvents {
  /** A source's new document is in force. */
  rules: [source: SourceStatus]
  /** A source's new document cannot be used; the last good one stays. */
  rejected: [source: SourceStatus, mistakes: readonly Mistake[]]
  /** The config center has no document, or none any more: the local rules are in force. */
  missing: [source: SourceStatus]
  /** A source cannot be read; the last good rules stay. */
  failure: [source: SourceStatus]
  /** Redis can no longer be asked, or can be asked again. */
  store: [status: StoreStatus]
  /** The counting process of this machine can no longer be asked, or can be asked again. */
  counting: [status: StoreStatus]
}
