import type { AlgorithmChoice } from '../../algorithms/index.ts'
import type { Call } from '../../call.ts'
import type { WeightOptions } from '../../costs/cost-options.ts'
import type { Missing } from '../../dimensions/key.ts'
import type { CallReader } from '../../dimensions/reading/given-functions.ts'
import type { ForwardedBy } from '../../http/ip-address.ts'
import type { Answer, Rule, WhenFull, WhenStoreDown } from '../rule.ts'

type OneOrList<T> = T | readonly T[]
type ReserveSource = string | number

/** The charge before the cost is known. */
export interface ReserveWords {
  readonly from: OneOrList<ReserveSource>
  readonly plus?: OneOrList<ReserveSource> | undefined
  readonly typical?: number | undefined
  readonly min?: number | undefined
  readonly max?: number | undefined
}

/** The place where an answer has the cost. */
export interface SettleWords {
  readonly from: OneOrList<string>
  readonly max?: number | undefined
}

/** The options of the store, besides its address. */
export interface StoreOptions {
  readonly timeout?: string | undefined
  readonly fleet?: number | undefined
  readonly prefix?: string | undefined
}

/** The options of a rule file, given in code. */
export interface DocumentOptions {
  readonly rules?: readonly RuleOptions[] | undefined
  /** The places of each dimension in a call: sources such as `header:x-account-id`, or functions. */
  readonly identify?: Readonly<Record<string, OneOrList<string | CallReader>>> | undefined
  readonly trustProxy?: number | OneOrList<string> | undefined
  readonly forwardedBy?: ForwardedBy | undefined
  readonly ipv6Prefix?: 48 | 56 | 64 | 128 | undefined
  /** The treatment of a call that Diana fails to judge; default `pass`. */
  readonly whenFailed?: 'pass' | 'refuse' | undefined
  readonly jwt?:
    | {
        readonly key?: OneOrList<string> | undefined
        readonly verified?: boolean | undefined
        readonly issuer?: string | undefined
        readonly audience?: OneOrList<string> | undefined
      }
    | undefined
  readonly allow?: CallerOptions | undefined
  readonly deny?: CallerOptions | undefined
  readonly store?: (StoreOptions & { readonly redis: OneOrList<string> }) | undefined
  readonly remote?: Readonly<Record<string, unknown>> | undefined
  /** The HTTP status of a refusal: short for `answer: { status }`. */
  readonly status?: number | undefined
  readonly answer?: Partial<Answer> | undefined
  /** The levels of calls: the first line that has a level for a call decides. */
  readonly priority?: readonly PriorityOptions[] | undefined
  /** The thresholds at which this process refuses calls because it has too much to do. */
  readonly overload?:
    | {
        readonly eventLoopDelay?: string | undefined
        readonly eventLoopUtilization?: number | undefined
        readonly callWait?: string | undefined
        readonly heaviestFirst?: string | undefined
      }
    | undefined
}

/** A level: its name, or a number from 0 (refused first) to 100. */
export type LevelOption = 'critical' | 'default' | 'sheddable' | number

/** One line of `priority`. */
export interface PriorityOptions {
  readonly match?: CommonRuleOptions['match'] | undefined
  readonly level?: LevelOption | undefined
  readonly by?: string | undefined
  readonly levels?: Readonly<Record<string, LevelOption>> | undefined
  readonly header?: string | undefined
}

/** Limits that depend on the caller. */
export interface PlanOptions {
  /** The dimension whose value names a limit, such as `jwt:plan`. */
  readonly by?: string | undefined
  readonly values?:
    | Readonly<
        Record<string, string | number | ({ readonly limit: string | number } & Readonly<Record<string, unknown>>)>
      >
    | undefined
  /** The place where limits of single callers are: `redis:limits:{account}`, a URL, or a function that gets the caller's values. */
  readonly from?: string | LimitFunction | undefined
  readonly refresh?: string | undefined
  /** True if operators set limits of single callers. */
  readonly overrides?: boolean | undefined
  readonly default: string | number
}

/** The limit of a caller, such as `5000/h`; undefined if they have none of their own. */
export type LimitFunction = (
  caller: Readonly<Record<string, string>>,
) => string | number | undefined | Promise<string | number | undefined>

/** Networks, or values by dimension. */
export type CallerOptions = OneOrList<string> | Readonly<Record<string, OneOrList<string | number>>>

/** A rule given in code: the options of all rules, and those of its algorithm. */
export type RuleOptions = CommonRuleOptions & AlgorithmChoice

/** The options that all rules have. */
export interface CommonRuleOptions {
  readonly id: string
  readonly enabled?: boolean | undefined
  readonly match?:
    | 'none'
    | {
        readonly path?: OneOrList<string> | undefined
        readonly method?: OneOrList<string> | undefined
        readonly host?: OneOrList<string> | undefined
        readonly header?: Readonly<Record<string, OneOrList<string>>> | undefined
        readonly attribute?: Readonly<Record<string, OneOrList<string>>> | undefined
        /** Messages of a WebSocket instead of requests. */
        readonly websocket?: 'messages' | undefined
      }
  readonly by?: OneOrList<string | CallReader> | undefined
  /** Must be given unless the rule is off. */
  readonly limit?: OneOrList<string | number> | PlanOptions | undefined
  readonly count?: Rule['count'] | undefined
  readonly whenFull?: WhenFull | undefined
  readonly queue?:
    | {
        readonly size?: number | undefined
        readonly timeout?: string | undefined
        readonly perCaller?: number | undefined
      }
    | undefined
  readonly whenStoreDown?: WhenStoreDown | undefined
  readonly lease?: 'auto' | 'off' | undefined
  readonly missing?: Missing | undefined
  readonly cost?:
    | number
    | string
    | {
        readonly from?: string | undefined
        readonly least?: number | undefined
        readonly most?: number | undefined
        readonly overrun?: 'debt' | 'clip' | undefined
        readonly hold?: string | undefined
        readonly reserve?: ReserveSource | ReserveWords | undefined
        readonly settle?: OneOrList<string> | SettleWords | undefined
        readonly weights?: Partial<WeightOptions> | undefined
        readonly unit?: string | undefined
      }
    | ((call: Call) => number)
    | undefined
  readonly countWhen?: OneOrList<string | number> | undefined
  readonly resetWhen?: OneOrList<string | number> | undefined
  readonly block?:
    | string
    | {
        readonly first: string
        readonly factor?: number | undefined
        readonly max?: string | undefined
        readonly forgetAfter?: string | undefined
        readonly clear?: boolean | undefined
      }
    | undefined
  readonly credit?: boolean | undefined
  readonly allow?: CallerOptions | undefined
  readonly deny?: CallerOptions | undefined
  /** The HTTP status of a refusal: short for `answer: { status }`. */
  readonly status?: number | undefined
  readonly answer?: Partial<Answer> | undefined
}
