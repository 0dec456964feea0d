import type { TlsOptionsOfFiles } from '../tls/server-tls.ts'
import { ServiceTls } from '../tls/service-tls.ts'
import { Upstream, type UpstreamOptions } from './upstream.ts'

/** All addresses in use. They live on when routes change, with their connections and what is known of them. */
export class Upstreams {
  readonly #known = new Map<string, Upstream>()

  readonly #tlsFiles: TlsOptionsOfFiles

  /** `tlsFiles` says where the files of routes with TLS of their own are. */
  constructor(tlsFiles: TlsOptionsOfFiles = { folder: '.', onTrouble: () => {} }) {
    this.#tlsFiles = tlsFiles
  }

  find(address: string, options: UpstreamOptions): Upstream {
    const { health, timeouts, connections, tls } = options
    const numbers = [timeouts.connectMs, ...Object.values(health), ...Object.values(connections)]
    const name = [address, ...numbers, JSON.stringify(tls)].join(' ')
    const known = this.#known.get(name)
    if (known) return known
    const upstream = new Upstream(address, options, tls && new ServiceTls(tls, this.#tlsFiles))
    this.#known.set(name, upstream)
    return upstream
  }

  /** Leaves all others. */
  keep(used: ReadonlySet<Upstream>): void {
    for (const [name, upstream] of this.#known) {
      if (used.has(upstream)) continue
      this.#known.delete(name)
      upstream.retire()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(upstream => upstream.close()))
  }
}
