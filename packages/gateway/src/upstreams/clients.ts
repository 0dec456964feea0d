import { Client } from 'undici'
import type { ServiceTls } from '../tls/service-tls.ts'

const keepAliveMs = 4000

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #origin: string
  readonly #connectMs: number
  readonly #tls: ServiceTls | undefined
  readonly #idle: Client[] = []
  readonly #all = new Set<Client>()

  constructor(origin: string, connectMs: number, tls: ServiceTls | undefined) {
    this.#tls = tls
    this.#origin = origin
    this.#connectMs = connectMs
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
    await Promise.allSettled([...this.#all].map(client => client.close()))
  }

  async destroy(): Promise<void> {
    await Promise.allSettled([...this.#all].map(client => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, {
      pipelining: 1,
      connect: { timeout: this.#connectMs, rejectUnauthorized: true, ...this.#tls?.options },
      // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
      keepAliveTimeout: keepAliveMs,
    })
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
