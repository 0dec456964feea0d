import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Answers with a problem document (RFC 9457) that says no more than `detail`. */
export function sendProblem(reply: FastifyReply, status: number, detail: string): FastifyReply {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail }
  return (
    reply
      .code(status)
      .header('Cache-Control', 'no-store')
      .header('Content-Type', 'application/problem+json')
      // bytes, since Fastify adds a charset to JSON text, and JSON has none
      .send(Buffer.from(JSON.stringify(problem)))
  )
}
