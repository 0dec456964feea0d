import { verdictOf } from 'diana-limiter/fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { grpcTypeOf } from './grpc-call.ts'
import { grpcMessage, grpcStatus, grpcStatusFor } from './grpc-status.ts'

/**
 * A hook for answers that the gateway gives itself: to a gRPC caller they are a status of gRPC, in the form that has headers
 * only. Answers of services are streams, and stay as they are.
 */
export function answerGrpc(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload?: unknown) => void,
): void {
  const type = grpcTypeOf(request.headers)
  if (type === undefined || isStream(payload) || reply.statusCode < 400) {
    done(null)
    return
  }
  const isRefused = verdictOf(request)?.allowed === false
  const status = isRefused && reply.statusCode === 503 ? grpcStatus.resourceExhausted : grpcStatusFor(reply.statusCode)
  const retryAfter = Number(reply.getHeader('retry-after'))
  reply.removeHeader('content-length')
  reply.header('content-type', type).header('grpc-status', `${status}`).header('grpc-message', messageIn(payload))
  if (retryAfter > 0) reply.header('grpc-retry-pushback-ms', `${retryAfter * 1000}`)
  reply.code(200)
  done(null, null)
}

function isStream(payload: unknown): boolean {
  return typeof (payload as { pipe?: unknown } | null)?.pipe === 'function'
}

function messageIn(payload: unknown): string {
  const text = payload === null || payload === undefined ? '' : String(payload)
  try {
    const { detail, title } = JSON.parse(text)
    return grpcMessage(String(detail ?? title ?? text))
  } catch {
    return grpcMessage(text)
  }
}
