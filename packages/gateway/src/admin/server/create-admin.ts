import { DianaError, type Limiter } from 'diana-limiter'
import { maskCaller, type Stats } from 'diana-limiter/admin'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { HttpStats } from '../../telemetry/http-stats.ts'
import { version } from '../../version.ts'
import { Audit } from '../audit.ts'
import { Blocks } from '../blocks.ts'
import { EarlierVersions } from '../earlier-versions.ts'
import { Live } from '../live.ts'
import { mergeStates, type ProcessState } from '../merge-states.ts'
import { operations } from '../operations/index.ts'
import { type AdminContext, type Operation, type Role, roleOf } from '../operations/operation.ts'
import { type Processes, watchLimiter } from '../processes.ts'
import { Refusal } from '../refusal.ts'
import { stream } from '../stream.ts'
import { assertSafe } from './assert-safe.ts'
import { compressAnswers, takesGzip } from './compress.ts'
import { Connections } from './connections.ts'
import { createGuard, type GuardOptions } from './guard.ts'
import { createGuesses } from './guesses.ts'
import { createMetrics } from './metrics.ts'
import { openApiOf, operationIdOf } from './openapi.ts'
import { type PageFile, readPage } from './page.ts'
import { refuseOtherMethods } from './refuse-other-methods.ts'
import { sendRefusal } from './send-refusal.ts'

export interface AdminOptions extends GuardOptions {
  /** Whose documents, rules and counts are worked on. */
  readonly limiter: Limiter
  /** Who judges the calls; the limiter itself unless given. */
  readonly processes?: Processes | undefined
  /** HTTP traffic of the gateway; without it, `/metrics` tells of rules only. */
  readonly httpStats?: (() => HttpStats | Promise<HttpStats>) | undefined
  /** Where it will listen: outside of this machine only with a token. */
  readonly host: string
  readonly demo?: boolean | undefined
  /** Whether calls should be sent here; asked by /readyz. */
  readonly isReady?: (() => boolean) | undefined
  /** Where the built page is; that of diana-dashboard unless given. */
  readonly page?: string | undefined
}

// a document of 1 MiB, and what JSON escapes takes more
const largestBody = 2 * 1024 * 1024
const headersTimeoutMs = 10_000

/** What needs no token besides the page: each of them is named here, and tells nothing of callers or documents. */
const openPaths = ['/', '/healthz', '/readyz', '/metrics']
/** HAProxy checks by OPTIONS unless it is configured otherwise, and the path / unless one is given. */
const healthRoutes = [
  ...['GET', 'HEAD', 'OPTIONS'].flatMap(method => ['/healthz', '/readyz'].map(path => `${method} ${path}`)),
  'OPTIONS /',
]

/** What the page needs, and nothing from anywhere else. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The admin API, its metrics and its page: an application of its own, on a port of its own. */
export async function createAdmin(options: AdminOptions): Promise<FastifyInstance> {
  const { limiter, host, token, demo = false, isReady = () => true } = options
  assertSafe(host, token, options.viewToken)
  const processes = options.processes ?? watchLimiter(limiter)
  const startedAt = Date.now()
  const statusOf = (stats: Stats | undefined, states: readonly ProcessState[]) => {
    const { rules: _, overload: own, ...mine } = limiter.status()
    // this process may decide no calls: workers do
    const { store, ...rest } = { ...mine, ...mergeStates(states) }
    const told = store && { ...store, ...stats?.store, affected: store.rules, history: store.outages }
    const overload = own && { overload: stats?.overload ?? own }
    const uptimeMs = Date.now() - startedAt
    const workers = states.map(({ keys, store: seen }) => ({
      keys,
      ...(seen && { store: { healthy: seen.healthy, since: seen.since, trouble: seen.trouble } }),
    }))
    return {
      ...{ version, startedAt, uptimeMs, demo, processes: processes.count, ...rest, store: told, ...overload },
      ...(workers.length > 0 && { workers }),
    }
  }
  const live = new Live(processes, limiter, statusOf)
  const context: AdminContext = {
    limiter,
    processes,
    live,
    blocks: new Blocks(),
    audit: new Audit(),
    versions: new EarlierVersions(),
  }
  const readMetrics = createMetrics(
    { stats: () => processes.figures(), status: () => limiter.status() },
    options.httpStats,
  )

  const app = fastify({
    bodyLimit: largestBody,
    requestTimeout: 30_000,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 2000, maxHeaderSize: 16_384 },
    forceCloseConnections: true,
    frameworkErrors: (_error, _request, reply) => void sendRefusal(reply, new Refusal(400, 'This URL cannot be read.')),
  })
  // what a page elsewhere could send without asking first
  app.removeContentTypeParser('text/plain')
  const guesses = await createGuesses()
  app.addHook('onClose', async () => {
    live.close()
    processes.close()
    await guesses.close()
  })
  const page = readPage(options.page)
  const openRoutes = new Set([...openPaths, ...page.keys()])
  const guard = createGuard({ ...options, openRoutes, healthRoutes: new Set(healthRoutes), guesses })
  const connections = new Connections(app.server)
  const roles = new WeakMap<FastifyRequest, Role>()
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy,
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
    })
    const role = guard(request)
    if (role !== 'open') {
      connections.admit(request.raw.socket)
      roles.set(request, role)
    }
    // before a body is read
    if (request.is404) throw new Refusal(404, 'There is nothing here.')
  })
  compressAnswers(app)
  const nameMethods = refuseOtherMethods(app)
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
  app.get('/api/v1/openapi.json', async () => openApiOf(operations, version))
  app.get('/api/v1/live', { exposeHeadRoute: false }, (_request, reply) => stream(reply, live))
  for (const one of operations) addOperation(app, one, context, request => roles.get(request) ?? 'viewer')
  addPage(app, page)
  nameMethods()
  return app
}

function addOperation(
  app: FastifyInstance,
  one: Operation,
  context: AdminContext,
  roleIn: (request: FastifyRequest) => Role,
): void {
  const url = `/api/v1${one.path.replace('{id}', ':id')}`
  app.route<{ Params: { id?: string } }>({
    method: one.method,
    url,
    handler: async (request, reply) => {
      const { params, query, body, socket } = request
      const role = roleIn(request)
      if (role === 'viewer' && roleOf(one) === 'operator') {
        throw new Refusal(403, 'This token may only read: sign in with the token of an operator.')
      }
      const question = {
        id: params.id ?? '',
        role,
        query: one.query ? read(one.query, query, 'the query') : {},
        body: one.body ? read(one.body, body, 'the body') : undefined,
      }
      const answer = (await one.run(question, context)) as object
      if (one.method !== 'GET' && !readOnly.has(one.path)) {
        const subject = subjectOf(question)
        context.audit.add({ at: Date.now(), operation: operationIdOf(one), subject, from: socket.remoteAddress ?? '' })
      }
      return reply.send(answer)
    },
  })
}

/** Operations that change nothing, though they are asked with a body. */
const readOnly = new Set(['/explain', '/check', '/preview', '/replay'])

/** What a change was about, without a caller's own name. */
function subjectOf({ id, body }: { readonly id: string; readonly body: unknown }): string {
  const { rule, caller, key, where } = (body ?? {}) as Record<string, unknown>
  const named = typeof key === 'string' ? maskCaller(key) : caller
  return [id === '' ? rule : id, named, where].filter(one => typeof one === 'string').join(' ')
}

function read(shape: z.ZodType, value: unknown, what: string): unknown {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const at = issue?.path.join('.') ?? ''
  throw new Refusal(400, `${at === '' ? what : at}: ${issue?.message ?? 'cannot be read'}`.slice(0, 500))
}

function addPage(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  for (const [path, { type, body, gzip, isForever }] of files) {
    app.get(path, async ({ headers }, reply) => {
      if (isForever) reply.header('Cache-Control', 'public, max-age=31536000, immutable')
      reply.type(type).header('Vary', 'Accept-Encoding')
      return gzip && takesGzip(headers['accept-encoding'])
        ? reply.header('Content-Encoding', 'gzip').send(gzip)
        : reply.send(body)
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
