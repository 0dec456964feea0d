import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { buildConnector, type Client, type Dispatcher } from 'undici'
import { outliveStreams } from '../../http/http2/ended-sessions.ts'
import { type Probe, SessionProbes } from '../../http/http2/session-probes.ts'
import { maxSentHeaderBytes } from '../../http/http2/single-headers.ts'
import { ServiceGarbled, ServiceRefused } from './http2-failure.ts'
import { ServiceStream, type StreamCall } from './service-stream.ts'

export interface ServiceSessionsOptions {
  readonly url: URL
  /** True if the service is known to speak HTTP/2; otherwise TLS finds out (ALPN). */
  readonly isKnown: boolean
  /** Returns the options by which a connection is opened, in undici's words. */
  readonly connect: () => buildConnector.BuildOptions
  readonly maxAgeMs?: number | undefined
}

/** Sends a call by HTTP/1.1 instead. */
type SendByHttp1 = () => void

interface Waiting {
  readonly begin: () => void
  readonly fail: (error: Error) => void
  readonly sendByHttp1: SendByHttp1
}

interface Session {
  readonly http2: ClientHttp2Session
  readonly openedAt: number
  streams: number
  isRetired: boolean
}

const idleMs = 60_000
/** The time for which a service that has chosen HTTP/1.1 is not asked again. */
const rememberedMs = 600_000
/** Until the service says its own. */
const usualMaxStreams = 100
const maxHeaderBytes = 65_536
const maxHeaders = 2048

/** Not a PING, since servers of gRPC close connections that send more than a few; the silence of a service is for timeouts. */
const serviceProbe: Probe = {
  ask: (session, onAnswer) => {
    session.settings({}, error => error === null && onAnswer())
    return true
  },
  isRepeated: false,
  end: session => session.destroy(new ServiceGarbled('the service broke the rules of HTTP/2')),
}

/**
 * The connections of HTTP/2 to one address. A call goes to the first that has room; another is opened if none has. One that
 * is asked to go away, or that does not answer, gets no further calls and ends with its last one.
 */
export class ServiceSessions {
  readonly #options: ServiceSessionsOptions
  readonly #sessions = new Set<Session>()
  readonly #waiting: Waiting[] = []
  readonly #probes = new SessionProbes(serviceProbe)
  #isConnecting = false
  #isDestroyed = false
  #http1Until = 0

  constructor(options: ServiceSessionsOptions) {
    this.#options = options
  }

  /** Does what `dispatch` of an undici client does; returns the call unless it is sent by HTTP/1.1. */
  dispatch(
    call: StreamCall & { readonly servername?: string | undefined },
    handler: Dispatcher.DispatchHandler,
    sendByHttp1: SendByHttp1,
  ): ServiceStream | undefined {
    if (performance.now() < this.#http1Until) {
      sendByHttp1()
      return undefined
    }
    const stream = new ServiceStream(call, handler)
    const begin = (session: Session): void => {
      if (stream.begin(session.http2, this.#options.url)) this.#count(session, stream)
    }
    const free = this.#free()
    if (free) begin(free)
    else {
      this.#waiting.push({
        begin: () => {
          const session = this.#free()
          if (session) begin(session)
          else stream.fail(new ServiceRefused('the connection ended before the call was sent'))
        },
        fail: error => stream.fail(error),
        sendByHttp1,
      })
      this.#open(call.servername)
    }
    return stream
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Lets calls under way finish. */
  close(): void {
    for (const session of this.#sessions) this.#retire(session)
  }

  destroy(): void {
    this.#isDestroyed = true
    for (const { http2 } of this.#sessions) http2.destroy()
  }

  #free(): Session | undefined {
    const { maxAgeMs = Number.POSITIVE_INFINITY } = this.#options
    const oldest = performance.now() - maxAgeMs
    for (const session of this.#sessions) {
      if (session.openedAt < oldest) this.#retire(session)
      if (!session.isRetired && session.streams < maxStreamsOf(session.http2)) return session
    }
    return undefined
  }

  #open(servername: string | undefined): void {
    if (this.#isConnecting) return
    this.#isConnecting = true
    const { hostname, host, protocol, port } = this.#options.url
    const place = { hostname: hostname.replace(/^\[|\]$/g, ''), host, protocol, port }
    const connect = buildConnector({ ...this.#options.connect(), allowH2: true })
    connect({ ...place, ...(servername === undefined ? {} : { servername }) }, (error, socket) => {
      this.#isConnecting = false
      if (error) this.#settle(waiting => waiting.fail(error))
      else this.#connected(socket as TLSSocket, servername)
    })
  }

  #connected(socket: TLSSocket, servername: string | undefined): void {
    if (this.#isDestroyed) {
      socket.destroy()
      return
    }
    const isHttp2 = socket.alpnProtocol === 'h2' || this.#options.url.protocol === 'http:'
    if (isHttp2) {
      const session = this.#add(socket)
      const room = maxStreamsOf(session.http2)
      for (const waiting of this.#waiting.splice(0, room)) waiting.begin()
      if (this.#waiting.length > 0) this.#open(servername)
      return
    }
    socket.destroy()
    if (this.#options.isKnown) {
      this.#settle(waiting => waiting.fail(new ServiceGarbled('the service does not speak HTTP/2')))
      return
    }
    this.#http1Until = performance.now() + rememberedMs
    this.#settle(waiting => waiting.sendByHttp1())
  }

  #settle(how: (waiting: Waiting) => void): void {
    for (const waiting of this.#waiting.splice(0)) how(waiting)
  }

  #add(socket: TLSSocket): Session {
    const http2 = connectHttp2(this.#options.url, {
      createConnection: () => socket,
      maxHeaderListPairs: maxHeaders,
      maxSendHeaderBlockLength: maxSentHeaderBytes,
      settings: { enablePush: false, maxHeaderListSize: maxHeaderBytes },
    })
    const session: Session = { http2, openedAt: performance.now(), streams: 0, isRetired: false }
    this.#sessions.add(session)
    this.#probes.add(http2, socket)
    http2.once('connect', () => outliveStreams(http2))
    // its calls are notified by their own streams
    http2.on('error', () => {})
    http2.on('goaway', () => {
      session.isRetired = true
    })
    http2.once('close', () => this.#sessions.delete(session))
    http2.setTimeout(idleMs, () => {
      if (session.streams === 0) this.#retire(session)
    })
    return session
  }

  #count(session: Session, stream: ServiceStream): void {
    session.streams++
    stream.onceClosed(wasLate => {
      session.streams--
      // it may have lost its connection without knowing
      if (wasLate) this.#retire(session)
    })
  }

  #retire(session: Session): void {
    session.isRetired = true
    if (!session.http2.destroyed) session.http2.close()
  }
}

/** Makes a client send its calls over these sessions; over a connection of its own if the service wants HTTP/1.1. */
export function sendByHttp2(client: Client, sessions: ServiceSessions): void {
  const sendByHttp1 = client.dispatch.bind(client)
  const destroy = client.destroy.bind(client) as (...args: unknown[]) => Promise<void>
  let stream: ServiceStream | undefined
  client.dispatch = (options, handler) => {
    stream = sessions.dispatch(options as unknown as StreamCall, handler, () => sendByHttp1(options, handler))
    return true
  }
  client.destroy = (...args: unknown[]) => {
    stream?.fail(args[0] instanceof Error ? args[0] : new Error('the connection was destroyed'))
    return destroy(...args)
  }
}

function maxStreamsOf({ remoteSettings }: ClientHttp2Session): number {
  return Math.max(1, remoteSettings?.maxConcurrentStreams ?? usualMaxStreams)
}
