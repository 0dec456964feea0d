import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import type { Framework, FrameworkProxies } from './frameworks/framework.ts'
import { assertMounted } from './frameworks/mount-check.ts'
import { node } from './frameworks/node.ts'
import { pathBelow, spelledPath } from './frameworks/spelled-path.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'
import type { Next } from './refuse.ts'

export { verdictOf } from './admit.ts'
export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

type Options = FilterOptions<Request, Response, NextFunction>

/** Limits every request to an Express application: `app.use(diana(limiter))`, before anything else. */
export function diana(limiter: Limiter, options: Options = {}): RequestHandler {
  return middleware(createFilter(limiter, expressFramework, options))
}

/** Limits the requests to one route by rules of its own: `app.post('/login', rateLimit(limiter, { rule: 'login' }), …)`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<Request, Response, NextFunction>): RequestHandler
/** Limits requests without a limiter or a rule file: `app.use(rateLimit({ limit: '100/m' }))`. */
export function rateLimit(options: RateLimitOptions<Request, Response, NextFunction>): RequestHandler & OwnLimiter
export function rateLimit(
  given: Limiter | RateLimitOptions<Request, Response, NextFunction>,
  options?: RouteOptions<Request, Response, NextFunction>,
): RequestHandler | (RequestHandler & OwnLimiter) {
  if (isOneLimit(given, options)) {
    const own = createOwnFilter(given, expressFramework)
    return withOwnLimiter(middleware(own.filter), own)
  }
  return middleware(
    createRouteFilter(given as Limiter, expressFramework, options as RouteOptions<Request, Response, NextFunction>),
  )
}

function middleware(filter: Filter<Request, Response>): RequestHandler {
  let isMounted = false
  return (request, response, next) => {
    if (!isMounted) {
      assertMounted('express', request.app !== undefined && typeof next === 'function', [request, response])
      isMounted = true
    }
    const passes = admit(filter, request, response, next as Next)
    if (passes === true) next()
    else if (passes !== false) passes.then(passed => passed && next(), next)
  }
}

/** The functions that read the requests of Express 5 and 4, and answer them. */
export const expressFramework: Framework<Request, Response> = {
  ...node,
  identity: request => request,
  // every property of an Express response is slow to read; a response that has ended has sent its headers
  isAnswered: response => response.headersSent,
  method: request => request.method,
  headers: request => request.headers,
  peer: request => request.socket.remoteAddress,
  target: request => request.url,
  base: request => request.baseUrl,
  originalTarget: request => request.originalUrl,
  path: request => pathBelow(request.baseUrl, request.url),
  template: request => {
    const path: unknown = request.route?.path
    return typeof path === 'string' ? baseOf(request) + path : undefined
  },
  // a router, or an application that is mounted, ignores case by default, even if the application does not
  caseInsensitive: () => true,
  setHeader: (response, name, value) => {
    response.setHeader(name, value)
  },
  proxies: request => proxiesOf(request.app),
}

/** Reads the setting `trust proxy`, which Express compiles to a function. */
function proxiesOf(app: Request['app'] | undefined): FrameworkProxies | undefined {
  const isTrusted: unknown = app?.get('trust proxy fn')
  if (typeof isTrusted !== 'function') return undefined
  const setting: unknown = app!.get('trust proxy')
  const believes = setting === true ? 'everyone' : setting ? 'some' : 'nobody'
  return { isTrusted: isTrusted as FrameworkProxies['isTrusted'], believes }
}

/** Returns what the router of the route is mounted on, which is known only as the caller spelled it. */
function baseOf(request: Request): string {
  return request.baseUrl === '' ? '' : spelledPath(request.baseUrl).toLowerCase()
}
