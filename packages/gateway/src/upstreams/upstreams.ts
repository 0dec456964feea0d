import { Upstream, type UpstreamOptions } from './upstream.ts'

/** All addresses in use. They live on when routes change, with their connections and what is known of them. */
export class Upstreams {
  readonly #known = new Map<string, Upstream>()

  find(address: string, options: UpstreamOptions): Upstream {
    const { health, timeouts, connections, maxHeadBytes } = options
    const name = [
      address,
      timeouts.connectMs,
      maxHeadBytes,
      ...Object.values(health),
      ...Object.values(connections),
    ].join(' ')
    const known = this.#known.get(name)
    if (known) return known
    const upstream = new Upstream(address, options)
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
