import type { IncomingMessage } from 'node:http'
import { verdictOf } from 'diana-limiter/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { grpcTypeOf } from './grpc-call.ts'
import { grpcMessage, grpcStatus, grpcStatusFor } from './grpc-status.ts'

/** An answer that the gateway gives itself. */
export interface OwnAnswer {
  readonly status: number
  readonly retryAfter: unknown
  readonly body: unknown
}

/**
 * Returns the answer of the gateway to a gRPC caller: a status of 200 with these headers, in place of those of the same name, and
 * nothing else. Undefined if the caller does not speak gRPC, or is not refused.
 */
export function grpcHeaders(raw: IncomingMessage, answer: OwnAnswer): Record<string, string> | undefined {
  const type = answer.status < 400 ? undefined : grpcTypeOf(raw.headers)
  if (type === undefined) return undefined
  const retryAfter = Number(answer.retryAfter)
  return {
    'content-type': type,
    'grpc-status': `${statusOf(raw, answer.status)}`,
    'grpc-message': messageIn(answer.body),
    ...(retryAfter > 0 ? { 'grpc-retry-pushback-ms': `${retryAfter * 1000}` } : {}),
  }
}

/** Answers gRPC callers as a hook of Fastify. Answers of services are streams, and stay as they are. */
export function answerGrpc(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
  done: (error: null, body?: unknown) => void,
): void {
  const answer = { status: reply.statusCode, retryAfter: reply.getHeader('retry-after'), body }
  const headers = isStream(body) ? undefined : grpcHeaders(raw, answer)
  if (headers === undefined) {
    done(null)
    return
  }
  reply.removeHeader('content-length')
  reply.code(200).headers(headers)
  done(null, null)
}

/** Returns the status of an answer; a limit that is reached is reported as such, whatever status its rule answers with. */
function statusOf(raw: IncomingMessage, status: number): number {
  const isRefused = verdictOf(raw)?.allowed === false
  return isRefused && status === 503 ? grpcStatus.resourceExhausted : grpcStatusFor(status)
}

function isStream(body: unknown): boolean {
  return typeof (body as { pipe?: unknown } | null)?.pipe === 'function'
}

function messageIn(body: unknown): string {
  const text = body === null || body === undefined ? '' : String(body)
  try {
    const { detail, title } = JSON.parse(text)
    return grpcMessage(String(detail ?? title ?? text))
  } catch {
    return grpcMessage(text)
  }
}
