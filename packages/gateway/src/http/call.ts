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
  /** The part of the body that a filter has read. */
  readonly body: unknown
  readonly log: FastifyBaseLogger
}

export type HeaderValue = number | string | string[]

/** The ways to answer a request, in the words of Fastify's replies. */
export interface CallReply {
  readonly raw: ServerResponse
  /** True if the answer has been given, or is given past this reply. */
  readonly sent: boolean
  code(status: number): CallReply
  header(name: string, value: HeaderValue): CallReply
  headers(values: Readonly<Record<string, HeaderValue>>): CallReply
  getHeaders(): Readonly<Record<string, HeaderValue | undefined>>
  send(body?: Buffer | undefined): CallReply
  /** Writes the answer to `raw` from now on. */
  hijack(): CallReply
}

/** The proxies that may name the caller's address, and the header in which they do. */
export interface Trust extends Pick<LiveDocument, 'addressOf' | 'forwardedBy'> {
  /** True if an address is that of a trusted proxy. */
  isProxy(address: string): boolean
}
