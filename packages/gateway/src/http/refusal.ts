import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** An answer of the admin API that is no: a status, a sentence, and what else the caller needs to know. */
export class Refusal extends Error {
  readonly status: number
  readonly more: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    more: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.status = status
    this.more = more
    this.headers = headers
  }
}

/** Answers with a problem document (RFC 9457). */
export function sendRefusal(reply: FastifyReply, { status, message, more, headers }: Refusal): FastifyReply {
  const problem = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail: message, ...more }
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="diana"')
  return reply
    .headers(headers)
    .code(status)
    .header('Content-Type', 'application/problem+json')
    .send(Buffer.from(JSON.stringify(problem)))
}
