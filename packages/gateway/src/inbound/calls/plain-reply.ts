import type { ServerResponse } from 'node:http'
import type { CallReply, HeaderValue } from '../../http/call.ts'
import { grpcHeaders } from '../../http/grpc/answer-grpc.ts'
import { recordOf } from '../../telemetry/call-record.ts'

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
