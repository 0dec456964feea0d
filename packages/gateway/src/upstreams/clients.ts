import { Client } from 'undici'
import type { ServiceProtocol } from '../settings/protocol-settings.ts'
import { ServiceSessions, sendByHttp2 } from './service-sessions.ts'

const keepAliveMs = 4000

export interface ClientsOptions {
  readonly connectMs: number
  readonly protocol: ServiceProtocol | undefined
}

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #origin: string
  readonly #connect: { readonly timeout: number; readonly rejectUnauthorized: boolean }
  readonly #sessions: ServiceSessions | undefined
  readonly #idle: Client[] = []
  readonly #all = new Set<Client>()

  constructor(url: URL, { connectMs, protocol }: ClientsOptions) {
    this.#origin = url.origin
    this.#connect = { timeout: connectMs, rejectUnauthorized: true }
    if (protocol === 'http2' || (protocol === undefined && url.protocol === 'https:')) {
      this.#sessions = new ServiceSessions({ url, isKnown: protocol === 'http2', connect: this.#connect })
    }
  }

  /** A connection for one call: the one used last, since it is the least likely to have been closed. */
  take(): Client {
    return this.#idle.pop() ?? this.#open()
  }

  /** The call on a connection has ended. */
  giveBack(client: Client): void {
    if (client.destroyed || client.closed) this.#all.delete(client)
    else this.#idle.push(client)
  }

  /** Takes a connection out of use whose call does not end. */
  discard(client: Client): void {
    this.#all.delete(client)
    void client.destroy().catch(() => {})
  }

  /** Lets calls under way finish. */
  async close(): Promise<void> {
    this.#sessions?.close()
    await Promise.allSettled([...this.#all].map(client => client.close()))
  }

  async destroy(): Promise<void> {
    this.#sessions?.destroy()
    await Promise.allSettled([...this.#all].map(client => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, {
      pipelining: 1,
      connect: this.#connect,
      // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
      keepAliveTimeout: keepAliveMs,
    })
    if (this.#sessions) sendByHttp2(client, this.#sessions)
    // a connection that was closed while nobody used it is of no use any more
    client.on('disconnect', () => this.#forget(client))
    this.#all.add(client)
    return client
  }

  #forget(client: Client): void {
    const at = this.#idle.indexOf(client)
    if (at < 0) return
    this.#idle.splice(at, 1)
    this.discard(client)
  }
}
