import type { CustomAnswer } from '../answers/custom-answer.ts'
import type { Call } from '../call.ts'
import { assertLimiter } from '../common/assert-limiter.ts'
import { warnOfEach } from '../common/warn-once.ts'
import type { Decider } from '../decision/decider.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { AddressReader } from '../http/ip-address.ts'
import type { Limiter } from '../limiter.ts'
import type { RuleDocument } from '../rules/rule.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import type { Verdict } from '../verdict.ts'
import { assertOptions, assertRouteOptions } from './assert-options.ts'
import type { Framework } from './frameworks/framework.ts'
import type { RequestFunctions } from './one-line/request-functions.ts'

/** Options of every filter. `Request` and `Reply` are the framework's own, and so is `Next` where a handler gets one. */
export interface FilterOptions<Request, Reply = unknown, Next = unknown> {
  /** The cost of a call; default: 1. A function that throws, or returns an invalid cost, counts as 1. */
  readonly cost?: number | ((call: Call, request: Request) => number) | undefined
  /** Returns what the application knows of the caller: `{ account: session.userId }`. It wins over what `identify` finds. */
  readonly attributes?: ((request: Request) => Call['attributes']) | undefined
  /** The unit that `by: resource` counts: each route if it is known (the default), or each path. */
  readonly resource?: 'route' | 'path' | undefined
  /** True if `/A` and `/a` are two paths; default: as in the framework. */
  readonly caseSensitive?: boolean | undefined
  /**
   * Requests for which it returns true, or a promise of true, pass without a decision. If it throws, rejects or takes too long, the
   * request is decided.
   */
  readonly skip?: ((request: Request) => boolean | Promise<boolean>) | undefined
  /**
   * Answers a refused call instead; nothing for Diana's own answer. It may answer by the reply itself, or call `next`: Diana
   * then does not answer.
   */
  readonly onRefused?:
    | ((verdict: Verdict, request: Request, reply: Reply, next: Next) => RefusedAnswer | Promise<RefusedAnswer>)
    | undefined
  /** True if a refusal goes to the framework's handler of errors, as a LimitedError; default false: Diana answers it. */
  readonly forwardErrors?: boolean | undefined
  /**
   * Called with every error of Diana or of these functions on a call, instead of a warning. A call that Diana fails to decide passes,
   * unless `whenFailed` is `refuse`; one whose limiter cannot be made is refused.
   */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined
}

/** A value that `onRefused` may return: an answer, one of the framework's own, or nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that answers by the reply itself returns nothing
export type RefusedAnswer = CustomAnswer | Response | undefined | void

/** A rule by its id, or with the options of the rule file; a rule with the same id in the file replaces it. */
export type RouteRule = string | RuleOptions

/** Options of the filter of one route. */
export interface RouteOptions<Request, Reply = unknown, Next = unknown> extends FilterOptions<Request, Reply, Next> {
  /** The rules that decide calls to the route, and no others. */
  readonly rule: RouteRule | readonly RouteRule[]
}

/** The proxies that the rules in force trust, and how the caller's address is read behind them. */
export interface ProxyTrust {
  readonly addressOf: AddressReader
  /** True if a peer is a proxy whose headers are believed; left out, none is. */
  readonly isTrusted?: ((peer: string | undefined) => boolean) | undefined
  readonly document: Pick<RuleDocument, 'trustProxy' | 'forwardedBy' | 'statesProxies'>
  /** @internal Finds the rules of a call whose costs are read from requests and answers; left out, there are none. */
  readonly decider?: Pick<Decider, 'measures' | 'meets'> | undefined
}

/** A limiter mounted in a framework, once. */
export interface Filter<Request, Reply> {
  readonly limiter: Limiter
  readonly trust: ProxyTrust
  readonly framework: Framework<Request, Reply>
  readonly options: FilterOptions<Request, Reply, never>
  /** The ids of rules that it decides by, besides those that match. */
  readonly rules: readonly string[]
  /** True if it decides by those alone. */
  readonly only: boolean
  /** The ids of rules that it leaves out. */
  readonly except?: readonly string[] | undefined
  /** The functions of the application that are called before a request is decided. */
  readonly functions?: RequestFunctions<Request> | undefined
  /** True if preflight requests of CORS pass without a decision. */
  readonly passesPreflights?: boolean | undefined
  /** Set while the limiter is being made; requests wait for it. */
  readonly pending?: Promise<void> | undefined
  /** Is called for each request that waits for the limiter. */
  readonly onEarlyRequest?: (() => void) | undefined
}

/** The name of a filter in messages, and the options that only it has. */
export interface Mount {
  readonly name: string
  readonly own?: readonly string[] | undefined
}

/** Creates a filter by all rules that match. Throws if it is not given a limiter, or options that it cannot use. */
export function createFilter<Request, Reply>(
  limiter: Limiter,
  framework: Framework<Request, Reply>,
  options: FilterOptions<Request, Reply, never>,
  { name, own }: Mount = { name: 'diana' },
): Filter<Request, Reply> {
  assertLimiter(limiter, name)
  assertOptions(options, name, own)
  return { limiter, trust: engineOf(limiter), framework, options, rules: [], only: false, pending: undefined }
}

/** Creates a filter by the rules that a route names. Rules given by options are added to the limiter. */
export function createRouteFilter<Request, Reply>(
  limiter: Limiter,
  framework: Framework<Request, Reply>,
  options: RouteOptions<Request, Reply, never>,
  { own }: Pick<Mount, 'own'> = {},
): Filter<Request, Reply> {
  assertLimiter(limiter, 'rateLimit')
  assertRouteOptions(options, 'rateLimit', own)
  const rules = Array.isArray(options.rule) ? options.rule : [options.rule as RouteRule]
  return {
    limiter,
    trust: engineOf(limiter),
    framework,
    options,
    rules: rules.map(rule => known(limiter, rule)),
    only: true,
    pending: undefined,
  }
}

function known(limiter: Limiter, rule: RouteRule): string {
  if (typeof rule === 'string') {
    if (!limiter.rules.some(({ id }) => id === rule)) warnOfEach('DIANA_NO_SUCH_RULE', `"${rule}"`)
    return rule
  }
  limiter.addRule({ match: 'none', ...rule })
  return rule.id
}
