import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { CallReply, CallRequest, HeaderValue } from '../../http/call.ts'
import { grpcHeaders } from '../../http/grpc/answer-grpc.ts'
import { faultOf, isSettled, normalizeRequest } from '../../http/normalize-request.ts'
import { recordOf } from '../../telemetry/call-record.ts'
import { tellRequestId } from '../../telemetry/request-ids.ts'
import { sendProblem } from '../problem.ts'
import type { Admission } from './admission.ts'

/** What serves requests, whether Fastify is in between or not. */
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

  /** `headersFor` says how a refusal is put to a caller that speaks gRPC. */
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
