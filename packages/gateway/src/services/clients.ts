import type { LookupFunction } from 'node:net'
import { type Repeated, repeat, visitAll } from 'diana-limiter/gateway'
import type { buildConnector } from 'undici'
import type { ServiceTls } from '../http/tls/service-tls.ts'
import type { ServiceProtocol } from '../settings/upstreams/protocol-settings.ts'
import { ServiceClient } from './http1/service-client.ts'
import { ServiceSessions, sendByHttp2 } from './http2/service-sessions.ts'

/** The way to reach an address. */
export interface ConnectOptions {
  readonly origin: string
  readonly connectMs: number
  readonly idleMs: number
  readonly maxAgeMs?: number | undefined
  /** The largest size of an answer's headers. */
  readonly maxHeadBytes?: number | undefined
  /** The socket of this machine, in place of a port. */
  readonly socketPath?: string | undefined
  /** Says which addresses the name has; the system is asked unless given. */
  readonly lookup?: LookupFunction | undefined
  /** The version of HTTP that the service speaks; left out, TLS finds out. */
  readonly protocol?: ServiceProtocol | undefined
  /** The verification of the service, if its routes say so. */
  readonly tls?: ServiceTls | undefined
}

/** One connection to a service. */
export class Connection extends ServiceClient {
  readonly openedAt: number = performance.now()
  /** True if it has carried a call to its end, and been kept since. */
  isReused = false
  /** The time for which the service keeps the connection without a call, as the last answer said it. */
  keepAliveMs: number | undefined
  /** Until when it is kept without a call. */
  idleUntil = 0
}

/** Undici does not close idle connections: it does not know of all calls. */
const undiciKeepsOpen = { keepAliveTimeout: 1e9, keepAliveMaxTimeout: 1e9, keepAliveTimeoutThreshold: -1e9 } as const
/** A connection is closed that much earlier than the service would close it. */
const marginMs = 2000
const maxIdleMs = 600_000
const sweepMs = 500

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #options: ConnectOptions
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  readonly #sessions: ServiceSessions | undefined
  #sweeper: Repeated | undefined

  constructor(options: ConnectOptions) {
    this.#options = options
    this.#sessions = sessionsFor(options)
  }

  /** Returns a connection for one call: the one used last, since it is the least likely to have been closed. */
  take(now: number): Connection {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (!this.#isTooOld(kept, now)) return kept
      this.discard(kept)
    }
    return this.open()
  }

  /** Takes back a connection whose call has ended. */
  giveBack(connection: Connection, now: number): void {
    if (connection.destroyed || connection.closed) {
      this.#all.delete(connection)
      return
    }
    const { keepAliveMs } = connection
    // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
    const idleMs = keepAliveMs === undefined ? this.#options.idleMs : Math.min(keepAliveMs - marginMs, maxIdleMs)
    if (idleMs <= 0) {
      this.discard(connection)
      return
    }
    connection.isReused = true
    connection.idleUntil = now + idleMs
    this.#idle.push(connection)
    this.#sweeper ??= repeat('idle connections to services', sweepMs, () => this.#sweep())
  }

  /** Takes a connection out of use, with the call on it. */
  discard(connection: Connection): void {
    this.#all.delete(connection)
    void connection.destroy().catch(() => {})
  }

  /** Returns a connection that has carried no call yet. */
  open(): Connection {
    const { origin, maxHeadBytes } = this.#options
    const connection = new Connection(origin, {
      ...undiciKeepsOpen,
      pipelining: 1,
      connect: connectorOptions(this.#options),
      ...(maxHeadBytes === undefined ? {} : { maxHeaderSize: maxHeadBytes }),
    })
    if (this.#sessions) sendByHttp2(connection, this.#sessions)
    // a connection that was closed while no call used it is of no use any more
    connection.on('disconnect', () => this.#forget(connection))
    this.#all.add(connection)
    return connection
  }

  /** Counts the open connections. */
  get size(): number {
    let size = this.#sessions?.size ?? 0
    for (const { stats } of this.#all) if (stats.connected) size++
    return size
  }

  /** Lets calls under way finish. */
  async close(): Promise<void> {
    this.#sessions?.close()
    await Promise.allSettled([...this.#all].map(connection => connection.settled().then(() => connection.close())))
  }

  async destroy(): Promise<void> {
    this.#sessions?.destroy()
    await Promise.allSettled([...this.#all].map(connection => connection.destroy()))
  }

  #isTooOld({ openedAt, idleUntil }: Connection, now: number): boolean {
    const { maxAgeMs } = this.#options
    return now >= idleUntil || (maxAgeMs !== undefined && now - openedAt >= maxAgeMs)
  }

  /** Closes connections that no call has used for long. */
  #sweep(): void {
    const now = performance.now()
    const kept = this.#idle.filter(connection => now < connection.idleUntil)
    const ended = this.#idle.splice(0).filter(connection => now >= connection.idleUntil)
    this.#idle.push(...kept)
    const discard = (connection: Connection): void => this.discard(connection)
    visitAll('idle connections to services', ended, discard, connection => this.#all.delete(connection))
    if (kept.length > 0) return
    this.#sweeper?.stop()
    this.#sweeper = undefined
  }

  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at < 0) return
    this.#idle.splice(at, 1)
    this.discard(connection)
  }
}

/** Returns the options of a connector, read again: the files of TLS may have changed since the last connection was opened. */
function connectorOptions({ connectMs, socketPath, lookup, tls }: ConnectOptions): buildConnector.BuildOptions {
  return {
    timeout: connectMs,
    rejectUnauthorized: true,
    ...tls?.options,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(lookup === undefined ? {} : { lookup }),
  }
}

/** Makes the sessions of HTTP/2; none for a service that speaks HTTP/1.1. */
function sessionsFor(options: ConnectOptions): ServiceSessions | undefined {
  const { origin, protocol, maxAgeMs } = options
  const url = new URL(origin)
  if (protocol === 'http1' || (protocol === undefined && url.protocol === 'http:')) return undefined
  return new ServiceSessions({ url, isKnown: protocol === 'http2', connect: () => connectorOptions(options), maxAgeMs })
}
