import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { attempt } from 'diana-limiter/gateway'
import type { FastifyInstance } from 'fastify'
import { hasBody, waitToContinue } from '../http/message-headers.ts'
import type { ServerTls } from '../http/tls/server-tls.ts'
import type { GatewaySettings } from '../settings/gateway-settings.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { CallPace, paceOf, Transfers } from './calls/call-pace.ts'
import { CallerConnections } from './connections/caller-connections.ts'
import { EarlyBytes } from './connections/early-bytes.ts'
import { refuseOtherVersions, versionProblem } from './connections/http-versions.ts'
import { closeLingering } from './connections/lingering-close.ts'
import { ProxyHeaders } from './connections/proxy-headers.ts'
import { serveUpgrades, Turns } from './connections/turns.ts'
import { answerUnreadable, type UnreadableText } from './connections/unreadable-calls.ts'
import { CallerSessions } from './http2/caller-sessions.ts'
import { problemText, writeProblem } from './problem.ts'

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void
type SocketListener = (this: Server, socket: Socket) => void

export interface GatewayServerParts {
  /** The settings in force; those that a server reads at its start are read once. */
  readonly settings: () => GatewaySettings
  readonly tls: ServerTls | undefined
  /** True if an address is that of a trusted proxy. */
  readonly isProxy: (address: string) => boolean
  /** True if `trustProxy` names the address itself. */
  readonly isProxyByAddress: (address: string) => boolean
  /** True while more calls should be sent here. */
  readonly isReady: () => boolean
  /** True if calls of HTTP/1.1 may come without a Host, too. */
  readonly mayLackHost?: boolean | undefined
  readonly telemetry: Telemetry
  /** Called for connections that could not be accepted. */
  readonly onError: (error: Error) => void
}

const maxHeadersMs = 30_000
const keepAliveMs = 72_000
const refusedMs = 1000
const maxEarlyBytes = 65_536
const tlsOptions = { handshakeTimeout: 20_000 } as const

/**
 * The HTTP server under Fastify: bounded in what it reads and in how many connections a caller has; the calls of one
 * connection are served one after another, and bodies are asked for only when they are needed.
 */
export class GatewayServer {
  readonly server: Server
  readonly #connections: CallerConnections
  readonly #proxyHeaders: ProxyHeaders
  readonly #turns = new Turns()
  readonly #transfers = new Transfers()
  readonly #sessions: CallerSessions | undefined
  readonly #telemetry: Telemetry

  constructor(listener: RequestListener, parts: GatewayServerParts) {
    const { settings, tls, isProxy, isReady, onError, telemetry, mayLackHost = false } = parts
    const { limits } = settings()
    this.#telemetry = telemetry
    this.#proxyHeaders = new ProxyHeaders({
      isProxy: parts.isProxyByAddress,
      onRefused: () => telemetry.reject('proxy-header'),
      onTrouble: (count, reason) => onError(refusal(count, reason)),
    })
    const limitsInForce = (): GatewaySettings['limits'] => settings().limits
    const transfers = this.#transfers
    // one for all responses
    const onClose = function (this: ServerResponse): void {
      const pace = paceOf(this)
      // after an early answer, the rest of the body is still to come
      if (pace?.isOver) transfers.delete(pace)
      pace?.work?.onEnd()
    }
    const paced = telemetry.recording((request, response) => {
      transfers.add(new CallPace(request, response, limitsInForce))
      response.on('close', onClose)
      listener(request, response)
    })
    const refuseHostless = telemetry.recording(refuseWithoutHost)
    const refuseVersion = telemetry.recording(refuseVersionOf)
    const listenerFor = (request: IncomingMessage): RequestListener =>
      asksForHealth(request, settings().healthPath)
        ? tellHealth
        : !mayLackHost && lacksHost(request)
          ? refuseHostless
          : paced
    const serve: RequestListener = (request, response) => {
      // after the last answer, bytes are read only to be dropped
      if (request.socket.writableEnded) return
      this.#turns.take(request, response, listenerFor(request))
    }
    const serveStream: RequestListener = (request, response) => listenerFor(request)(request, response)
    const tellHealth = telemetry.recording((_request, response) => answerHealth(response, isReady()))
    // Node would answer calls without a Host itself, and out of turn
    const options = { maxHeaderSize: limits.headersBytes, keepAliveTimeout: keepAliveMs, requireHostHeader: false }
    const protocols = settings().http2 ? ['h2', 'http/1.1'] : ['http/1.1']
    const server: Server = tls
      ? createTlsServer({ ...options, ...tlsOptions, ALPNProtocols: protocols, ...tls.serverOptions }, serve)
      : createServer(options, serve)
    // bodies may take as long as they keep coming, which CallPace watches
    server.requestTimeout = 0
    server.headersTimeout = headersMsOf(limits)
    // Node would leave out what is beyond a number of headers; their size is bounded above
    server.maxHeadersCount = 0
    this.server = server
    const [readAsHttp] = server.listeners(tls ? 'secureConnection' : 'connection') as SocketListener[]
    serveUpgrades(server, this.#turns, paced, socket => readAsHttp!.call(server, socket))
    const expectationRefused = telemetry.recording(refuseExpectation)
    this.#serveExpectations(serve, expectationRefused)
    server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#refuseSocket(request, socket, head, [405, 'This gateway opens no tunnels.'])
    })
    refuseOtherVersions(server, {
      call: (request, response) => this.#turns.take(request, response, refuseVersion),
      socket: (request, socket, head) => this.#refuseSocket(request, socket, head, versionProblem),
    })
    // a connection that cannot be accepted, as when this process has no file left to open, is no reason to end
    server.on('error', error => {
      if (server.listening) onError(error)
    })
    server.on(tls ? 'secureConnection' : 'connection', closeLingering)
    if (settings().http2) {
      this.#sessions = new CallerSessions(serveStream, {
        ...{ limits, isProxy },
        refuseExpectation: expectationRefused,
        idleMs: keepAliveMs,
      })
      if (tls) this.#sessions.join(server)
    }
    this.#connections = new CallerConnections({
      ...{ limits: () => settings().limits, isProxy, tellsWhy: tls === undefined },
      onRefused: reason => telemetry.reject(reason),
    })
    this.#connections.guard(server)
    if (settings().listen.proxyProtocol) this.#proxyHeaders.guard(server)
    // after all other listeners: it refuses callers before any of them sees the connection
    tls?.attach(server as ReturnType<typeof createTlsServer>)
  }

  /** Serves a connection that cannot be read as HTTP/1.1 as HTTP/2, or answers that it cannot be read; `textOf` words the answer. */
  takeUnreadable(error: NodeJS.ErrnoException, socket: Socket, textOf?: UnreadableText): void {
    if (this.#sessions?.take(error, socket)) return
    const inTurn = (busy: Socket, run: () => void): void => this.#turns.takeOver(busy, run)
    answerUnreadable(error, socket, { telemetry: this.#telemetry, inTurn, textOf })
  }

  /** Asks callers that can be asked to take further calls elsewhere. */
  announceClosing(): void {
    this.#sessions?.announceClosing()
  }

  closeIdleConnections(): void {
    this.server.closeIdleConnections()
    this.#sessions?.closeIdle()
  }

  /** Counts the open connections. */
  get connections(): number {
    return this.#connections.size
  }

  /** Cuts every connection, also those that have left HTTP. */
  destroyConnections(): void {
    this.#connections.destroyAll()
    this.#proxyHeaders.destroyAll()
  }

  #serveExpectations(serve: RequestListener, refuse: RequestListener): void {
    // a caller who asks before sending a body is asked to go on only when the call is passed on
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      waitToContinue(request)
      serve(request, response)
    })
    this.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      this.#turns.take(request, response, refuse)
    })
  }

  /** Answers on a socket that Node has taken out of HTTP, in its turn. */
  #refuseSocket(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    [status, detail]: readonly [status: number, detail: string],
  ): void {
    // only a socket that is read reports that its caller has left
    const early = new EarlyBytes(socket, head, maxEarlyBytes)
    this.#turns.takeOver(socket, () => {
      early.take()
      this.#telemetry.answer(socket, status, () => socket.resume().end(problemText(status, detail)), request)
      setTimeout(() => socket.destroy(), refusedMs).unref()
    })
  }
}

/** Returns how long a caller may take to send the headers of a call. */
export function headersMsOf({ pauseMs }: Pick<GatewaySettings['limits'], 'pauseMs'>): number {
  return Math.min(maxHeadersMs, pauseMs)
}

function refusal(count: number, reason: string): Error {
  return new Error(`${reason} (${count} connections closed for lack of a PROXY header since the start)`)
}

/** True if the target as it came asks for the health; no other spelling of the path is meant by it. */
function asksForHealth({ url, method }: IncomingMessage, path: string | undefined): boolean {
  return path !== undefined && url === path && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')
}

function answerHealth(response: ServerResponse, isReady: boolean): void {
  const headers = { 'Cache-Control': 'no-store', 'Content-Type': 'application/json' }
  const status = isReady ? 'ready' : 'shutting down'
  response.writeHead(isReady ? 200 : 503, headers).end(JSON.stringify({ status }))
}

/** True if a call has no host: only calls of HTTP/1.0 may have none (RFC 9112, section 3.2). */
function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.host === undefined && httpVersion !== '1.0'
}

function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  // the caller may send its body or not, so what follows could be taken for a call
  if (hasBody(request)) response.setHeader('Connection', 'close')
  response.writeHead(417, { 'Content-Length': 0 }).end()
}

/** Refuses the version of a call, without a body, since the version says how one would be read. */
function refuseVersionOf(_request: IncomingMessage, response: ServerResponse): void {
  const [status] = versionProblem
  response.writeHead(status, { Connection: 'close', 'Content-Length': 0 }).end()
}

function refuseWithoutHost(_request: IncomingMessage, response: ServerResponse): void {
  // the bytes after it may be a body
  response.setHeader('Connection', 'close')
  writeProblem(response, 400, 'This call has no Host header.')
}

/** The name under which its errors are counted. */
const place = 'connections that are closed'
const sweepMs = 20
const idleMs = 250

/** The parts of a gateway that its end needs. */
export interface ClosingParts {
  readonly app: FastifyInstance
  readonly shutdown: () => GatewaySettings['shutdown']
  /** Asks callers to take further calls elsewhere, on connections that have words for it. */
  readonly announceClosing: () => void
  /** Ends connections without a call, and lets the others end with theirs. */
  readonly closeIdleConnections: () => void
  /** Ends connections that have no end of their own. */
  readonly closeTunnels: () => void
  /** Counts the tunnels. */
  readonly tunnels: () => number
  /** Cuts every connection, also those that have left HTTP. */
  readonly destroyConnections: () => void
}

/**
 * Ends in good order. No new connections are taken; on those that are there each answer is the last, so that callers
 * who keep them learn of it; what is idle is closed after a moment, and whatever takes too long is cut.
 */
export class Closing {
  readonly #parts: ClosingParts
  #hasBegun = false

  constructor(parts: ClosingParts) {
    this.#parts = parts
    parts.app.addHook('preClose', () => this.#drain())
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  async #drain(): Promise<void> {
    const { server } = this.#parts.app
    const { timeoutMs } = this.#parts.shutdown()
    this.#hasBegun = true
    if (!server.listening) return
    const begun = performance.now()
    let closed = false
    // the server's own close() would cut connections on which a call is just arriving
    NetServer.prototype.close.call(server, () => {
      closed = true
    })
    this.#parts.announceClosing()
    while (!closed) {
      const elapsed = performance.now() - begun
      if (elapsed >= idleMs) attempt(place, () => this.#parts.closeIdleConnections())
      if (elapsed >= timeoutMs) this.#parts.destroyConnections()
      else if (elapsed >= idleMs && (await this.#onlyTunnelsAreLeft())) attempt(place, () => this.#parts.closeTunnels())
      await pause(sweepMs)
    }
  }

  #onlyTunnelsAreLeft(): Promise<boolean> {
    const { app, tunnels } = this.#parts
    return new Promise(resolve => app.server.getConnections((_error, count) => resolve(count <= tunnels())))
  }
}
