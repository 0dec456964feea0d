import type { FastifyHttpProxyOptions } from '@fastify/http-proxy'
import type { Limiter } from 'diana-limiter'
import type { FastifyReply } from 'fastify'
import { toCaller, toService } from './forwarded-headers.ts'
import { sendProblem } from './problem.ts'

/** Forwards every call once and as it came, to a service at `upstream`. */
export function proxyOptions(
  upstream: string,
  methods: readonly string[],
  addressOf: Limiter['addressOf'],
): FastifyHttpProxyOptions {
  return {
    upstream,
    httpMethods: [...methods],
    disableRequestLogging: true,
    // a service that answers 503 must not be asked ten times more
    retryMethods: [],
    // the proxy would take any certificate unless told
    undici: { connect: { rejectUnauthorized: true } },
    destroyAgent: true,
    replyOptions: { rewriteRequestHeaders: (request, headers) => toService(request, headers, addressOf) },
    handler: (request, reply, path, options) => {
      const own = reply.getHeaders()
      return reply.from(path, {
        ...options,
        rewriteHeaders: headers => toCaller(options.rewriteHeaders?.(headers, request) ?? headers, own),
        onError: (_reply, { error }) => sendFailure(reply, error),
      })
    },
  }
}

function sendFailure(reply: FastifyReply, error: Error): void {
  const timedOut = 'statusCode' in error && error.statusCode === 504
  if (timedOut) sendProblem(reply, 504, 'The service did not answer in time.')
  else sendProblem(reply, 502, 'The service cannot be reached.')
}
