import type { FastifyPluginCallback, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { assertLimiter } from '../common/assert-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { admit, verdictOf as verdictOfRaw } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import { fastifyFramework } from './frameworks/fastify.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'

/** Decides every request to a Fastify application, before anything else: `app.register(diana(limiter))`. */
export function diana(limiter: Limiter, options: FilterOptions<FastifyRequest> = {}): FastifyPluginCallback {
  // register(diana) calls it with the application, and reports errors of a promise only
  if (isApplication(limiter)) return reject(limiter) as never
  const onRequest = hook(createFilter(limiter, fastifyFramework, options))
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', onRequest)
    done()
  }
  // the hook belongs to the application, not to an encapsulated scope, as with the fastify-plugin package
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'diana',
  })
}

/** Decides the requests to one route by its own rules, as a hook of any kind: `{ onRequest: rateLimit(limiter, { rule }) }`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<FastifyRequest>): onRequestHookHandler {
  return hook(createRouteFilter(limiter, fastifyFramework, options))
}

/** The verdict of a request; of several filters, the last one. */
export function verdictOf(request: FastifyRequest): Verdict | undefined {
  return verdictOfRaw(request.raw)
}

function isApplication(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'addHook' in given
}

async function reject(given: unknown): Promise<void> {
  assertLimiter(given, 'diana')
}

function hook(filter: Filter<FastifyRequest, FastifyReply>): onRequestHookHandler {
  return (request, reply, done) => {
    const passes = admit(filter, request, reply)
    if (passes === true) done()
    else if (passes !== false) passes.then(passed => passed && done(), done)
  }
}
