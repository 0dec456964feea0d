import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { LiveDocument } from 'diana-limiter/gateway'
import type { FastifyBaseLogger } from 'fastify'

/** A request to the gateway. Fastify's requests have this form, and so have those that Fastify does not see. */
export interface CallRequest {
  readonly raw: IncomingMessage
  /** The target in the one spelling that is counted and forwarded. */
  readonly url: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** What a filter has read of the body. */
  readonly body: unknown
  readonly log: FastifyBaseLogger
}

export type HeaderValue = number | string | string[]

/** How a request is answered, in the words of Fastify's replies. */
export interface CallReply {
  readonly raw: ServerResponse
  /** Whether the answer has been given, or is given past this reply. */
  readonly sent: boolean
  code(status: number): CallReply
  header(name: string, value: HeaderValue): CallReply
  headers(values: Readonly<Record<string, HeaderValue>>): CallReply
  getHeaders(): Readonly<Record<string, HeaderValue | undefined>>
  send(body?: Buffer | undefined): CallReply
  /** The answer is written to `raw` from now on. */
  hijack(): CallReply
}

/** Which proxies may name the caller's address, and in which header. */
export interface Trust extends Pick<LiveDocument, 'addressOf' | 'forwardedBy'> {
  /** Whether an address is that of a trusted proxy. */
  isProxy(address: string): boolean
}
