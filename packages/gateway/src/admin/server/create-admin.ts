import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { DianaError, type Limiter } from 'diana-limiter'
import { adminOf, type Stats } from 'diana-limiter/admin'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { Refusal, sendRefusal } from '../../http/refusal.ts'
import { refuseOtherVersions, versionProblem } from '../../inbound/connections/http-versions.ts'
import { answerUnreadable } from '../../inbound/connections/unreadable-calls.ts'
import { problemText } from '../../inbound/problem.ts'
import { mergeTroubles } from '../../services/reports.ts'
import type { HttpStats } from '../../telemetry/http-stats.ts'
import { version } from '../../version.ts'
import { createGuesses } from '../identity/guesses.ts'
import type { Identity } from '../identity/identity.ts'
import { IssuerKeys, loaderOf } from '../identity/issuer-keys.ts'
import { createSignIn } from '../identity/sign-in.ts'
import { Live } from '../live.ts'
import { mergeStates, type ProcessState } from '../merge-states.ts'
import { operations } from '../operations/index.ts'
import type { AdminContext } from '../operations/operation.ts'
import { type Processes, watchLimiter } from '../processes.ts'
import type { ProcessReport } from '../services/process-report.ts'
import { AdminState } from '../state/admin-state.ts'
import { stream } from '../stream.ts'
import { addOperation } from './add-operation.ts'
import { assertSafe } from './assert-safe.ts'
import { Connections } from './connections.ts'
import { createGuard, type GuardOptions } from './guard.ts'
import { createMetrics } from './metrics.ts'
import { openApiOf } from './openapi.ts'
import { type PageFile, readPage } from './page.ts'

export interface AdminOptions extends GuardOptions {
  /** The limiter whose documents, rules and counts are worked on. */
  readonly limiter: Limiter
  /** The processes that judge the calls; the limiter itself unless given. */
  readonly processes?: Processes | undefined
  /** HTTP traffic of the gateway; without it, `/metrics` reports rules only. */
  readonly httpStats?: (() => HttpStats | Promise<HttpStats>) | undefined
  /** Blocks, versions and changes that survive a restart; in memory only unless given. The admin API closes it. */
  readonly state?: AdminState | undefined
  /** The folder that files named in the settings are seen from. */
  readonly folder?: string | undefined
  readonly onWarning?: ((warning: string) => void) | undefined
  /** The address to listen on: outside of this machine only with a token or an identity. */
  readonly host: string
  readonly demo?: boolean | undefined
  /** Says whether calls should be sent here; asked by /readyz. */
  readonly isReady?: (() => boolean) | undefined
  /** The folder of the built page; that of diana-dashboard unless given. */
  readonly page?: string | undefined
}

// a document of 1 MiB, and what JSON escapes takes more
const largestBody = 2 * 1024 * 1024
const headersTimeoutMs = 10_000

/** The paths that need no token besides the page; none reports anything of callers or documents. */
const openPaths = ['/', '/healthz', '/readyz', '/metrics']
/** HAProxy checks by OPTIONS unless it is configured otherwise, and the path / unless one is given. */
const healthRoutes = [
  ...['GET', 'HEAD', 'OPTIONS'].flatMap(method => ['/healthz', '/readyz'].map(path => `${method} ${path}`)),
  'OPTIONS /',
]

/** The sources that the page may load: its own, and nothing from anywhere else. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Returns the admin API, its metrics and its page: an application of its own, on a port of its own. */
export async function createAdmin(options: AdminOptions): Promise<FastifyInstance> {
  const { limiter, host, identity, demo = false, isReady = () => true, state = new AdminState() } = options
  assertSafe(host, options)
  const processes = options.processes ?? watchLimiter(limiter)
  const startedAt = Date.now()
  const statusOf = (stats: Stats | undefined, states: readonly ProcessState[], reports: readonly ProcessReport[]) => {
    const { rules: _, overload: own, ...mine } = limiter.status()
    // this process may decide no calls: workers do
    const { store, ...rest } = { ...mine, ...mergeStates(states) }
    const told = store && { ...store, ...stats?.store, affected: store.rules, history: store.outages }
    const overload = own && { overload: stats?.overload ?? own }
    const uptimeMs = Date.now() - startedAt
    const workers = states.map(({ keys, store: seen }) => ({
      keys,
      ...(seen && { store: storeOfWorker(seen) }),
    }))
    return {
      ...{ version, startedAt, uptimeMs, demo, processes: processes.count, ...rest, store: told, ...overload },
      fleetHistory: adminOf(limiter).fleetHistory !== undefined,
      ...(workers.length > 0 && { workers }),
      troubledRoutes: mergeTroubles(reports.flatMap(({ services }) => services?.troubles ?? [])),
    }
  }
  const live = new Live(processes, limiter, statusOf)
  const context: AdminContext = {
    limiter,
    processes,
    live,
    blocks: state.blocks,
    audit: state.audit,
    versions: state.versions,
    logoutUrl: identity?.logoutUrl,
  }
  // this process may decide no calls: then keys and the store are as its workers have just reported them
  const statusOfAll = () => ({ ...limiter.status(), ...mergeStates(processes.states()) })

  const app = fastify({
    bodyLimit: largestBody,
    requestTimeout: 30_000,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 2000, maxHeaderSize: 16_384 },
    forceCloseConnections: true,
    frameworkErrors: (_error, _request, reply) => void sendRefusal(reply, new Refusal(400, 'This URL cannot be read.')),
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket),
  })
  app.server.on('connect', (_request, socket: Socket) => endSocket(socket, [405, 'There are no tunnels here.']))
  refuseOtherVersions(app.server, {
    call: (_request, response) => {
      response.writeHead(versionProblem[0], { Connection: 'close', 'Content-Length': 0 }).end()
    },
    socket: (_request, socket) => endSocket(socket, versionProblem),
  })
  // the types that a page elsewhere can send without asking first
  app.removeContentTypeParser('text/plain')
  const guesses = await createGuesses()
  const ending = new AbortController()
  const readMetrics = createMetrics({
    limits: { stats: () => processes.figures(), status: statusOfAll },
    httpStats: options.httpStats,
    wrongTokens: () => guesses.counts(),
  })
  app.addHook('onClose', async () => {
    ending.abort()
    live.close()
    processes.close()
    await guesses.close()
    await state.close()
  })
  const keys = keysOf(options, ending.signal)
  const signIn = createSignIn({
    ...options,
    keys,
    guesses,
    onRefused: ({ reason, ...who }) => {
      const what = { at: Date.now(), operation: 'signIn', subject: '' }
      context.audit.add({ ...what, ...who, via: 'none', role: 'none', refused: reason })
    },
  })
  const page = readPage(options.page)
  const openRoutes = new Set([...openPaths, ...page.keys()])
  const guard = createGuard({ hosts: options.hosts, openRoutes, healthRoutes: new Set(healthRoutes), signIn })
  const connections = new Connections(app.server)
  const identities = new WeakMap<FastifyRequest, Identity>()
  const refusalOf = followRoutes(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy,
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
    })
    const found = await guard(request)
    if (found !== 'open') {
      connections.admit(request.raw.socket)
      identities.set(request, found)
    }
    // before a body is read
    if (request.is404) throw refusalOf(request.url)
  })
  compressAnswers(app)
  app.setErrorHandler(sendError)

  const reportHealth = async () => ({ status: 'ok' })
  const reportReadiness = async (_request: FastifyRequest, reply: FastifyReply) => {
    const ready = isReady()
    const { healthy, code } = limiter.status().store ?? {}
    // without Redis calls are still answered; the code says no more than that to those without a token
    const store = healthy === undefined ? {} : { store: healthy ? 'ok' : code }
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'shutting down', ...store })
  }
  const method = ['GET', 'OPTIONS']
  app.route({ method, url: '/healthz', handler: reportHealth })
  app.route({ method, url: '/readyz', handler: reportReadiness })
  app.options('/', reportReadiness)
  app.get('/metrics', async (_request, reply) => {
    const { type, text } = await readMetrics()
    return reply.type(type).send(text)
  })
  app.get('/api/v1/openapi.json', async () => {
    return openApiOf(
      operations.filter(one => one.isOffered?.(context) !== false),
      version,
    )
  })
  app.get('/api/v1/live', { exposeHeadRoute: false }, (request, reply) =>
    stream(reply, live, identities.get(request)?.endsAt),
  )
  const identityIn = (request: FastifyRequest): Identity => identities.get(request)!
  for (const one of operations) addOperation(app, one, context, { identityIn, addressOf: signIn.addressOf })
  addPage(app, page)
  return app
}

/** Answers on a socket that Node has taken out of HTTP, and ends it. */
function endSocket(socket: Socket, problem: readonly [status: number, detail: string]): void {
  socket.on('error', () => {})
  socket.end(problemText(...problem), () => socket.destroy())
}

/** Returns the keys of the issuer, which are read in the background: it may be down. */
function keysOf({ identity, folder = '.', onWarning = () => {} }: AdminOptions, signal: AbortSignal) {
  if (identity?.oidc === undefined) return undefined
  const keys = new IssuerKeys({ load: loaderOf(identity.oidc, folder, signal), onTrouble: onWarning })
  void keys.read()
  return keys
}

function addPage(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  for (const [path, { type, body, gzip, isForever }] of files) {
    app.get(path, async ({ headers }, reply) => {
      if (isForever) reply.header('Cache-Control', 'public, max-age=31536000, immutable')
      reply.type(type).header('Vary', 'Accept-Encoding')
      const small = takesGzip(headers['accept-encoding']) ? gzip() : undefined
      return small ? reply.header('Content-Encoding', 'gzip').send(small) : reply.send(body)
    })
  }
  if (!files.has('/')) {
    const links = ['/api/v1/openapi.json', '/metrics', '/healthz', '/readyz']
    app.get('/', async () => ({ name: 'Diana admin API', version, page: 'not built: run npm run build', links }))
  }
}

function sendError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof Refusal) return sendRefusal(reply, error)
  if (error instanceof DianaError) return sendRefusal(reply, new Refusal(statusOf[error.code] ?? 500, error.message))
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500
  if (status < 500) return sendRefusal(reply, new Refusal(status, error.message))
  request.log.error({ err: error }, 'the admin API failed')
  return sendRefusal(reply, new Refusal(500, 'The admin API failed; the log says why.'))
}

const statusOf: Readonly<Record<string, number>> = {
  BAD_RULES: 422,
  BAD_CALL: 400,
  CONFLICT: 409,
  READ_ONLY: 403,
  SOURCE_FAILED: 502,
  CLOSED: 503,
}

/** Shorter answers fit into one packet either way. */
const leastCompressed = 1024

const compressText = promisify(gzip)

/** True if a client accepts gzip: it is named, and not with q=0. */
function takesGzip(accepted: string | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?:1|0\.\d*[1-9]))/i.test(accepted ?? '')
}

/** Sends the longer answers of the API compressed, in a thread, to clients that accept it: ten thousand rules are 3.6 MB of text. */
function compressAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    if (typeof payload !== 'string' || payload.length < leastCompressed || reply.hasHeader('content-encoding'))
      return payload
    reply.header('Vary', 'Accept-Encoding')
    if (!takesGzip(request.headers['accept-encoding'])) return payload
    reply.header('Content-Encoding', 'gzip').removeHeader('content-length')
    return await compressText(payload, { level: 4 })
  })
}

/**
 * Watches which routes are added, and returns what refuses the target of a request that has none: by 405 if it has one of another
 * method. A route for each other method of each path would take a fifth of the time of a start.
 */
function followRoutes(app: FastifyInstance): (target: string) => Refusal {
  const known = new Map<string, { readonly path: RegExp; readonly methods: Set<string> }>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')
    const route = known.get(url) ?? { path: new RegExp(`^${path}$`), methods: new Set() }
    known.set(url, route)
    for (const one of [method].flat()) route.methods.add(one)
  })
  return target => {
    const [path = ''] = target.split('?')
    const route = [...known.values()].find(one => one.path.test(path))
    if (route === undefined) return new Refusal(404, 'There is nothing here.')
    const allow = [...route.methods].sort().join(', ')
    return new Refusal(405, `This can be asked by ${allow} only.`, {}, { Allow: allow })
  }
}

function storeOfWorker({
  healthy,
  since,
  kind,
  code,
  what,
  trouble,
  remedy,
}: NonNullable<ProcessState['store']>): object {
  return { healthy, since, kind, code, what, trouble, remedy }
}
