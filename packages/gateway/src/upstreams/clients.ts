import type { LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'
import type { ServiceProtocol } from '../settings/protocol-settings.ts'
import type { ServiceTls } from '../tls/service-tls.ts'
import { ServiceClient } from './service-client.ts'
import { ServiceSessions, sendByHttp2 } from './service-sessions.ts'

/** How an address is reached. */
export interface ConnectOptions {
  readonly origin: string
  readonly connectMs: number
  readonly idleMs: number
  readonly maxAgeMs?: number | undefined
  /** How large the headers of an answer may be. */
  readonly maxHeadBytes?: number | undefined
  /** The socket of this machine, in place of a port. */
  readonly socketPath?: string | undefined
  /** Says which addresses the name has; the system is asked unless given. */
  readonly lookup?: LookupFunction | undefined
  /** What the service speaks; left out, TLS finds out. */
  readonly protocol?: ServiceProtocol | undefined
  /** How the service is verified, if its routes say so. */
  readonly tls?: ServiceTls | undefined
}

/** One connection to a service. */
export class Connection extends ServiceClient {
  readonly openedAt: number = performance.now()
  /** Whether it has carried a call to its end, and been kept since. */
  isReused = false
}

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #options: ConnectOptions
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  readonly #sessions: ServiceSessions | undefined

  constructor(options: ConnectOptions) {
    this.#options = options
    this.#sessions = sessionsFor(options)
  }

  /** A connection for one call: the one used last, since it is the least likely to have been closed. */
  take(): Connection {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (!this.#isTooOld(kept)) return kept
      this.discard(kept)
    }
    return this.open()
  }

  /** The call on a connection has ended. */
  giveBack(connection: Connection): void {
    if (connection.destroyed || connection.closed) this.#all.delete(connection)
    else {
      connection.isReused = true
      this.#idle.push(connection)
    }
  }

  /** Takes a connection out of use, with the call on it. */
  discard(connection: Connection): void {
    this.#all.delete(connection)
    void connection.destroy().catch(() => {})
  }

  /** A connection that has carried no call yet. */
  open(): Connection {
    const { origin, idleMs, maxHeadBytes } = this.#options
    const connection = new Connection(origin, {
      pipelining: 1,
      connect: connectorOptions(this.#options),
      ...(maxHeadBytes === undefined ? {} : { maxHeaderSize: maxHeadBytes }),
      // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
      keepAliveTimeout: idleMs,
    })
    if (this.#sessions) sendByHttp2(connection, this.#sessions)
    // a connection that was closed while nobody used it is of no use any more
    connection.on('disconnect', () => this.#forget(connection))
    this.#all.add(connection)
    return connection
  }

  /** How many connections are open. */
  get size(): number {
    let size = this.#sessions?.size ?? 0
    for (const { stats } of this.#all) if (stats.connected) size++
    return size
  }

  /** Lets calls under way finish. */
  async close(): Promise<void> {
    this.#sessions?.close()
    await Promise.allSettled([...this.#all].map(connection => connection.close()))
  }

  async destroy(): Promise<void> {
    this.#sessions?.destroy()
    await Promise.allSettled([...this.#all].map(connection => connection.destroy()))
  }

  #isTooOld({ openedAt }: Connection): boolean {
    const { maxAgeMs } = this.#options
    return maxAgeMs !== undefined && performance.now() - openedAt >= maxAgeMs
  }

  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at < 0) return
    this.#idle.splice(at, 1)
    this.discard(connection)
  }
}

/** The files of TLS may have changed since the last connection was opened. */
function connectorOptions({ connectMs, socketPath, lookup, tls }: ConnectOptions): buildConnector.BuildOptions {
  return {
    timeout: connectMs,
    rejectUnauthorized: true,
    ...tls?.options,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(lookup === undefined ? {} : { lookup }),
  }
}

/** None for a service that speaks HTTP/1.1. */
function sessionsFor(options: ConnectOptions): ServiceSessions | undefined {
  const { origin, protocol, maxAgeMs } = options
  const url = new URL(origin)
  if (protocol === 'http1' || (protocol === undefined && url.protocol === 'http:')) return undefined
  return new ServiceSessions({ url, isKnown: protocol === 'http2', connect: () => connectorOptions(options), maxAgeMs })
}
