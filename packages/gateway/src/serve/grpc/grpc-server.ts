import {
  constants,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer as createTcpServer, type Server as NetServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type Repeated, repeat, visitAll } from 'diana-limiter/gateway'
import { isPeerGone } from '../../http/gone-peer.ts'
import { grpcTypeOf } from '../../http/grpc/grpc-call.ts'
import { outliveStreams } from '../../http/http2/ended-sessions.ts'
import { callerProbe, SessionProbes } from '../../http/http2/session-probes.ts'
import type { ServerTls } from '../../http/tls/server-tls.ts'
import { announceEnd } from '../../inbound/http2/shutdown-notice.ts'
import { isOver, renewAfterResets, resetStream, withoutResetBound } from '../../inbound/http2/stream-resets.ts'
import { GrpcCall, type GrpcCallParts } from './grpc-call.ts'
import { status } from './grpc-error.ts'
import type { GrpcMethod } from './grpc-method.ts'

export interface GrpcServerOptions {
  readonly methods: readonly GrpcMethod[]
  readonly tls?: ServerTls | undefined
  /** True if the other side of a connection may ask. */
  mayAsk(socket: Socket): boolean
  readonly maxMessageBytes: number
  readonly maxConnections: number
  /** Is called for a connection that was refused, with the reason. */
  onRefused(reason: string): void
}

/** Enough for a proxy that sends everything over one connection. */
const maxStreams = 10_000
const maxOpenCalls = 20_000
/** The state of a connection. */
interface SessionState {
  readonly socket: Socket
  readonly peer: string | undefined
  /** The time of its last new call, by the clock of the server. */
  usedAtMs: number
}

/** In MB: the state of as many streams, by far. */
const maxSessionMemory = 256
const maxHeaderPairs = 128
const maxInvalidFrames = 100
const idleMs = 300_000
const requestMs = 30_000
const sweepMs = 1000
/** The time after the notice of the end in which calls are served: callers may not have read the notice yet. */
const announceMs = 250

/**
 * gRPC over `node:http2`. A connection of a peer that is not trusted is closed before anything is read from it; a call has thirty
 * seconds to arrive; what is open is bounded.
 */
export class GrpcServer {
  readonly #options: GrpcServerOptions
  readonly #methods: ReadonlyMap<string, GrpcMethod>
  readonly #callParts: GrpcCallParts
  readonly #http2: Http2Server | Http2SecureServer
  readonly server: NetServer
  readonly #sessions = new Map<ServerHttp2Session, SessionState>()
  readonly #sockets = new Set<Socket>()
  readonly #probes = new SessionProbes(callerProbe)
  /** Calls whose requests have not arrived yet, or that are not answered. */
  readonly #open = new Set<GrpcCall>()
  readonly #sweeping: Repeated
  #isClosing = false
  /** The time of the last sweep: to read the clock for every call would cost more than it is worth. */
  #nowMs = performance.now()

  constructor(options: GrpcServerOptions) {
    const { methods, tls } = options
    this.#options = options
    this.#callParts = { maxMessageBytes: options.maxMessageBytes, onEnd: ended => this.#open.delete(ended) }
    this.#methods = new Map(methods.map(method => [method.path, method]))
    this.#http2 = createServer({
      ...withoutResetBound,
      maxSessionMemory,
      maxHeaderListPairs: maxHeaderPairs,
      maxSessionInvalidFrames: maxInvalidFrames,
      settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: 16_384, enablePush: false },
    })
    this.#http2.on('session', session => this.#watch(session as ServerHttp2Session))
    this.#http2.on('sessionError', () => {})
    this.#http2.on('stream', (stream, headers) => this.#begin(stream as ServerHttp2Stream, headers))
    this.server = tls
      ? createTlsServer({ ...tls.serverOptions, ALPNProtocols: ['h2'], handshakeTimeout: 20_000 })
      : createTcpServer({ noDelay: true })
    this.server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#accept(socket))
    if (tls) tls.attach(this.server as never)
    this.server.on('error', () => {})
    this.#sweeping = repeat('calls of gRPC', sweepMs, () => this.#sweep())
  }

  get connections(): number {
    return this.#sockets.size
  }

  /** Asks callers to open no further calls, lets those under way end, and cuts what is left after a time. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true
    this.#sweeping.stop()
    const closed = new Promise<void>(resolve => this.server.close(() => resolve()))
    const drop = (call: GrpcCall): boolean => this.#open.delete(call)
    visitAll('calls of gRPC', this.#open, call => call.endStream(), drop)
    this.#visitSessions((session, { socket }) => announceEnd(session, socket))
    const closing = setTimeout(() => this.#visitSessions(session => session.close()), announceMs)
    const late = setTimeout(() => this.#destroyAll(), timeoutMs)
    await closed
    clearTimeout(closing)
    clearTimeout(late)
    this.#destroyAll()
  }

  #destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #accept(socket: Socket): void {
    if (isPeerGone(socket, this.server)) {
      socket.destroy()
      return
    }
    const { remoteAddress } = socket
    if (!this.#options.mayAsk(socket)) {
      this.#options.onRefused(`${remoteAddress} is not among the peers of trustProxy`)
      socket.destroy()
      return
    }
    if (this.#sockets.size >= this.#options.maxConnections) {
      this.#options.onRefused(`there are ${this.#sockets.size} connections already`)
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
    const remember = (session: ServerHttp2Session): void => {
      this.#sessions.set(session, { socket, peer: remoteAddress, usedAtMs: this.#nowMs })
      // all who may ask are proxies
      renewAfterResets(session, socket)
      this.#probes.add(session, socket)
    }
    this.#http2.once('session', remember as never)
    this.#http2.emit('connection', socket)
    this.#http2.off('session', remember as never)
  }

  #watch(session: ServerHttp2Session): void {
    outliveStreams(session)
    session.on('error', ignore)
    session.once('close', () => this.#sessions.delete(session))
    if (this.#isClosing) session.close()
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', ignore)
    if (this.#open.size >= maxOpenCalls) {
      resetStream(stream, constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    // HTTP says what is not gRPC at all, as the protocol asks
    const isPost = headers[':method'] === 'POST'
    if (!isPost || grpcTypeOf(headers as never)?.startsWith('application/grpc-web') !== false) {
      refuse(stream, isPost ? 415 : 405)
      return
    }
    const session = this.#sessions.get(stream.session as ServerHttp2Session)
    if (session) session.usedAtMs = this.#nowMs
    const call = new GrpcCall(stream, headers, session?.peer, this.#nowMs, this.#callParts)
    const method = this.#methods.get(headers[':path'] ?? '')
    if (method === undefined) call.fail(status.unimplemented, `there is no method ${headers[':path']}`)
    else {
      this.#open.add(call)
      call.serve(method)
    }
  }

  /** Ends calls whose requests do not arrive, and connections that have no calls. */
  #sweep(): void {
    this.#nowMs = performance.now()
    const drop = (call: GrpcCall): boolean => this.#open.delete(call)
    const look = (call: GrpcCall): void => {
      if (call.isGone) drop(call)
      else if (call.isArriving && call.beganAtMs < this.#nowMs - requestMs) {
        call.fail(status.deadlineExceeded, 'the request took too long to arrive')
      }
    }
    visitAll('calls of gRPC', this.#open, look, drop)
    this.#visitSessions((session, { usedAtMs }) => {
      // one with calls under way is closed when they have ended
      if (usedAtMs < this.#nowMs - idleMs) session.close()
    })
  }

  #visitSessions(visit: (session: ServerHttp2Session, state: SessionState) => void): void {
    const look = ([session, state]: [ServerHttp2Session, SessionState]): void => visit(session, state)
    visitAll('connections of gRPC', this.#sessions, look, ([session, { socket }]) => {
      this.#sessions.delete(session)
      socket.destroy()
    })
  }
}

function ignore(): void {}

function refuse(stream: ServerHttp2Stream, httpStatus: number): void {
  if (isOver(stream)) return
  stream.resume()
  stream.respond({ ':status': httpStatus }, { endStream: true })
}
