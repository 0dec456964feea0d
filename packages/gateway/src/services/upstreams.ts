import type { TlsOptionsOfFiles } from '../http/tls/server-tls.ts'
import { ServiceTls } from '../http/tls/service-tls.ts'
import type { ServiceTlsSettings } from '../settings/tls-settings.ts'
import type { HealthState } from './address-state.ts'
import { endpointName } from './endpoints.ts'
import { type Lookup, Names } from './names.ts'
import type { AddressReport, RouteReport, RouteTrouble, TrafficSample } from './reports.ts'
import { Upstream, type UpstreamOptions, type UpstreamPlace } from './upstream.ts'

export interface UpstreamsParts {
  /** Finds all addresses of a name; the system's resolver unless given. */
  readonly lookup?: Lookup | undefined
  /** The files of routes with TLS of their own. */
  readonly tlsFiles?: TlsOptionsOfFiles | undefined
}

/** A route's pool, as this class uses it. */
export interface UpstreamUser {
  readonly upstreams: readonly Upstream[]
  start(since: number | undefined): void
  stop(): void
  readonly id: string
  report(now: number): RouteReport
  trouble(now: number): RouteTrouble | undefined
}

const mostTroubles = 20
const mostSamples = 200
const recentMs = 300_000

/** All addresses in use. They live on when routes change, with their connections and what is known of them. */
export class Upstreams {
  readonly names: Names
  readonly #known = new Map<string, Upstream>()
  /** Those that no route has any more, until their last call has ended. */
  readonly #draining = new Set<Upstream>()
  readonly #tls = new Map<string, ServiceTls>()
  readonly #tlsFiles: TlsOptionsOfFiles
  #pools: readonly UpstreamUser[] = []
  /** Is called when an address is left alone, and when it gets calls again. */
  onHealth: (address: string, state: HealthState) => void = () => {}

  constructor({ lookup, tlsFiles = { folder: '.', onTrouble: () => {} } }: UpstreamsParts = {}) {
    this.names = new Names(lookup)
    this.#tlsFiles = tlsFiles
  }

  /** Reads the files of a route with TLS of its own, if they were not read before; throws if they cannot be used. */
  readTls(settings: ServiceTlsSettings | undefined): ServiceTls | undefined {
    if (settings === undefined) return undefined
    const name = JSON.stringify(settings)
    const known = this.#tls.get(name) ?? new ServiceTls(settings, this.#tlsFiles)
    this.#tls.set(name, known)
    return known
  }

  /** Returns the address that is known already, or else one that is new at `since`. */
  find(place: UpstreamPlace, options: UpstreamOptions, since?: number): Upstream {
    const { health, timeouts, connections, protocol, maxHeadBytes, tls } = options
    const { address, endpoint = [] } = place
    const settings = [protocol, timeouts.connectMs, health, connections, maxHeadBytes, tls]
    const name = JSON.stringify([address, endpointName(endpoint), settings])
    const known = this.#known.get(name)
    if (known) return known
    const upstream = new Upstream({ ...place, tls: this.readTls(tls) }, options, since)
    upstream.health.onChange = state => this.onHealth(upstream.name, state)
    this.#known.set(name, upstream)
    return upstream
  }

  /** Puts the addresses of these routes in use, and no others. */
  use(pools: readonly UpstreamUser[], now: number): void {
    // addresses of the first start are not new
    const since = this.#pools.length === 0 ? undefined : now
    for (const pool of pools) pool.start(since)
    for (const pool of this.#pools) pool.stop()
    this.#pools = pools
    this.sweep()
  }

  /** Lets go of addresses that no route has any more. */
  sweep(): void {
    this.#forgetDrained()
    const used = new Set(this.#pools.flatMap(pool => pool.upstreams))
    for (const [name, upstream] of this.#known) {
      if (used.has(upstream)) continue
      this.#known.delete(name)
      upstream.retire()
      this.#draining.add(upstream)
    }
  }

  /** All that have calls, or may get some. */
  get all(): Upstream[] {
    this.#forgetDrained()
    return [...this.#known.values(), ...this.#draining]
  }

  report(now: number): RouteReport[] {
    const reports = this.#pools.map(pool => pool.report(now))
    this.#forgetDrained()
    if (this.#draining.size === 0) return reports
    return reports.map(report => {
      const draining = [...this.#draining].filter(({ traffic }) => traffic.has(report.id))
      return { ...report, addresses: [...report.addresses, ...draining.map(drainingReport)] }
    })
  }

  /** Returns the first routes with addresses that get no calls at this moment. */
  troubles(now: number): RouteTrouble[] {
    const troubles: RouteTrouble[] = []
    for (const pool of this.#pools) {
      const trouble = pool.trouble(now)
      if (trouble !== undefined) troubles.push(trouble)
      if (troubles.length >= mostTroubles) break
    }
    return troubles
  }

  /** Returns the outcomes of calls since the start, of the busiest routes and addresses that had a call lately. */
  traffic(now: number): TrafficSample[] {
    const samples = this.all.flatMap(({ name, traffic }) =>
      traffic.stats(now, now - recentMs).map(([route, stats]) => ({ route, address: name, ...stats })),
    )
    return samples.sort((one, other) => other.calls - one.calls).slice(0, mostSamples)
  }

  #forgetDrained(): void {
    for (const upstream of this.#draining) if (upstream.underWay === 0) this.#draining.delete(upstream)
  }

  async close(): Promise<void> {
    for (const pool of this.#pools) pool.stop()
    await Promise.all([...this.#known.values()].map(upstream => upstream.close()))
  }
}

function drainingReport({ name, slots, clients }: Upstream): AddressReport {
  return {
    ...{ address: name, state: 'draining', weight: 0, share: 0 },
    ...{ underWay: slots.inUse, waiting: slots.waiting, connections: clients.size },
  }
}
