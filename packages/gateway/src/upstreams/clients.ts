import { ServiceClient, type ServiceClientOptions } from './service-client.ts'

/** The connections to one address. Each carries one call at a time; those without a call are kept for the next one. */
export class Clients {
  readonly #origin: string
  readonly #options: ServiceClientOptions
  readonly #idle: ServiceClient[] = []
  readonly #all = new Set<ServiceClient>()

  constructor(origin: string, options: ServiceClientOptions) {
    this.#origin = origin
    this.#options = options
  }

  /** A connection for one call: the one used last, since it is the least likely to have been closed. */
  take(): ServiceClient {
    return this.#idle.pop() ?? this.#open()
  }

  /** The call on a connection has ended. */
  giveBack(client: ServiceClient): void {
    if (client.destroyed || client.closed) this.#all.delete(client)
    else this.#idle.push(client)
  }

  /** Takes a connection out of use whose call does not end. */
  discard(client: ServiceClient): void {
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

  #open(): ServiceClient {
    const client = new ServiceClient(this.#origin, this.#options)
    // a connection that was closed while nobody used it is of no use any more
    client.on('disconnect', () => this.#forget(client))
    this.#all.add(client)
    return client
  }

  #forget(client: ServiceClient): void {
    const at = this.#idle.indexOf(client)
    if (at < 0) return
    this.#idle.splice(at, 1)
    this.discard(client)
  }
}
