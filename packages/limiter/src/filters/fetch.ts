import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { admit, verdictOf as verdictOfRaw } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import {
  beginExchange,
  type Exchange,
  exchangeOf,
  type FetchServer,
  fetchFramework,
  reportingItsEnd,
  statusOf,
} from './frameworks/fetch.ts'
import type { Framework } from './frameworks/framework.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { FetchServer } from './frameworks/fetch.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

/** The connection as the server knows it: the caller's address, or the second argument of a handler of Bun, Deno or Node. */
export type FetchInfo = string | FetchServer | object

/** The address at the other end of the connection, where the server does not give it. */
export interface PeerOption {
  readonly peer?: ((request: Request) => string | undefined) | undefined
}

type Handler<Rest extends readonly unknown[]> = (request: Request, ...rest: Rest) => Response | Promise<Response>

/** A filter for everything that speaks `Request` and `Response`. */
export interface FetchFilter {
  /** The answer to a refused request; undefined if it may go on. A promise only if the decision needs one. */
  (request: Request, info?: FetchInfo): Response | undefined | Promise<Response | undefined>
  /** Takes the answer of a request that has gone on: adds headers, and notices when it has been sent. */
  after(request: Request, response: Response): Response
  /** Ends a request whose handler has failed. */
  after(request: Request): undefined
  /** Returns a handler with the filter before and after it. What is passed beside the request is passed on. */
  wrap<Rest extends readonly unknown[]>(handler: Handler<Rest>): Handler<Rest>
}

/** Decides every request to a handler: `serve({ fetch: diana(limiter).wrap(handler) })`. */
export function diana(limiter: Limiter, options: FilterOptions<Request> & PeerOption = {}): FetchFilter {
  return fetchFilter(createFilter(limiter, frameworkFor(options), options, { name: 'diana', own: ['peer'] }))
}

/** Decides the requests to one handler by its own rules: `rateLimit(limiter, { rule: 'login' }).wrap(login)`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<Request> & PeerOption): FetchFilter
/** Limits requests without a limiter or a rule file: `rateLimit({ limit: '100/m' }).wrap(handler)`. */
export function rateLimit(options: RateLimitOptions<Request> & PeerOption): FetchFilter & OwnLimiter
export function rateLimit(
  given: Limiter | (RateLimitOptions<Request> & PeerOption),
  options?: RouteOptions<Request> & PeerOption,
): FetchFilter | (FetchFilter & OwnLimiter) {
  if (isOneLimit(given, options)) {
    const own = createOwnFilter(given as RateLimitOptions<Request>, frameworkFor(given), ['peer'])
    return withOwnLimiter(fetchFilter(own.filter), own)
  }
  const route = options as RouteOptions<Request> & PeerOption
  return fetchFilter(createRouteFilter(given as Limiter, frameworkFor(route), route, { own: ['peer'] }))
}

/** Returns the verdict of a request; of several filters, the last one. */
export function verdictOf(request: Request): Verdict | undefined {
  return verdictOfRaw(fetchFramework.identity(request))
}

function frameworkFor({ peer }: PeerOption = {}): Framework<Request, Exchange> {
  return peer === undefined ? fetchFramework : { ...fetchFramework, peer }
}

function fetchFilter(filter: Filter<Request, Exchange>): FetchFilter {
  const decide = (request: Request, info?: FetchInfo): Response | undefined | Promise<Response | undefined> => {
    assertRequest(request)
    const exchange = beginExchange(request, serverIn(info))
    const passes = admit(filter, request, exchange)
    if (passes === true) return undefined
    if (passes === false) return exchange.refusal
    return passes.then(passed => (passed ? undefined : exchange.refusal))
  }
  const wrap = <Rest extends readonly unknown[]>(handler: Handler<Rest>): Handler<Rest> => {
    if (typeof handler !== 'function') {
      throw new DianaError('BAD_CALL', "wrap was given no handler: write rateLimit({ limit: '100/m' }).wrap(handler)")
    }
    return (request, ...rest) => {
      const refused = decide(request, rest[0] as FetchInfo | undefined)
      if (refused === undefined) return answered(request, () => handler(request, ...rest))
      if (!(refused instanceof Promise)) return refused
      return refused.then(one => one ?? answered(request, () => handler(request, ...rest)))
    }
  }
  return Object.assign(decide, { after: after as FetchFilter['after'], wrap })
}

function answered(request: Request, handle: () => Response | Promise<Response>): Response | Promise<Response> {
  const failed = (error: unknown): never => {
    after(request)
    throw error
  }
  try {
    const response = handle()
    return response instanceof Promise
      ? response.then(one => after(request, one) as Response, failed)
      : (after(request, response) as Response)
  } catch (error) {
    return failed(error)
  }
}

function after(request: Request, response?: Response): Response | undefined {
  const exchange = exchangeOf(request)
  if (exchange === undefined) return response
  const watchers = exchange.watchers.splice(0)
  const watcher = {
    ended: (status: number | undefined): void => {
      for (const one of watchers) one.ended(status)
    },
  }
  if (!(response instanceof Response)) {
    watcher.ended(500)
    return response
  }
  const { body } = response
  const status = statusOf(response)
  const observers = exchange.observers.splice(0)
  for (const one of observers) one.begin(response.status, name => response.headers.get(name) ?? undefined)
  if (watchers.length === 0) return withHeaders(response, exchange)
  if (body === null) {
    watcher.ended(status)
    return withHeaders(response, exchange)
  }
  const observer = {
    add: (chunk: Uint8Array): void => {
      for (const one of observers) one.add(chunk)
    },
  }
  return withHeaders(new Response(reportingItsEnd(body, status, watcher, observer), response), exchange)
}

/** Copies a response with more headers: those of a redirect, or of what `fetch` has returned, cannot be changed. */
function withHeaders(response: Response, { headers }: Exchange): Response {
  if (headers.size === 0) return response
  try {
    for (const [name, value] of headers.values()) response.headers.set(name, value)
    return response
  } catch {
    const copy = new Response(response.body, response)
    for (const [name, value] of headers.values()) copy.headers.set(name, value)
    return copy
  }
}

function serverIn(info: FetchInfo | undefined): FetchServer {
  if (typeof info === 'string') return { ip: info }
  if (typeof info !== 'object' || info === null) return {}
  return (info as FetchServer).server ?? (info as FetchServer)
}

function assertRequest(request: unknown): void {
  const { headers, method } = (request ?? {}) as Partial<Request>
  if (typeof method === 'string' && typeof headers?.get === 'function') return
  throw new DianaError('BAD_CALL', 'this filter takes a Request: write await limit(request), or limit.wrap(handler)')
}
