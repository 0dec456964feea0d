import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { CallRequest } from '../../http/call.ts'

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
