import { METHODS } from 'node:http'
import type { Socket } from 'node:net'
import { DianaError, type Limiter } from 'diana-limiter'
import { diana } from 'diana-limiter/fastify'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { Closing } from './closing.ts'
import { BulkQueue } from './connections/bulk-queue.ts'
import { Transfers } from './connections/transfers.ts'
import { answerCors } from './cors.ts'
import type { FilterPlugin } from './filters/filter.ts'
import { LiveSettings } from './live-settings.ts'
import { prepareGateway } from './prepare-gateway.ts'
import { problemText, sendProblem } from './problem.ts'
import { askForBody } from './proxy/body.ts'
import { DirectOutlet } from './proxy/direct-outlet.ts'
import { AnswerBroken } from './proxy/failure.ts'
import { Forwarder } from './proxy/forwarder.ts'
import { ReplyOutlet } from './proxy/reply-outlet.ts'
import { faultOf, settleRequest } from './proxy/settle-request.ts'
import { GatewayServer } from './server.ts'
import { withClientCert } from './tls/client-cert-header.ts'

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
  /** Told at the start of what is wrong with certificates that are used all the same; later, the logger is. */
  readonly onWarning?: ((warning: string) => void) | undefined
  /** Whether more calls should be sent here, as `healthPath` tells; until it closes, unless given. */
  readonly isReady?: (() => boolean) | undefined
}

// a tunnel is no call, and TRACE shows a caller what only the service should see
const notForwarded: readonly string[] = ['CONNECT', 'TRACE']

const filterStartMs = 10_000
const maxProxies = 64

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
  let gatewayServer: GatewayServer | undefined
  const onTrouble = (trouble: string): void => app?.log.error(`the certificate stays as it was: ${trouble}`)
  const onWarning = (warning: string): void => {
    if (app) app.log.warn(warning)
    else options.onWarning?.(warning)
  }
  const live = new LiveSettings(
    upstream,
    ({ limits }) => {
      if (app) app.server.requestTimeout = limits.requestMs
    },
    { folder, onTrouble, onWarning },
  )
  limiter.followSection('gateway', live.follow)
  const { settings } = live
  const { tls, filters: named } = await prepareGateway(settings, { folder, onTrouble, onWarning })
  const filters = [...(options.filters ?? []), ...named]
  const isProxy = proxyTest(limiter)

  app = fastify({
    logger,
    serverFactory: listener => {
      const onError = (error: Error): void => app?.log.error({ err: error }, 'a connection could not be accepted')
      gatewayServer = new GatewayServer(withClientCert(listener, settings.tls?.clients), {
        ...{ settings: () => live.settings, tls, isProxy, onError },
        isReady: () => !closing.hasBegun && (options.isReady?.() ?? true),
      })
      return gatewayServer.server
    },
    return503OnClosing: false,
    // it would also bound how long calls under way may take at the end, which is for shutdown.timeout to say
    pluginTimeout: 0,
    rewriteUrl: settleRequest,
    frameworkErrors: (_error, request, reply) => sendProblem(reply, 400, faultOf(request.raw)),
    clientErrorHandler: answerUnreadable,
  })
  const forwarder = new Forwarder({
    get settings() {
      return live.settings
    },
    get routes() {
      return live.routes
    },
    trust: {
      get forwardedBy() {
        return limiter.forwardedBy
      },
      addressOf: (remote, forwarded) => limiter.addressOf(remote, forwarded),
      isProxy,
    },
    transfers: new Transfers(),
    bulk: new BulkQueue(),
    // whoever stands in the chain may want to see answers as well
    outletFor: filters.length > 0 ? reply => new ReplyOutlet(reply) : reply => new DirectOutlet(reply),
    isClosing: () => closing.hasBegun,
  })
  const closing: Closing = new Closing({
    app,
    shutdown: () => live.settings.shutdown,
    closeTunnels: () => forwarder.closeTunnels(),
    tunnels: () => forwarder.tunnels,
    destroyConnections: () => gatewayServer?.destroyConnections(),
  })
  app.addHook('onClose', async () => {
    tls?.close()
    await live.upstreams.close()
  })
  app.setErrorHandler(sendError)
  // before any rule counts: refusals carry these headers as well
  app.addHook('onRequest', (request, reply, done) => {
    const { cors, answerHeaders } = live.settings
    for (const name in answerHeaders) reply.header(name, answerHeaders[name])
    if (cors === undefined || !answerCors(request, reply, cors)) done()
  })
  await app.register(judging)
  app.addHook('onRequest', (request, reply, done) => {
    askForBody(request.raw, reply.raw)
    done()
  })
  // every method is routed but those that are not forwarded
  app.setNotFoundHandler(({ method }, reply) => sendProblem(reply, 405, `The gateway does not forward ${method}.`))
  for (const filter of filters) await within(filterStartMs, registered(app, filter))
  const method = allowMethods(app)
  for (const url of ['/', '/*']) app.route({ method, url, exposeHeadRoute: false, handler: forwarder.forward })
  return app
}

async function registered(app: FastifyInstance, filter: FilterPlugin): Promise<void> {
  await app.register(filter)
}

/** Rejects if a filter does not say that it is ready. */
async function within(ms: number, ready: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const remedy = 'call done() in the plugin, or return a promise that resolves'
    timer = setTimeout(
      () => reject(new DianaError('BAD_RULES', `gateway: a filter was not ready after ${ms / 1000} s: ${remedy}`)),
      ms,
    )
  })
  await Promise.race([ready, late]).finally(() => clearTimeout(timer))
}

/** Whether an address is believed about those it calls for, by what it would be believed about. */
function proxyTest(limiter: Limiter): (address: string) => boolean {
  return address => {
    const entry = limiter.forwardedBy === 'forwarded' ? 'for=192.0.2.1' : '192.0.2.1'
    // as many as there may be trusted proxies
    const other = Array(maxProxies).fill(entry).join()
    return limiter.addressOf(address, other) !== limiter.addressOf(address, undefined)
  }
}

/** All of them without a body, as far as Fastify is concerned: bodies are passed on unread, whatever type they claim. */
function allowMethods(app: FastifyInstance): string[] {
  const methods = METHODS.filter(method => !notForwarded.includes(method))
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  return methods
}

const statuses: Readonly<Record<string, [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of this call are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'This call took too long to arrive.'],
}

type CallerSocket = Socket & { _httpMessage?: FastifyReply['raw'] | null }

const unreadable = new WeakSet<Socket>()

/** Bytes that are no call: nothing behind them on the same connection can be trusted. They are answered in their turn. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: CallerSocket): void {
  const [status, detail] = statuses[error.code ?? ''] ?? [400, 'This call cannot be read.']
  const answer = (current: FastifyReply['raw'] | null | undefined): void => {
    if (error.code !== 'ECONNRESET' && socket.writable && current?.headersSent !== true) {
      socket.write(problemText(status, detail))
    }
    socket.destroySoon()
  }
  const current = socket._httpMessage
  // nothing follows what was begun: the caller has left
  if (error.code === 'HPE_INVALID_EOF_STATE') {
    socket.destroy()
    return
  }
  // in the body of the call under way, which cannot be answered otherwise; or behind it, and then it comes first
  if (!current?.req.complete || error.code === 'ECONNRESET') answer(current)
  else if (!unreadable.has(socket)) {
    unreadable.add(socket)
    current.once('close', () => answer(undefined))
  }
}

function sendError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Fastify asks here only if nothing of the answer has been sent
  if (error instanceof AnswerBroken) return sendProblem(reply, error.failure.status, error.failure.detail)
  // the caller left before anything of the answer was sent
  if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') {
    reply.raw.destroy()
    return reply.hijack()
  }
  const status = error.statusCode ?? 500
  if (status < 500) return sendProblem(reply, status, error.message)
  request.log.error({ err: error }, 'the gateway failed')
  return sendProblem(reply, 500, 'The gateway failed; its log says why.')
}
