import type { Context, Middleware, Next } from 'koa'
import { clientCertificateOf } from '../http/client-certificate.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { admit, verdictOf as verdictOfRaw } from './admit.ts'
import { observeNode } from './costs/observe-node.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import type { Framework } from './frameworks/framework.ts'
import { assertMounted } from './frameworks/mount-check.ts'
import { bodyOf, node } from './frameworks/node.ts'
import { pathBelow } from './frameworks/spelled-path.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

const koa: Framework<Context, Context> = {
  identity: context => context.req,
  method: context => node.method(context.req),
  headers: context => context.req.headers,
  target: context => context.url,
  base: baseOf,
  originalTarget: context => context.originalUrl,
  peer: context => context.req.socket.remoteAddress,
  clientCertificate: context => clientCertificateOf(context.req.socket),
  path: context => pathBelow(baseOf(context), context.url),
  // set by the usual routers
  template: ({ _matchedRoute: template }) => (typeof template === 'string' ? template : undefined),
  // Koa has no router of its own, and the usual ones are not strict
  caseInsensitive: () => true,
  isAnswered: context => context.headerSent,
  setHeader: (context, name, value) => context.set(name, value),
  refuse: (_request, context, { status, headers, body }) => {
    context.status = status
    // bytes, since Koa adds a charset to text, and JSON has none
    context.body = Buffer.from(body)
    for (const [name, value] of headers) context.set(name, value)
  },
  // Koa sends what a middleware leaves in the body
  followAnswer: context => {
    const { body, status } = context
    return () => context.headerSent || context.respond === false || context.body !== body || context.status !== status
  },
  body: context => bodyOf(context.req, (context.request as { readonly body?: unknown }).body, context.res),
  observe: (_request, context, observer) => observeNode(context.res, observer),
  watch: (_request, context, watcher) => node.watch(context.req, context.res, watcher),
  abandon: context => {
    context.respond = false
  },
  reportError: node.reportError,
}

/** Returns what koa-mount has cut from the path last; it stays there after the request has left what is mounted. */
function baseOf({ mountPath }: Context & { readonly mountPath?: unknown }): string {
  return typeof mountPath === 'string' && mountPath !== '/' ? mountPath : ''
}

/** Decides every request to a Koa application: `app.use(diana(limiter))`, before anything else. */
export function diana(limiter: Limiter, options: FilterOptions<Context, Context, Next> = {}): Middleware {
  return middleware(createFilter(limiter, koa, options))
}

/** Decides the requests to one route by its own rules: `router.post('/login', rateLimit(limiter, { rule: 'login' }), …)`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<Context, Context, Next>): Middleware
/** Limits requests without a limiter or a rule file: `app.use(rateLimit({ limit: '100/m' }))`. */
export function rateLimit(options: RateLimitOptions<Context, Context, Next>): Middleware & OwnLimiter
export function rateLimit(
  given: Limiter | RateLimitOptions<Context, Context, Next>,
  options?: RouteOptions<Context, Context, Next>,
): Middleware | (Middleware & OwnLimiter) {
  if (isOneLimit(given, options)) {
    const own = createOwnFilter(given, koa)
    return withOwnLimiter(middleware(own.filter), own)
  }
  return middleware(createRouteFilter(given as Limiter, koa, options as RouteOptions<Context, Context, Next>))
}

/** Returns the verdict of a request; of several filters, the last one. */
export function verdictOf(context: Context): Verdict | undefined {
  return verdictOfRaw(context.req)
}

function middleware(filter: Filter<Context, Context>): Middleware {
  let isMounted = false
  return (context, next) => {
    if (!isMounted) {
      assertMounted('koa', context.req?.socket !== undefined && typeof next === 'function', [context, next])
      isMounted = true
    }
    const passes = admit(filter, context, context, next)
    if (passes === true) return next()
    return passes === false ? undefined : passes.then(passed => (passed ? next() : undefined))
  }
}
