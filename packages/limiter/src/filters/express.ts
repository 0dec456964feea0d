import type { Request, RequestHandler, Response } from 'express'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import { expressFramework } from './frameworks/express.ts'

export { verdictOf } from './admit.ts'
export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'

/** Judges every request to an Express application: `app.use(diana(limiter))`, before anything else. */
export function diana(limiter: Limiter, options: FilterOptions<Request> = {}): RequestHandler {
  return middleware(createFilter(limiter, expressFramework, options))
}

/** Judges the requests to one route by rules of its own: `app.post('/login', rateLimit(limiter, { rule: 'login' }), …)`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<Request>): RequestHandler {
  return middleware(createRouteFilter(limiter, expressFramework, options))
}

function middleware(filter: Filter<Request, Response>): RequestHandler {
  return (request, response, next) => {
    const passes = admit(filter, request, response)
    if (passes === true) next()
    else if (passes !== false) passes.then(passed => passed && next(), next)
  }
}
