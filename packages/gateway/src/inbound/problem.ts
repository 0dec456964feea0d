import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { HeaderLine, Refusal } from 'diana-limiter'
import type { CallReply } from '../http/call.ts'
import { grpcHeaders } from '../http/grpc/answer-grpc.ts'
import { recordOf } from '../telemetry/call-record.ts'

/** Answers with a problem document (RFC 9457) that says no more than `detail`. */
export function sendProblem<Reply extends CallReply>(
  reply: Reply,
  status: number,
  detail: string,
  type?: string,
): Reply {
  // that of an answer which could not be given
  reply.raw.statusMessage = ''
  reply
    .code(status)
    .header('Cache-Control', 'no-store')
    .header('Content-Type', 'application/problem+json')
    // bytes, since Fastify adds a charset to JSON text, and JSON has none
    .send(Buffer.from(problemOf(status, detail, reply.getHeaders()['x-request-id'], type)))
  return reply
}

/** Answers with a problem, without Fastify. */
export function writeProblem(response: ServerResponse, status: number, detail: string): void {
  const body = problemOf(status, detail, response.getHeader('x-request-id'))
  const grpc = grpcHeaders(response.req, { status, retryAfter: undefined, body })
  if (grpc) {
    recordOf(response)?.meant(status)
    response.writeHead(200, grpc).end()
  } else {
    const headers = { 'Cache-Control': 'no-store', 'Content-Type': 'application/problem+json' }
    response.writeHead(status, headers).end(body)
  }
}

/** Writes a problem as text for a connection without a call to answer; it is the last answer there. */
export function problemText(status: number, detail: string, headers: Readonly<Record<string, string>> = {}): string {
  return answerText(problemRefusal(status, detail, Object.entries(headers)))
}

/** Returns a problem as an answer that is not written yet. */
export function problemRefusal(status: number, detail: string, headers: readonly HeaderLine[] = []): Refusal {
  const usual = [
    ['Cache-Control', 'no-store'],
    ['Content-Type', 'application/problem+json'],
  ] as const
  return { status, headers: [...usual, ...headers], body: problemOf(status, detail) }
}

/** Returns an answer as it stands on a connection; the last on it. */
export function answerText({ status, headers, body }: Refusal): string {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

function problemOf(status: number, detail: string, requestId?: unknown, type = 'about:blank'): string {
  return JSON.stringify({ type, title: STATUS_CODES[status], status, detail, requestId })
}
