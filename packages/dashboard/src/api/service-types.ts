/** The answers of the admin API about services and processes. */

/** What became of the calls of a route, or of those that went to one address. */
export interface ServiceFigures {
  /** In the last ten seconds. */
  readonly perSecond: number
  /** In the last minute. */
  readonly calls: number
  readonly errors: number
  readonly retries: number
  /** Upper bounds; null is longer than all bounds. */
  readonly latency?: Readonly<Record<'p50Ms' | 'p95Ms' | 'p99Ms', number | null>> | undefined
  /** The last five minutes in steps, oldest first. */
  readonly history: { readonly calls: readonly number[]; readonly errors: readonly number[] }
}

export type AddressState = 'healthy' | 'resting' | 'unhealthy' | 'draining'

export interface ServiceAddress {
  readonly address: string
  readonly state: AddressState
  /** How long it has been in this state; left out if since the start. */
  readonly forMs?: number | undefined
  readonly restMs?: number | undefined
  readonly why?: string | undefined
  readonly weight: number
  /** Its weight at this moment, while it starts slowly. */
  readonly share: number
  readonly underWay: number
  readonly waiting: number
  readonly connections: number
  /** Left out if it had no call in the last five minutes. */
  readonly figures?: ServiceFigures | undefined
}

export interface ServiceRoute {
  readonly id: string
  readonly host: readonly string[]
  readonly path: string
  readonly method: readonly string[]
  readonly headers: readonly string[]
  /** Names whose last lookup failed. */
  readonly troubles: readonly string[]
  readonly figures?: ServiceFigures | undefined
  readonly addresses: readonly ServiceAddress[]
}

/** One number per step; null if it is not known. */
type Course = readonly (number | null)[]

export interface GatewayProcess {
  readonly pid: number
  readonly startedAt: number
  readonly load: {
    readonly utilization: number
    readonly delay: { readonly p50Ms: number; readonly p99Ms: number }
    /** 1 is one processor in full use. */
    readonly cpu: number
    readonly rssBytes: number
    readonly heapUsedBytes: number
    readonly heapLimitBytes: number
  }
  /** Left out if the process serves no calls itself. */
  readonly callers?:
    | {
        readonly connections: number
        readonly inProgress: number
        readonly rejected: Readonly<Record<string, number>>
      }
    | undefined
  readonly history: Readonly<Record<'utilization' | 'delayMs' | 'cpu' | 'rssBytes' | 'heapUsedBytes', Course>>
}
