import { METHODS, type RequestListener } from 'node:http'
import { callerAddress, DianaError, type Limiter } from 'diana-limiter'
import { documentOf, type LiveDocument } from 'diana-limiter/gateway'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyServerOptions,
  type onRequestHookHandler,
  type onSendHookHandler,
} from 'fastify'
import type { pino } from 'pino'
import { DirectSink } from './forwarding/answers/direct-sink.ts'
import { ReplySink } from './forwarding/answers/reply-sink.ts'
import { AnswerBroken } from './forwarding/failure.ts'
import { Forwarder } from './forwarding/forwarder.ts'
import type { CallReply, CallRequest } from './http/call.ts'
import { answerGrpc } from './http/grpc/answer-grpc.ts'
import { faultOf, normalizeRequest } from './http/normalize-request.ts'
import { withClientCert } from './http/tls/client-cert-header.ts'
import { Admission, plainListener, watchHooks } from './inbound/calls/admission.ts'
import { BulkQueue } from './inbound/connections/bulk-queue.ts'
import type { FilterPlugin } from './inbound/filters/filter.ts'
import { sendProblem } from './inbound/problem.ts'
import { Closing, GatewayServer, headersMsOf } from './inbound/server.ts'
import { assertProxyProtocol, prepareGateway } from './prepare-gateway.ts'
import type { Lookup } from './services/names.ts'
import { LiveSettings } from './services/routes/route-table.ts'
import type { GatewaySettings } from './settings/gateway-settings.ts'
import { recordOf, tellRequestId } from './telemetry/call-record.ts'
import type { HttpStats } from './telemetry/http-stats.ts'
import { replayFieldsOf } from './telemetry/replay-fields.ts'
import { reportServer } from './telemetry/server-reports.ts'
import { Telemetry } from './telemetry/telemetry.ts'

export type { Lookup } from './services/names.ts'
export { type GatewaySettings, gatewaySection } from './settings/gateway-settings.ts'

export interface GatewayOptions {
  /** Made with `sections: [gatewaySection]`, its rule file may say all of the rest under `gateway:`. */
  readonly limiter: Limiter | Promise<Limiter>
  /** The service of calls that no route takes: `http://127.0.0.1:3000`. */
  readonly upstream?: string | undefined
  /** The filters that calls must pass behind Diana, in this order, before those that the rule file names. */
  readonly filters?: readonly FilterPlugin[] | undefined
  /** The folder that paths in the rule file are seen from; the working directory unless given. */
  readonly folder?: string | undefined
  /** Fastify's logger; none unless given. */
  readonly logger?: FastifyServerOptions['logger']
  /** Called at the start with problems of certificates that are used nevertheless; later, they are logged. */
  readonly onWarning?: ((warning: string) => void) | undefined
  /** Finds all addresses of a service's name; the system's resolver unless given. */
  readonly lookup?: Lookup | undefined
  /** Says whether more calls should be sent here, as `healthPath` reports; until it closes, unless given. */
  readonly isReady?: (() => boolean) | undefined
}

// a tunnel is no call, and TRACE shows a caller what only the service should see
const notForwarded: readonly string[] = ['CONNECT', 'TRACE']
/** Callers of HTTP/2 may send any word, in any case; services could take it for a method that no rule or route has seen. */
const forwarded: ReadonlySet<string> = new Set(METHODS.filter(method => !notForwarded.includes(method)))

const filterStartMs = 10_000
const maxProxies = 64

/**
 * Puts Diana in front of services: a Fastify application whose first hook judges calls and whose only route is the proxy. Calls
 * go through Fastify only if a plugin has added hooks or routes to it; judged and forwarded they are in the same way.
 */
export async function createGateway(options: GatewayOptions): Promise<FastifyInstance> {
  return (await openGateway(options)).app
}

/** A gateway with what only its own process may ask of it. */
export interface OpenGateway {
  readonly app: FastifyInstance
  httpStats(): HttpStats
  /** Goes on with new log files where the present ones were renamed. */
  reopenLogs(): Promise<void>
}

export async function openGateway(options: GatewayOptions): Promise<OpenGateway> {
  const { upstream, folder = '.', logger = false } = options
  // a promise of a limiter is as good, since this waits anyway
  const limiter = await options?.limiter
  if (typeof limiter?.decide !== 'function') {
    throw new DianaError('BAD_CALL', 'createGateway was given no limiter: pass { limiter: await createLimiter({ … }) }')
  }
  let app: FastifyInstance | undefined
  let gatewayServer: GatewayServer | undefined
  const onTrouble = (trouble: string): void => app?.log.error(`the certificate stays as it was: ${trouble}`)
  const onWarning = (warning: string): void => {
    if (app) app.log.warn(warning)
    else options.onWarning?.(warning)
  }
  const onSettings = ({ limits }: GatewaySettings): void => {
    if (app) app.server.headersTimeout = headersMsOf(limits)
  }
  const live = new LiveSettings(upstream, onSettings, {
    lookup: options.lookup,
    tlsFiles: { folder, onTrouble, onWarning },
  })
  live.upstreams.onHealth = (address, { state, why }) => {
    if (state === 'healthy') app?.log.info({ address }, 'an address of a service is healthy again')
    else app?.log.warn({ address, state, why }, 'an address of a service is left alone')
  }
  const document = documentOf(limiter)
  document.followSection('gateway', live.follow)
  const { settings } = live
  assertProxyProtocol(settings, document.trustProxy)
  const { tls, filters: named } = await prepareGateway(settings, { folder, onTrouble, onWarning })
  const filters = [...(options.filters ?? []), ...named]
  const isProxy = proxyTest(document)
  const telemetry = await Telemetry.open({
    ...{ settings, folder, isProxy },
    addressOf: ({ peer, request }) => callerAddress(limiter, peer, request.headers),
    replayOf: replayFieldsOf(limiter, document),
    onTrouble: trouble => app?.log.warn(trouble),
  })
  const admission = new Admission(limiter, () => live.settings)
  const judge: onRequestHookHandler = (request, reply, done) => admission.admit(request, reply, done)
  const serve = (request: CallRequest, reply: CallReply): void => {
    const { method } = request
    if (forwarded.has(method)) forwarder.forward(request, reply)
    else if (notForwarded.includes(method)) sendProblem(reply, 405, `The gateway does not forward ${method}.`)
    else sendProblem(reply, 501, 'The method of this call is not known.')
  }
  const translate: onSendHookHandler = (request, reply, body, done) => {
    const { statusCode } = reply
    answerGrpc(request, reply, body, (error, sent) => {
      if (reply.statusCode !== statusCode) recordOf(request.raw)?.meant(statusCode)
      done(error, sent)
    })
  }
  // true if Fastify has anything to do for a call
  let isHooked = filters.length > 0

  app = fastify({
    logger,
    serverFactory: listener => {
      const onError = (error: Error): void => app?.log.error({ err: error }, 'a connection could not be accepted')
      const onRequest: RequestListener = (request, response) => (isHooked ? listener : plain)(request, response)
      gatewayServer = new GatewayServer(withClientCert(onRequest, settings.tls?.clients), {
        ...{ settings: () => live.settings, tls, isProxy, onError, telemetry },
        isProxyByAddress: address => typeof document.trustProxy !== 'number' && isProxy(address),
        isReady: () => !closing.hasBegun && (options.isReady?.() ?? true),
      })
      return gatewayServer.server
    },
    return503OnClosing: false,
    // it would also bound how long calls under way may take at the end, which is for shutdown.timeout to say
    pluginTimeout: 0,
    rewriteUrl: normalizeRequest,
    frameworkErrors: (_error, request, reply) => {
      tellRequestId(request, reply as FastifyReply)
      sendProblem(reply as FastifyReply, 400, faultOf(request.raw))
    },
    clientErrorHandler: (error, socket) => gatewayServer?.takeUnreadable(error, socket),
  })
  watchHooks(app, [judge, translate, serve], () => {
    isHooked = true
  })
  // Fastify then logs each call
  if ((app.log as Partial<pino.Logger>).isLevelEnabled?.('info')) isHooked = true
  const forwarder = new Forwarder({
    get settings() {
      return live.settings
    },
    get routes() {
      return live.routes
    },
    trust: {
      get forwardedBy() {
        return document.forwardedBy
      },
      addressOf: document.addressOf,
      isProxy,
    },
    bulk: new BulkQueue(),
    messagesOf: request => admission.messagesOf(request),
    // filters of the chain may want to see answers as well
    outletFor: reply => (filters.length > 0 ? new ReplySink(reply as FastifyReply) : new DirectSink(reply)),
    isClosing: () => closing.hasBegun,
  })
  const closing: Closing = new Closing({
    app,
    shutdown: () => live.settings.shutdown,
    announceClosing: () => gatewayServer?.announceClosing(),
    closeIdleConnections: () => gatewayServer?.closeIdleConnections(),
    closeTunnels: () => forwarder.closeTunnels(),
    tunnels: () => forwarder.tunnels,
    destroyConnections: () => gatewayServer?.destroyConnections(),
  })
  app.addHook('onClose', async () => {
    tls?.close()
    await live.upstreams.close()
    await telemetry.close()
  })
  const plain = plainListener({
    ...{ admission, serve, sendError },
    log: () => app.log,
    isClosing: () => closing.hasBegun,
  })
  app.setErrorHandler(sendError)
  app.addHook('onRequest', judge)
  app.addHook('onSend', translate)
  app.setNotFoundHandler(serve)
  for (const filter of filters) await within(filterStartMs, registered(app, filter))
  const method = allowMethods(app)
  for (const url of ['/', '/*']) app.route({ method, url, exposeHeadRoute: false, handler: serve })
  const connections = (): number => gatewayServer?.connections ?? 0
  reportServer(limiter, {
    callerSide: () => telemetry.callerSide({ connections }),
    services: {
      routes: () => live.upstreams.report(performance.now()),
      traffic: () => live.upstreams.traffic(performance.now()),
      troubles: () => live.upstreams.troubles(performance.now()),
    },
  })
  return {
    app,
    httpStats: () =>
      telemetry.figures({ connections, upstreams: () => live.upstreams.all, routes: () => live.routes.routes }),
    reopenLogs: () => telemetry.reopen(),
  }
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

/** Returns a test whether the rules trust an address to name the callers that it calls for. */
function proxyTest(document: LiveDocument): (address: string) => boolean {
  return address => {
    const entry = document.forwardedBy === 'forwarded' ? 'for=192.0.2.1' : '192.0.2.1'
    // as many as there may be trusted proxies
    const other = Array(maxProxies).fill(entry).join()
    return document.addressOf(address, other) !== document.addressOf(address, undefined)
  }
}

/** Allows all methods, without a body as far as Fastify is concerned: bodies are passed on unread, whatever type they claim. */
function allowMethods(app: FastifyInstance): string[] {
  const methods = [...forwarded]
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  return methods
}

function sendError(error: Partial<FastifyError>, request: CallRequest, reply: CallReply): void {
  // nothing of the answer has been sent
  if (error instanceof AnswerBroken) {
    recordOf(request.raw)?.failed(error.failure)
    sendProblem(reply, error.failure.status, error.failure.detail)
  } else if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') {
    // the caller left before anything of the answer was sent
    reply.raw.destroy()
    reply.hijack()
  } else if ((error.statusCode ?? 500) < 500) sendProblem(reply, error.statusCode!, error.message ?? '')
  else {
    request.log.error({ err: error }, 'the gateway failed')
    recordOf(request.raw)?.failed({ status: 500, reason: 'internal' })
    sendProblem(reply, 500, 'The gateway failed; its log says why.')
  }
}
