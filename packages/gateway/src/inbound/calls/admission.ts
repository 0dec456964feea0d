import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Limiter } from 'diana-limiter'
import { admit, callOfRequest, createFilter, type Filter, type Framework, httpFramework } from 'diana-limiter/filter'
import { steadyMicroseconds } from 'diana-limiter/gateway'
import type { FastifyBaseLogger, FastifyInstance, RouteOptions } from 'fastify'
import type { CallReply, CallRequest, HeaderValue } from '../../http/call.ts'
import { grpcHeaders } from '../../http/grpc/answer-grpc.ts'
import { askForBody } from '../../http/message-headers.ts'
import type { MessageLimits } from '../../http/message-limits.ts'
import { faultOf, isSettled, normalizeRequest } from '../../http/normalize-request.ts'
import type { GatewaySettings } from '../../settings/gateway-settings.ts'
import { isWhole, nextTurn, recordOf, tellRequestId } from '../../telemetry/call-record.ts'
import { sendProblem } from '../problem.ts'
import { answerCors } from './cors.ts'

/** Called with an error if the request could not be judged. */
export type OnAdmitted = (error?: Error) => void

/** Applies the limits, which every request passes first, before filters and routes. */
export class Admission {
  readonly #filter: Filter<CallRequest, CallReply>
  readonly #settings: () => GatewaySettings

  constructor(limiter: Limiter, settings: () => GatewaySettings) {
    this.#filter = createFilter(limiter, callFramework, {})
    this.#settings = settings
  }

  /** Answers the request, or calls `onAdmitted`; at once unless the request has to wait. */
  admit(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    const { cors, answerHeaders } = this.#settings()
    tellRequestId(request, reply)
    // before any rule counts: refusals carry these headers as well
    for (const name in answerHeaders) reply.header(name, answerHeaders[name]!)
    if (cors !== undefined && answerCors(request, reply, cors)) return
    const record = recordOf(request.raw)
    if (record !== undefined) record.turn = nextTurn()
    const isAdmitted = admit(this.#filter, request, reply)
    if (isAdmitted === true) this.#pass(request, reply, onAdmitted)
    else if (isAdmitted !== false) {
      isAdmitted.then(admitted => admitted && this.#pass(request, reply, onAdmitted), onAdmitted)
    }
  }

  /** Decides the messages of a WebSocket that a request has opened; undefined if no rule is about messages. */
  messagesOf(request: CallRequest): MessageLimits | undefined {
    const { limiter } = this.#filter
    if (!limiter.rules.some(({ match }) => match.websocket !== undefined)) return undefined
    const call = callOfRequest(this.#filter, request)
    return {
      decide: signal => limiter.decide(call, { message: true, signal }),
      drops: rule => limiter.rules.some(({ id, whenFull }) => id === rule && whenFull === 'drop'),
    }
  }

  #pass(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    askForBody(request.raw, reply.raw)
    onAdmitted()
  }
}

/** Replies keep names in this form; given in it, they need not be made again for every call. */
const inLowerCase: Readonly<Record<string, string>> = { RateLimit: 'ratelimit', 'RateLimit-Policy': 'ratelimit-policy' }

/** The functions by which rules read a request to the gateway, and a refusal answers it. */
export const callFramework: Framework<CallRequest, CallReply> = {
  identity: request => request.raw,
  method: request => request.method,
  headers: request => request.headers,
  target: request => request.url,
  peer: request => request.raw.socket.remoteAddress,
  clientCertificate: request => httpFramework.clientCertificate?.(request.raw),
  path: request => httpFramework.path(request.raw),
  // resources are paths, since the services' routes are not known here
  template: () => undefined,
  caseInsensitive: () => true,
  isAnswered: reply => reply.sent,
  setHeader: (reply, name, value) => {
    reply.header(inLowerCase[name] ?? name, value)
  },
  refuse: (request, reply, { status, headers, body }) => {
    for (const [name, value] of headers) reply.header(name, value)
    // bytes, since Fastify adds a charset to JSON text, and JSON has none
    reply.code(status).send(Buffer.from(withRequestId(body, recordOf(request.raw)?.requestId)))
  },
  watch: (request, reply, watcher) => {
    const ended = (status: number | undefined): void => {
      const record = recordOf(request.raw)
      if (record !== undefined) {
        record.endTurn = nextTurn()
        record.endUs = steadyMicroseconds()
      }
      const outcome = record?.outcomeOf(isWhole(reply.raw))
      if (outcome === undefined) watcher.ended(status)
      else watcher.ended(outcome.status, outcome.by)
    }
    httpFramework.watch(request.raw, reply.raw, { ended })
  },
  body: (request, reply) => {
    // a caller who asks first sends the body only now
    askForBody(request.raw, reply.raw)
    return httpFramework.body!(request.raw, reply.raw)
  },
  observe: (request, _reply, observer) => {
    const record = recordOf(request.raw)
    if (record !== undefined) record.observer = observer
  },
  reportCosts: (request, costs) => {
    const record = recordOf(request.raw)
    if (record !== undefined) record.costs = costs
  },
  watchLeaving: (request, reply, left) => httpFramework.watchLeaving?.(request.raw, reply.raw, left),
  abandon: reply => {
    reply.hijack()
  },
  reportError: (request, error, what) => request.log.error({ err: error }, what),
}

/** Adds the id to a problem document of the limiter; an answer that the rule file words itself stays as it is. */
function withRequestId(body: string, id: string | undefined): string {
  if (id === undefined || !body.startsWith('{"type":"') || !body.includes('"violated-policies":[')) return body
  return `${body.slice(0, -1)},"requestId":${JSON.stringify(id)}}`
}

/** The parts that serve requests, whether Fastify is in between or not. */
export interface ListenerParts {
  readonly admission: Admission
  readonly log: () => FastifyBaseLogger
  readonly isClosing: () => boolean
  readonly serve: (request: CallRequest, reply: CallReply) => void
  readonly sendError: (error: Error, request: CallRequest, reply: CallReply) => void
}

/** Serves requests that pass no filters. Fastify's hooks, router and replies would cost more than judging a call does. */
export function plainListener(parts: ListenerParts): (raw: IncomingMessage, response: ServerResponse) => void {
  const { admission, log, isClosing, serve, sendError } = parts
  const fail = (error: unknown, request: CallRequest, reply: CallReply): void => {
    if (reply.sent) reply.raw.destroy()
    else sendError(error as Error, request, reply)
  }
  return (raw, response) => {
    raw.url = normalizeRequest(raw)
    const request = new PlainRequest(raw, log())
    const reply = new PlainReply(response)
    if (isClosing()) response.setHeader('Connection', 'close')
    if (!isSettled(raw.url)) {
      tellRequestId(request, reply)
      sendProblem(reply, 400, faultOf(raw))
      return
    }
    const onAdmitted = (error?: Error): void => {
      try {
        if (error) throw error
        serve(request, reply)
      } catch (caught) {
        fail(caught, request, reply)
      }
    }
    try {
      admission.admit(request, reply, onAdmitted)
    } catch (error) {
      fail(error, request, reply)
    }
  }
}

/** A request that passes no filters. */
export class PlainRequest implements CallRequest {
  readonly raw: IncomingMessage
  readonly url: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly log: FastifyBaseLogger

  /** The target of `raw` has been settled. */
  constructor(raw: IncomingMessage, log: FastifyBaseLogger) {
    this.raw = raw
    this.url = raw.url!
    this.method = raw.method!
    this.headers = raw.headers
    this.log = log
  }

  get body(): undefined {
    return undefined
  }
}

/** The answer to a request that passes no filters. */
export class PlainReply implements CallReply {
  readonly raw: ServerResponse
  readonly #headersFor: typeof grpcHeaders
  readonly #headers: Record<string, HeaderValue> = {}
  #isHijacked = false

  /** Begins an answer; `headersFor` returns the headers of a refusal for a caller that speaks gRPC. */
  constructor(raw: ServerResponse, headersFor: typeof grpcHeaders = grpcHeaders) {
    this.raw = raw
    this.#headersFor = headersFor
  }

  get sent(): boolean {
    return this.#isHijacked || this.raw.writableEnded
  }

  code(status: number): this {
    this.raw.statusCode = status
    return this
  }

  header(name: string, value: HeaderValue): this {
    this.#headers[name.toLowerCase()] = value
    return this
  }

  headers(values: Readonly<Record<string, HeaderValue>>): this {
    for (const name in values) this.header(name, values[name]!)
    return this
  }

  getHeaders(): Readonly<Record<string, HeaderValue>> {
    return this.#headers
  }

  send(body?: Buffer): this {
    const { raw } = this
    const { statusCode } = raw
    const grpc = this.#headersFor(raw.req, { status: statusCode, retryAfter: this.#headers['retry-after'], body })
    if (grpc) {
      recordOf(raw)?.meant(statusCode)
      raw.writeHead(200, { ...this.#headers, ...grpc }).end()
      return this
    }
    // RFC 9110, section 8.6: an answer that has no body must not announce one
    const hasNoBody = statusCode === 204 || (body === undefined && (statusCode === 304 || raw.req.method === 'HEAD'))
    if (hasNoBody) delete this.#headers['content-type']
    else this.#headers['content-length'] = body?.length ?? 0
    raw.writeHead(statusCode, this.#headers)
    raw.end(hasNoBody ? undefined : body)
    return this
  }

  hijack(): this {
    this.#isHijacked = true
    return this
  }
}

/** Hooks that Fastify runs for the application, not for each request. */
const ofTheApplication: readonly string[] = ['onRoute', 'onRegister', 'onReady', 'onListen', 'preClose', 'onClose']

/** Reports that a plugin adds hooks, or routes with handlers, that are not among `own`: only Fastify can serve those. */
export function watchHooks(app: FastifyInstance, own: readonly unknown[], onAdded: () => void): void {
  const addHook = app.addHook as (...args: unknown[]) => FastifyInstance
  // plugins with a scope of their own inherit this method
  app.addHook = function (this: FastifyInstance, ...args: unknown[]) {
    const [name, hook] = args
    if (!ofTheApplication.includes(String(name)) && !own.includes(hook)) onAdded()
    return addHook.apply(this, args)
  } as typeof app.addHook
  addHook.call(app, 'onRoute', ({ handler }: RouteOptions) => {
    if (!own.includes(handler)) onAdded()
  })
}
