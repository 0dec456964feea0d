import type { Limit, Terms } from '../algorithms/algorithm.ts'
import type { BlockGrowth } from '../algorithms/block.ts'
import type { JwtSettings } from '../dimensions/dimension.ts'
import type { Missing } from '../dimensions/key.ts'
import type { ForwardedBy } from '../http/ip-address.ts'
import type { CallerList } from './match/callers.ts'
import type { StatusRange } from './match/count-when.ts'
import type { CostInput } from './schema/cost.ts'

/** Blocks that grow. */
export interface GrowingBlock extends BlockGrowth {
  /** True if a block clears the count of its caller, who then starts again when it ends. */
  readonly clear: boolean
}

/** The calls that a rule applies to; every condition given must match, absent ones match all. */
export interface Match {
  /** No call by itself: the rule is for those that name it. */
  readonly none?: true | undefined
  readonly path?: readonly string[] | undefined
  readonly method?: readonly string[] | undefined
  readonly host?: readonly string[] | undefined
  readonly header?: Readonly<Record<string, readonly string[]>> | undefined
  /** The attributes that the application, or a proxy that asks the decision server, gives the call; `*` stands for any text. */
  readonly attribute?: Readonly<Record<string, readonly string[]>> | undefined
  /** The messages of WebSockets that these calls open, and not the calls themselves. */
  readonly websocket?: 'messages' | undefined
}

/** `drop` is for messages of WebSockets: other calls that it refuses are refused. */
export type WhenFull = 'refuse' | 'wait' | 'shadow' | 'drop'
/** While the store is down: this process's part of the limit, the full limit counted here, all calls, or none. */
export type WhenStoreDown = 'share' | 'local' | 'allow' | 'refuse'
export type HeaderStyle = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy' | 'none'

/** The answer to a refused caller. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderStyle
  /** Adds X-RateLimit-Limit-Tokens and the like, as clients of LLM APIs read them. */
  readonly tokenHeaders?: boolean | undefined
  /** Text, or what is sent as JSON, in place of the problem details. */
  readonly body?: string | object | undefined
  readonly contentType?: string | undefined
}

/** The number of calls that may wait in this process, and how long each. */
export interface Queue {
  readonly size: number
  readonly timeoutMs?: number | undefined
  /** The number of calls of one caller that may wait; undefined if that depends on how many places are left. */
  readonly perCaller?: number | undefined
}

/** Limits that depend on the caller. A caller without one has the limit of the rule. */
export interface Plans {
  /** The dimension whose value names a limit. */
  readonly by?: string | undefined
  /** The limit of each value, with the options in which it differs from the rule. */
  readonly values: Readonly<Record<string, Terms>>
  /** The place where limits of single callers are found, and how long they are used before they are asked for again. */
  readonly from?: { readonly address: string; readonly refreshMs: number } | undefined
  /** True if operators set limits of single callers. */
  readonly overrides: boolean
}

/** A validated rule: which calls, by which key, how, and how many. */
export interface Rule {
  readonly id: string
  readonly enabled: boolean
  readonly match: Match
  /** Names of dimensions; none counts all calls together. */
  readonly by: readonly string[]
  readonly algorithm: string
  /** The algorithm's own options, as its schema parsed them. */
  readonly options: Readonly<Record<string, unknown>>
  readonly limits: readonly Limit[]
  /** Left out, all callers have the same limit. */
  readonly plans?: Plans | undefined
  readonly count: 'local' | 'distributed'
  readonly whenFull: WhenFull
  readonly whenStoreDown: WhenStoreDown
  /** Says whether processes hold permits in advance. */
  readonly lease: 'auto' | 'off'
  readonly queue: Queue
  readonly answer?: Partial<Answer> | undefined
  /** The way to count callers without a dimension of `by`; left out, it depends on the dimension. */
  readonly missing?: Missing | undefined
  /** Left out, the caller of `check` gives the cost. */
  readonly cost?: CostInput | undefined
  /** The responses that calls count for; left out, all. */
  readonly countWhen?: readonly StatusRange[] | undefined
  /** The responses that clear what is counted for the caller. */
  readonly resetWhen?: readonly StatusRange[] | undefined
  /** For how long a caller over the limit is refused, or how that grows; with `manual`, only the application blocks callers. */
  readonly block?: number | 'manual' | GrowingBlock | undefined
  /** True if callers may have credit beside the limit; left out, none. */
  readonly credit?: boolean | undefined
  /** Callers that the rule does not apply to, and callers that it always refuses. */
  readonly allow?: CallerList | undefined
  readonly deny?: CallerList | undefined
  /** The source of the rule, if rules come from several sources. */
  readonly origin?: string | undefined
}

/** The place where distributed counts live. */
export interface StoreAddress {
  /** One URL, or those of a Cluster's nodes. */
  readonly redis: readonly string[]
  readonly timeoutMs: number
  /** The number of processes that share the limits, until the store reports it. */
  readonly fleet?: number | undefined
  /** The beginning of every key in Redis. */
  readonly prefix?: string | undefined
}

/** The config center whose rules override local ones. */
export interface RemoteAddress {
  /** The name of the source: `etcd`, `http`. */
  readonly source: string
  readonly address: string
  /** The center's own options, as its schema parsed them. */
  readonly options: Readonly<Record<string, unknown>>
  readonly startTimeoutMs: number
  /** The file that keeps its last good rules. */
  readonly snapshot?: string | undefined
}

/** One line of `priority`: the level of the calls that match, fixed, by the value of a dimension, or by a header of a trusted peer. */
export interface PriorityEntry {
  readonly match: Match
  readonly level?: number | undefined
  readonly by?: string | undefined
  readonly levels?: Readonly<Record<string, number>> | undefined
  readonly header?: string | undefined
}

/** From which load on this process refuses calls. */
export interface OverloadSettings {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly callWaitMs: number
  /** The dimension by which the heaviest callers of a level are refused first; left out, calls are refused at random. */
  readonly heaviestFirst?: string | undefined
}

/** A whole rule document, validated. */
export interface RuleDocument {
  /** The sources of a dimension in a call: `header:x-account-id`, `cookie:uid`; the first one present wins. */
  readonly identify: Readonly<Record<string, readonly string[]>>
  /** Trusted hops, or trusted networks; 0 trusts no proxy. */
  readonly trustProxy: number | readonly string[]
  /** True if the document states it; if not, a filter takes the setting of its framework. */
  readonly statesProxies?: boolean | undefined
  /** The header in which trusted proxies name the caller. */
  readonly forwardedBy: ForwardedBy
  /** The number of bits of an IPv6 address that identify a caller. */
  readonly ipv6Prefix: number
  readonly jwt?: JwtSettings | undefined
  /** Callers that pass uncounted, and callers that never pass. */
  readonly allow?: CallerList | undefined
  readonly deny?: CallerList | undefined
  /** Left out, everything is counted in this process. */
  readonly store?: StoreAddress | undefined
  readonly remote?: RemoteAddress | undefined
  readonly answer: Answer
  /** The calls that are refused last in overload. */
  readonly priority?: readonly PriorityEntry[] | undefined
  /** The threshold at which this process refuses calls because it has too much to do; left out, never. */
  readonly overload?: OverloadSettings | undefined
  /** The plugins that the rules use; left out if there are none. */
  readonly plugins?: readonly string[] | undefined
  /** The treatment of a call that Diana fails to judge; left out, it passes. */
  readonly whenFailed?: 'pass' | 'refuse' | undefined
  readonly rules: readonly Rule[]
  /** The sections of the file for other programs, by name. */
  readonly sections?: Readonly<Record<string, unknown>> | undefined
}
