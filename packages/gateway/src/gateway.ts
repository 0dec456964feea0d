import { METHODS } from 'node:http'
import type { Socket } from 'node:net'
import type { Limiter } from 'diana-limiter'
import { DianaError, normaliseTarget } from 'diana-limiter'
import { diana } from 'diana-limiter/fastify'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { Closing } from './closing.ts'
import type { FilterPlugin } from './filters/filter.ts'
import { LiveSettings } from './live-settings.ts'
import { prepareGateway } from './prepare-gateway.ts'
import { problemText, sendProblem } from './problem.ts'
import { askForBody } from './proxy/body.ts'
import { DirectOutlet } from './proxy/direct-outlet.ts'
import { Forwarder } from './proxy/forwarder.ts'
import { ReplyOutlet } from './proxy/reply-outlet.ts'
import { createGatewayServer } from './server.ts'

export { type GatewaySettings, gatewaySection } from './settings/gateway-settings.ts'

export interface GatewayOptions {
  /** Made with `sections: [gatewaySection]`, its rule file may say all of the rest under `gateway:`. */
  readonly limiter: Limiter | Promise<Limiter>
  /** Where calls go that no route takes: `http://127.0.0.1:3000`. */
  readonly upstream?: string | undefined
  /** What else calls must pass, behind Diana and in this order, before the filters that the rule file names. */
  readonly filters?: readonly FilterPlugin[] | undefined
  /** The folder that paths in the rule file are seen from; the working directory unless given. */
  readonly folder?: string | undefined
  /** Fastify's logger; none unless given. */
  readonly logger?: FastifyServerOptions['logger']
}

/** A target that no router takes for a path. */
const unroutable = '/%'

/** What many a URL parser would escape in a path, behind the back of whoever counts. */
const escapedByUrl = /["<>^`{}]/g

// a tunnel is no call, and TRACE shows a caller what only the service should see
const notForwarded: readonly string[] = ['CONNECT', 'TRACE']

/** Puts Diana in front of services: a Fastify application whose first filter is hers and whose only route is the proxy. */
export async function createGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { upstream, folder = '.', logger = false } = options
  // a promise of a limiter is as good, since this waits anyway
  const limiter = await options?.limiter
  if (typeof limiter?.decide !== 'function') {
    throw new DianaError('BAD_CALL', 'createGateway was given no limiter: pass { limiter: await createLimiter({ … }) }')
  }
  const judging = diana(limiter, { resource: 'path', caseSensitive: false })
  let app: FastifyInstance | undefined
  const live = new LiveSettings(upstream, ({ limits }) => {
    if (app) app.server.requestTimeout = limits.requestMs
  })
  limiter.followSection('gateway', live.follow)
  const { settings } = live
  const onTrouble = (trouble: string): void => app?.log.error(`the certificate stays as it was: ${trouble}`)
  const { tls, filters: named } = await prepareGateway(settings, { folder, onTrouble })
  const filters = [...(options.filters ?? []), ...named]

  app = fastify({
    logger,
    serverFactory: listener => createGatewayServer(listener, settings, tls),
    return503OnClosing: false,
    rewriteUrl: ({ url }) => oneSpelling(url ?? '/'),
    frameworkErrors: (_error, _request, reply) => sendProblem(reply, 400, 'The target of this call cannot be read.'),
    clientErrorHandler: answerUnreadable,
  })
  const forwarder = new Forwarder({
    get settings() {
      return live.settings
    },
    get routes() {
      return live.routes
    },
    trust: limiter,
    // whoever stands in the chain may want to see answers as well
    outletFor: filters.length > 0 ? reply => new ReplyOutlet(reply) : reply => directOutlet(reply, live),
    isClosing: () => closing.hasBegun,
  })
  const closing: Closing = new Closing({
    app,
    shutdown: () => live.settings.shutdown,
    closeTunnels: () => forwarder.closeTunnels(),
    tunnels: () => forwarder.tunnels,
  })
  app.addHook('onClose', async () => {
    tls?.close()
    await live.upstreams.close()
  })
  app.setErrorHandler(sendError)
  await app.register(judging)
  app.addHook('onRequest', (request, reply, done) => {
    askForBody(request.raw, reply.raw)
    done()
  })
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, 404, 'The gateway forwards no such call.'))
  for (const filter of filters) await app.register(filter)
  leaveBodies(app)
  const method = allowMethods(app)
  for (const url of ['/', '/*']) app.route({ method, url, exposeHeadRoute: false, handler: forwarder.forward })
  return app
}

function directOutlet(reply: FastifyReply, { settings }: LiveSettings): DirectOutlet {
  return new DirectOutlet(reply, settings.limits.requestMs)
}

/** Bodies are passed on unread, or as the bytes that a filter has read. */
function leaveBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _body, done) => done(null, request.body))
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

const statuses: Readonly<Record<string, [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of this call are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'This call took too long to arrive.'],
}

/** Bytes that are no call: nothing behind them on the same connection can be trusted. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket & { _httpMessage?: FastifyReply['raw'] }): void {
  const [status, detail] = statuses[error.code ?? ''] ?? [400, 'This call cannot be read.']
  if (error.code !== 'ECONNRESET' && socket.writable && socket._httpMessage?.headersSent !== true) {
    socket.write(problemText(status, detail))
  }
  socket.destroySoon()
}

function sendError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500
  if (status < 500) return sendProblem(reply, status, error.message)
  request.log.error({ err: error }, 'the gateway failed')
  return sendProblem(reply, 500, 'The gateway failed; its log says why.')
}
