import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { visitAll } from 'diana-limiter/gateway'
import { outliveStreams } from '../../http/http2/ended-sessions.ts'
import { callerProbe, SessionProbes } from '../../http/http2/session-probes.ts'
import { maxSentHeaderBytes } from '../../http/http2/single-headers.ts'
import { waitToContinue } from '../../http/message-headers.ts'
import type { CallerLimits } from '../../settings/gateway-settings.ts'
import { Http2Request, rememberSocket, socketOf } from './http2-request.ts'
import { Http2Response } from './http2-response.ts'
import { isPreface, takeFromParser } from './prior-knowledge.ts'
import { announceEnd } from './shutdown-notice.ts'
import { boundResets, renewAfterResets, withoutResetBound } from './stream-resets.ts'

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void
type SocketListener = (this: Server, socket: Socket) => void

export interface CallerSessionsOptions {
  /** True if an address is that of a trusted proxy. */
  readonly isProxy: (address: string) => boolean
  readonly limits: Pick<CallerLimits, 'headersBytes'>
  /** Answers a call that expects something other than `100-continue`. */
  readonly refuseExpectation: RequestListener
  /** The longest time that a connection may be without a call. */
  readonly idleMs: number
}

const maxStreams = 128
const maxInvalidFrames = 100
const lingerMs = 2000
/** A header takes at least this many bytes, as HTTP/2 counts them. */
const bytesPerHeader = 32

/**
 * The callers' connections that speak HTTP/2. They come in at the same port as those of HTTP/1.1 and are recognized
 * by ALPN, or by the first bytes that a caller with prior knowledge sends (RFC 9113, section 3.4).
 */
export class CallerSessions {
  readonly #options: CallerSessionsOptions
  readonly #server: Http2Server
  readonly #sessions = new Map<ServerHttp2Session, { open: number }>()
  readonly #probes = new SessionProbes(callerProbe)
  #isClosing = false

  constructor(listener: RequestListener, options: CallerSessionsOptions) {
    this.#options = options
    const { headersBytes } = options.limits
    this.#server = createServer({
      ...withoutResetBound,
      Http2ServerRequest: Http2Request as never,
      Http2ServerResponse: Http2Response as never,
      maxHeaderListPairs: Math.ceil(headersBytes / bytesPerHeader),
      maxSendHeaderBlockLength: maxSentHeaderBytes,
      maxSessionInvalidFrames: maxInvalidFrames,
      settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: headersBytes },
    })
    this.#server.on('request', listener as never)
    this.#server.on('session', session => this.#watch(session))
    this.#server.on('sessionError', () => {})
    this.#server.on('checkContinue', (request, response) => {
      waitToContinue(request as never)
      listener(request as never, response as never)
    })
    // a tunnel is refused like every other method that is not forwarded
    this.#server.on('connect' as never, listener as never)
    this.#server.on('checkExpectation', options.refuseExpectation as never)
  }

  /** Takes connections that have agreed on HTTP/2 by ALPN before the listeners of the server see them. */
  join(server: Server): void {
    const listeners = server.listeners('secureConnection') as SocketListener[]
    server.removeAllListeners('secureConnection')
    server.on('secureConnection', (socket: TLSSocket) => {
      if (socket.alpnProtocol === 'h2') this.#begin(socket)
      else for (const listener of listeners) listener.call(server, socket)
    })
  }

  /** Takes a connection that the server of HTTP/1.1 cannot read, if it begins as HTTP/2 does; over TLS, ALPN decides. */
  take(error: NodeJS.ErrnoException, socket: Socket): boolean {
    if ('encrypted' in socket || !isPreface(error, socket)) return false
    takeFromParser(socket, error)
    this.#begin(socket)
    return true
  }

  /** Asks callers to open no further calls here; those on their way are still served. */
  announceClosing(): void {
    this.#isClosing = true
    this.#visitSessions(session => announceEnd(session, socketOf(session)!))
  }

  /** Takes no further calls. Connections end with their last call, and at once if they have none. */
  closeIdle(): void {
    this.#visitSessions((session, calls) => {
      if (calls.open === 0) closeSoon(session)
      else session.close()
    })
  }

  #visitSessions(visit: (session: ServerHttp2Session, calls: { readonly open: number }) => void): void {
    const look = ([session, calls]: [ServerHttp2Session, { readonly open: number }]): void => visit(session, calls)
    visitAll('connections of callers that speak HTTP/2', this.#sessions, look, ([session]) => {
      this.#sessions.delete(session)
      socketOf(session)?.destroy()
    })
  }

  #begin(socket: Socket): void {
    // a server of HTTP/1.1 answers callers that have closed their side, which ends a connection of HTTP/2
    socket.allowHalfOpen = false
    const remember = (session: ServerHttp2Session): void => {
      rememberSocket(session, socket)
      this.#probes.add(session, socket)
    }
    // before those who use what is remembered
    this.#server.prependOnceListener('session', remember)
    this.#server.emit('connection', socket)
    // if Node has not taken the connection, the next session is another caller's
    this.#server.off('session', remember)
  }

  #watch(session: ServerHttp2Session): void {
    const calls = { open: 0 }
    let timer: NodeJS.Timeout | undefined
    const awaitCalls = (): void => {
      timer = setTimeout(() => closeSoon(session), this.#options.idleMs)
    }
    this.#sessions.set(session, calls)
    outliveStreams(session)
    session.on('error', () => {})
    // one caller of a proxy must not end the calls of the others, which come over the same connection
    if (this.#options.isProxy(session.socket.remoteAddress ?? '')) renewAfterResets(session, socketOf(session)!)
    else boundResets(session)
    session.on('stream', stream => {
      calls.open++
      clearTimeout(timer)
      stream.once('close', () => {
        if (--calls.open > 0 || session.destroyed) return
        if (session.closed) closeSoon(session)
        else awaitCalls()
      })
    })
    session.once('close', () => {
      clearTimeout(timer)
      this.#sessions.delete(session)
    })
    awaitCalls()
    if (this.#isClosing) announceEnd(session, socketOf(session)!)
  }
}

/** Closes a session; one whose caller reads nothing cannot even be asked, and is cut. */
function closeSoon(session: ServerHttp2Session): void {
  session.close()
  setTimeout(() => socketOf(session)?.destroy(), lingerMs).unref()
}
