import { METHODS } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import { type Limiter, normaliseTarget } from 'diana-limiter'
import { diana } from 'diana-limiter/fastify'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyPluginCallback,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { sendProblem } from './problem.ts'
import { proxyOptions } from './proxy.ts'

export interface GatewayOptions {
  readonly limiter: Limiter
  /** Where the calls that pass go: `http://127.0.0.1:3000`. */
  readonly upstream: string
  /** What else calls must pass, behind Diana and in this order: Fastify plugins, wrapped by fastify-plugin. */
  readonly filters?: readonly (FastifyPluginCallback | FastifyPluginAsync)[] | undefined
  /** Fastify's logger; none unless given. */
  readonly logger?: FastifyServerOptions['logger']
}

/** A target that no router takes for a path. */
const unroutable = '/%'

/** What the proxy's `new URL` would escape in a path, behind the back of whoever counts. */
const escapedByUrl = /["<>^`{}]/g

const requestTimeoutMs = 300_000
const idleSweepMs = 50

// a tunnel is no call, and TRACE shows a caller what only the service should see
const notForwarded: readonly string[] = ['CONNECT', 'TRACE']

/** Puts Diana in front of a service: a Fastify application whose first filter is hers and whose only route is the proxy. */
export async function createGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { limiter, upstream, filters = [], logger = false } = options
  const app = fastify({
    logger,
    requestTimeout: requestTimeoutMs,
    rewriteUrl: ({ url }) => oneSpelling(url ?? '/'),
    frameworkErrors: (_error, _request, reply) => sendProblem(reply, 400, 'The target of this call cannot be read.'),
  })
  closeWhatFallsIdle(app)
  app.setErrorHandler(sendError)
  await app.register(diana(limiter, { resource: 'path', caseSensitive: false }))
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, 404, 'The gateway forwards no such call.'))
  for (const filter of filters) await app.register(filter)
  await app.register(httpProxy, proxyOptions(upstream, allowMethods(app), limiter.addressOf))
  return app
}

/** What is counted is what is forwarded; what has no one spelling is not routed, which Fastify answers with 400. */
function oneSpelling(rawTarget: string): string {
  const target = normaliseTarget(rawTarget)
  if (target === undefined) return unroutable
  const path = target.path.replace(escapedByUrl, percentEncode)
  return target.query === undefined ? path : `${path}?${target.query}`
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

function allowMethods(app: FastifyInstance): string[] {
  const methods = METHODS.filter(method => !notForwarded.includes(method))
  for (const method of methods) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true })
  }
  return methods
}

/** Once the gateway closes, a client must not keep it open by keeping a connection that its last call has left. */
function closeWhatFallsIdle(app: FastifyInstance): void {
  let sweeping: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    sweeping = setInterval(() => app.server.closeIdleConnections(), idleSweepMs)
  })
  app.addHook('onClose', async () => clearInterval(sweeping))
}

function sendError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500
  if (status < 500) return sendProblem(reply, status, error.message)
  request.log.error({ err: error }, 'the gateway failed')
  return sendProblem(reply, 500, 'The gateway failed; its log says why.')
}
