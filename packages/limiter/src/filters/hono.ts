import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { admit, verdictOf as verdictOfRaw } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import type { Framework } from './frameworks/framework.ts'
import { honoFramework, isFollowed, outlive } from './frameworks/hono.ts'
import { assertMounted } from './frameworks/mount-check.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

/** The address at the other end of the connection, where Hono runs on something else than Node, Bun or Deno. */
export interface PeerOption {
  readonly peer?: ((context: Context) => string | undefined) | undefined
}

/** Decides every request to a Hono application: `app.use(diana(limiter))`, before anything else. */
export function diana(
  limiter: Limiter,
  options: FilterOptions<Context, Context, Next> & PeerOption = {},
): MiddlewareHandler {
  return middleware(createFilter(limiter, frameworkFor(options), options, { name: 'diana', own: ['peer'] }))
}

/** Decides the requests to one route by its own rules: `app.post('/login', rateLimit(limiter, { rule: 'login' }), …)`. */
export function rateLimit(
  limiter: Limiter,
  options: RouteOptions<Context, Context, Next> & PeerOption,
): MiddlewareHandler
/** Limits requests without a limiter or a rule file: `app.use(rateLimit({ limit: '100/m' }))`. */
export function rateLimit(
  options: RateLimitOptions<Context, Context, Next> & PeerOption,
): MiddlewareHandler & OwnLimiter
export function rateLimit(
  given: Limiter | (RateLimitOptions<Context, Context, Next> & PeerOption),
  options?: RouteOptions<Context, Context, Next> & PeerOption,
): MiddlewareHandler | (MiddlewareHandler & OwnLimiter) {
  if (isOneLimit(given, options)) {
    const own = createOwnFilter(given as RateLimitOptions<Context, Context, Next>, frameworkFor(given), ['peer'])
    return withOwnLimiter(middleware(own.filter), own)
  }
  const route = options as RouteOptions<Context, Context, Next> & PeerOption
  return middleware(createRouteFilter(given as Limiter, frameworkFor(route), route, { own: ['peer'] }))
}

/** Returns the verdict of a request; of several filters, the last one. */
export function verdictOf(context: Context): Verdict | undefined {
  return verdictOfRaw(honoFramework.identity(context))
}

function frameworkFor({ peer }: PeerOption = {}): Framework<Context, Context> {
  return peer === undefined ? honoFramework : { ...honoFramework, peer }
}

function middleware(filter: Filter<Context, Context>): MiddlewareHandler {
  let isMounted = false
  return (context, next) => {
    if (!isMounted) {
      assertMounted('hono', context.req?.raw !== undefined && typeof next === 'function', [context, next])
      isMounted = true
    }
    const passes = admit(filter, context, context, next)
    if (passes === true) return goOn(context, next)
    // a middleware that is alone on a path must return what it answers
    if (passes === false) return Promise.resolve(context.res)
    return passes.then(passed => (passed ? goOn(context, next) : context.res))
  }
}

function goOn(context: Context, next: () => Promise<void>): ReturnType<MiddlewareHandler> {
  return isFollowed(context) ? outlive(context, next()) : next()
}
