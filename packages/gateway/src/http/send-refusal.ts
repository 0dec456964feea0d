import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Refusal } from './refusal.ts'

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
