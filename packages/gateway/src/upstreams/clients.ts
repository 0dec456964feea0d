import type { LookupFunction } from 'node:net'
import { Client } from 'undici'

/** How an address is reached. */
export interface ConnectOptions {
  readonly origin: string
  readonly connectMs: number
  readonly idleMs: number
  readonly maxAgeMs?: number | undefined
  /** The socket of this machine, in place of a port. */
  readonly socketPath?: string | undefined
  /** Says which addresses the name has; the system is asked unless given. */
  readonly lookup?: LookupFunction | undefined
}

/** One connection to a service. */
export class Connection extends Client {
  readonly openedAt: number = performance.now()
  /** Whether it has carried a call to its end, and been kept since. */
  isReused = false
}

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #options: ConnectOptions
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()

  constructor(options: ConnectOptions) {
    this.#options = options
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
    const { origin, connectMs, idleMs, socketPath, lookup } = this.#options
    const connection = new Connection(origin, {
      pipelining: 1,
      connect: {
        timeout: connectMs,
        rejectUnauthorized: true,
        ...(socketPath === undefined ? {} : { socketPath }),
        ...(lookup === undefined ? {} : { lookup }),
      },
      // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
      keepAliveTimeout: idleMs,
    })
    // a connection that was closed while nobody used it is of no use any more
    connection.on('disconnect', () => this.#forget(connection))
    this.#all.add(connection)
    return connection
  }

  /** Lets calls under way finish. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#all].map(connection => connection.close()))
  }

  async destroy(): Promise<void> {
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
