import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../answers/answer.ts'
import { DianaError } from '../errors.ts'
import { normalizeTarget } from '../http/path.ts'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import {
  createFilter,
  createRouteFilter,
  type Filter,
  type FilterOptions,
  type Mount,
  type RouteOptions,
} from './filter.ts'
import { httpFramework, tunnelFramework } from './frameworks/http.ts'
import { assertMounted } from './frameworks/mount-check.ts'
import { isGone, type NodeRequest, type NodeResponse } from './frameworks/node.ts'
import { isOneLimit, type RateLimitOptions } from './one-line/options.ts'
import { createOwnFilter, type OwnLimiter, withOwnLimiter } from './one-line/own-limiter.ts'

export { verdictOf } from './admit.ts'

export type { FilterOptions, RouteOptions, RouteRule } from './filter.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'
export type { OwnLimiter } from './one-line/own-limiter.ts'

type Listener<Request, Response> = (request: Request, response: Response) => unknown

const unreadable: Refusal = {
  status: 400,
  headers: [
    ['Cache-Control', 'no-store'],
    ['Content-Type', 'application/problem+json'],
  ],
  body: JSON.stringify({
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    detail: 'The target of this call cannot be read.',
  }),
}

/**
 * Decides every request before `listener` gets it: `createServer(diana(limiter, listener))`. The listener sees the
 * target in the one spelling that was counted; what has none is answered with 400.
 */
export function diana<Request extends NodeRequest, Response extends NodeResponse>(
  limiter: Limiter,
  listener: Listener<Request, Response>,
  options: FilterOptions<NodeRequest, NodeResponse> = {},
): (request: Request, response: Response) => void {
  assertListener('diana', listener)
  assertAnswers('diana', options)
  return wrap(createFilter(limiter, httpFramework, options), listener)
}

/** Decides the requests to one listener by its own rules: `rateLimit(limiter, login, { rule: 'login' })`. */
export function rateLimit<Request extends NodeRequest, Response extends NodeResponse>(
  limiter: Limiter,
  listener: Listener<Request, Response>,
  options: RouteOptions<NodeRequest, NodeResponse>,
): (request: Request, response: Response) => void
/** Limits requests without a limiter or a rule file: `createServer(rateLimit({ limit: '100/m' }, listener))`. */
export function rateLimit<Request extends NodeRequest, Response extends NodeResponse>(
  options: RateLimitOptions<NodeRequest, NodeResponse, (error?: unknown) => void>,
  listener: Listener<Request, Response>,
): ((request: Request, response: Response) => void) & OwnLimiter
/** Makes a middleware `(request, response, next)`, for servers such as Connect and Polka. */
export function rateLimit(
  options: RateLimitOptions<NodeRequest, NodeResponse, (error?: unknown) => void>,
): NodeMiddleware & OwnLimiter
export function rateLimit(
  given: Limiter | RateLimitOptions<NodeRequest, NodeResponse, (error?: unknown) => void>,
  listener?: Listener<NodeRequest, NodeResponse>,
  options?: RouteOptions<NodeRequest, NodeResponse>,
): ((request: NodeRequest, response: NodeResponse) => void) | NodeMiddleware {
  if (isOneLimit(given, options)) {
    if (listener === undefined) return ownMiddleware(given)
    assertListener('rateLimit', listener)
    assertAnswers('rateLimit', given)
    const own = createOwnFilter(given, httpFramework)
    return withOwnLimiter(wrap(own.filter, listener), own)
  }
  assertListener('rateLimit', listener)
  assertAnswers('rateLimit', options)
  return wrap(
    createRouteFilter(given as Limiter, httpFramework, options as RouteOptions<NodeRequest, NodeResponse>),
    listener!,
  )
}

/** A middleware as Connect has them. */
export type NodeMiddleware = (request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void) => void

/** Routers cut what they are mounted on from `url`. */
const middlewareFramework: typeof httpFramework = {
  ...httpFramework,
  originalTarget: request => {
    const { originalUrl } = request as NodeRequest & { readonly originalUrl?: unknown }
    return typeof originalUrl === 'string' ? originalUrl : httpFramework.target(request)
  },
}

function ownMiddleware(
  given: RateLimitOptions<NodeRequest, NodeResponse, (error?: unknown) => void>,
): NodeMiddleware & OwnLimiter {
  const own = createOwnFilter(given, middlewareFramework)
  let isMounted = false
  const middleware: NodeMiddleware = (request, response, next) => {
    if (!isMounted) {
      assertMounted('http', isOfNode(request, response), [request, response])
      isMounted = true
    }
    let passes: boolean | Promise<boolean>
    try {
      passes = admit(own.filter, request, response, next)
    } catch (error) {
      next(error)
      return
    }
    if (passes === true) next()
    else if (passes !== false) passes.then(passed => passed && next(), next)
  }
  return withOwnLimiter(middleware, own)
}

function isOfNode(request: NodeRequest, response: NodeResponse): boolean {
  return request?.headers !== undefined && typeof response?.setHeader === 'function'
}

const guarding: Mount = { name: 'guard' }

function assertServer(server: unknown): void {
  if (typeof (server as Partial<EventEmitter> | undefined)?.emit === 'function') return
  throw new DianaError('BAD_CALL', 'guard was given no server: write guard(server, limiter), the server first')
}

/** Refuses `forwardErrors`: a plain server has no handler of errors that a refusal could go to. */
function assertAnswers(caller: string, options: { readonly forwardErrors?: unknown } | undefined): void {
  if (options?.forwardErrors !== true) return
  throw new DianaError(
    'BAD_CALL',
    `${caller}: forwardErrors needs a framework with a handler of errors: write onRefused`,
  )
}

function assertListener(caller: string, listener: unknown): void {
  if (typeof listener === 'function') return
  const more = caller === 'diana' ? '' : ", { rule: 'login' }"
  const example = `createServer(${caller}(limiter, (request, response) => …${more}))`
  throw new DianaError('BAD_CALL', `${caller} was given no listener: write ${example}`)
}

function wrap<Request extends NodeRequest, Response extends NodeResponse>(
  filter: Filter<NodeRequest, NodeResponse>,
  listener: Listener<Request, Response>,
): (request: Request, response: Response) => void {
  const serve = (request: NodeRequest, response: NodeResponse) => listener(request as Request, response as Response)
  let isMounted = false
  return (request, response) => {
    if (!isMounted) {
      assertMounted('http', isOfNode(request, response), [request, response])
      isMounted = true
    }
    goThrough(filter, request, response, serve)
  }
}

/**
 * Decides every request to a server, before any of its present and future listeners: plain requests, those that wait for
 * 100 Continue (Expect), and those that leave HTTP (Upgrade, CONNECT), which no middleware sees.
 */
export function guard<Server extends EventEmitter>(
  server: Server,
  limiter: Limiter,
  options: FilterOptions<NodeRequest, NodeResponse | Duplex> = {},
): Server {
  assertServer(server)
  assertAnswers('guard', options)
  const requests = createFilter(limiter, httpFramework, options, guarding)
  const tunnels = createFilter(limiter, tunnelFramework, options, guarding)
  const emit = server.emit.bind(server) as (event: string | symbol, ...args: unknown[]) => boolean
  const next = (event: string) => (request: unknown, reply: unknown, head: unknown) => emit(event, request, reply, head)
  const [onRequest, onExpectation, onUpgrade, onConnect] = [
    next('request'),
    next('checkExpectation'),
    next('upgrade'),
    next('connect'),
  ]
  const onContinue = (request: NodeRequest, response: NodeResponse): void => {
    if (server.listenerCount('checkContinue') > 1) emit('checkContinue', request, response)
    else {
      if (!isGone(request, response)) response.writeContinue()
      emit('request', request, response)
    }
  }
  // without a listener, Node sends 100 Continue before the request is decided
  server.on('checkContinue', () => {})

  const judged = (event: string | symbol, request: never, reply: never, head: unknown): boolean => {
    switch (event) {
      case 'request':
        goThrough(requests, request, reply, onRequest)
        return true
      case 'checkContinue':
        goThrough(requests, request, reply, onContinue)
        return true
      case 'checkExpectation':
        goThrough(requests, request, reply, onExpectation)
        return true
      case 'upgrade':
        goThrough(tunnels, request, reply, onUpgrade, head)
        return true
      case 'connect':
        if (server.listenerCount('connect') === 0) return false
        // in HTTP/2 a tunnel is a stream, and answered as all others are
        if (head === undefined) goThrough(requests, request, reply, onConnect)
        else goThrough(tunnels, request, reply, onConnect, head)
        return true
      default:
        return false
    }
  }
  const guarded: readonly (string | symbol)[] = ['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect']
  server.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (!guarded.includes(event)) return emit(event, ...args)
    return judged(event, args[0] as never, args[1] as never, args[2])
  }
  return server
}

function goThrough<Request extends NodeRequest, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  next: (request: Request, reply: Reply, head: unknown) => unknown,
  head?: unknown,
): void {
  if (!settleTarget(request)) {
    filter.framework.refuse(request, reply, unreadable)
    return
  }
  const passes = admit(filter, request, reply)
  if (passes === true) next(request, reply, head)
  else if (passes !== false) void passes.then(passed => passed && next(request, reply, head))
}

/** Brings a request's target to the one spelling that is counted and served; false if it has none. */
function settleTarget(request: NodeRequest): boolean {
  const url = request.url ?? '/'
  // CONNECT names a host and no path
  if (request.method === 'CONNECT') return true
  const target = normalizeTarget(url)
  if (target === undefined) return false
  const { path, query } = target
  if (query === undefined) {
    if (path !== url) request.url = path
  } else if (url.length !== path.length + query.length + 1 || !url.startsWith(path)) {
    request.url = `${path}?${query}`
  }
  return true
}
