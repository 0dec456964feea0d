import type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
} from 'fastify'
import { assertLimiter } from '../common/assert-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { admit, verdictOf as verdictOfRaw } from './admit.ts'
import { createFilter, createRouteFilter, type Filter, type FilterOptions, type RouteOptions } from './filter.ts'
import { fastifyFramework } from './frameworks/fastify.ts'
import { assertMounted, mountedElsewhere } from './frameworks/mount-check.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

/** A plugin for the whole application, or a hook of one route: `app.register(…)`, `{ onRequest: … }`. */
export type PluginOrHook = FastifyPluginCallback & onRequestHookHandler

/** Decides every request to a Fastify application, before anything else: `app.register(diana(limiter))`. */
export function diana(
  limiter: Limiter,
  options: FilterOptions<FastifyRequest, FastifyReply> = {},
): FastifyPluginCallback {
  // register(diana) calls it with the application, and reports errors of a promise only
  if (isApplication(limiter)) return reject(limiter) as never
  const onRequest = hook(createFilter(limiter, fastifyFramework, options))
  const plugin: FastifyPluginCallback = (app, more, done) => {
    if (!isApplication(app)) throw mountedElsewhere('fastify', [app, more])
    app.addHook('onRequest', onRequest)
    done()
  }
  return ofApplication(plugin)
}

/** Makes the hooks of the plugin belong to the application, not to an encapsulated scope, as with the fastify-plugin package. */
function ofApplication<Plugin extends object>(plugin: Plugin): Plugin {
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'diana',
  })
}

/** Decides the requests to one route by its own rules, as a hook of any kind: `{ onRequest: rateLimit(limiter, { rule }) }`. */
export function rateLimit(limiter: Limiter, options: RouteOptions<FastifyRequest, FastifyReply>): onRequestHookHandler
/**
 * Limits requests without a limiter or a rule file: `app.register(rateLimit({ limit: '100/m' }))` for all routes, which is closed
 * with the application, or `{ onRequest: rateLimit({ limit: '5/m' }) }` for one.
 */
export function rateLimit(options: RateLimitOptions<FastifyRequest, FastifyReply>): PluginOrHook & OwnLimiter
export function rateLimit(
  given: Limiter | RateLimitOptions<FastifyRequest, FastifyReply>,
  options?: RouteOptions<FastifyRequest, FastifyReply>,
): onRequestHookHandler | (PluginOrHook & OwnLimiter) {
  // register(rateLimit) calls it with the application, and reports errors of a promise only
  if (isApplication(given)) return rejectMounted(given) as never
  if (!isOneLimit(given, options)) {
    return hook(
      createRouteFilter(given as Limiter, fastifyFramework, options as RouteOptions<FastifyRequest, FastifyReply>),
    )
  }
  const own = createOwnFilter(given, fastifyFramework)
  const onRequest = hook(own.filter)
  const pluginOrHook = function (this: FastifyInstance, target: FastifyInstance | FastifyRequest, ...rest: unknown[]) {
    const [reply, done] = rest as [FastifyReply, () => void]
    if (!isApplication(target)) return onRequest.call(this, target as FastifyRequest, reply, done)
    const app = target as FastifyInstance
    app.addHook('onRequest', onRequest)
    app.addHook('onClose', () => own.close())
    done()
  }
  // Fastify passes `done` only to functions with three parameters
  Object.defineProperty(pluginOrHook, 'length', { value: 3 })
  return withOwnLimiter(ofApplication(pluginOrHook as unknown as PluginOrHook), own)
}

/** Returns the verdict of a request; of several filters, the last one. */
export function verdictOf(request: FastifyRequest): Verdict | undefined {
  return verdictOfRaw(request.raw)
}

function isApplication(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'addHook' in given
}

async function rejectMounted(given: unknown): Promise<void> {
  isOneLimit(given)
}

async function reject(given: unknown): Promise<void> {
  assertLimiter(given, 'diana')
}

function hook(filter: Filter<FastifyRequest, FastifyReply>): onRequestHookHandler {
  let isMounted = false
  return (request, reply, done) => {
    if (!isMounted) {
      assertMounted('fastify', request.raw !== undefined && reply.raw !== undefined, [request, reply])
      isMounted = true
    }
    let passes: boolean | Promise<boolean>
    try {
      passes = admit(filter, request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    if (passes === true) done()
    else if (passes !== false) passes.then(passed => passed && done(), done)
  }
}
