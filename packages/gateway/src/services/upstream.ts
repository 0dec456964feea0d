import { isIP, type LookupFunction } from 'node:net'
import type { ServiceTls } from '../http/tls/service-tls.ts'
import type { RouteSettings } from '../settings/routes/route-settings.ts'
import { parseUnixAddress } from '../settings/upstreams/address-settings.ts'
import { AddressTraffic, Health } from './address-state.ts'
import { Clients } from './clients.ts'
import { type Endpoint, endpointName, lookupFor } from './endpoints.ts'
import { HealthChecks } from './health/health-checks.ts'
import { Slots } from './slots.ts'

export type UpstreamOptions = Pick<RouteSettings, 'health' | 'connections' | 'protocol' | 'maxHeadBytes' | 'tls'> & {
  readonly timeouts: Pick<RouteSettings['timeouts'], 'connectMs'>
}

/** The place of one of a service's addresses. */
export interface UpstreamPlace {
  /** As the rule file has it. */
  readonly address: string
  /** The machine of an address with a name; without one, the system looks the name up for each connection. */
  readonly endpoint?: Endpoint | undefined
  /** The verification of its certificate, in place of the usual way. */
  readonly tls?: ServiceTls | undefined
}

const retiringMs = 10_000

/** One address of a service: its connections, how many calls may use them, and how it is doing. */
export class Upstream {
  readonly url: URL
  /** Its name in metrics: that of all machines behind one name is the same. */
  readonly label: string
  /** The beginning of every path there; no slash at its end. */
  readonly basePath: string
  /** The name that its certificate is for; none for an address. */
  readonly serverName: string | undefined
  /** The name that people read: no two of one route have the same name. */
  readonly name: string
  /** The options for a socket to it, if its URL does not say all. */
  readonly connect: { readonly socketPath?: string; readonly lookup?: LookupFunction }
  /** The verification of the service, if its routes say so. */
  readonly tls: ServiceTls | undefined
  readonly clients: Clients
  readonly slots: Slots
  readonly health: Health
  /** The outcomes of calls here, by route. */
  readonly traffic: AddressTraffic = new AddressTraffic()
  readonly #checks: HealthChecks | undefined
  #isRetired = false

  /** An address that was added while calls came is new at `since`. */
  constructor({ address, endpoint, tls }: UpstreamPlace, options: UpstreamOptions, since?: number) {
    const { health, timeouts, connections, protocol, maxHeadBytes } = options
    const unix = parseUnixAddress(address)
    this.url = new URL(unix === undefined ? address : `http://localhost${unix.path}`)
    this.label = unix ? `unix:${unix.socketPath}` : this.url.origin
    this.basePath = this.url.pathname.replace(/\/$/, '')
    const isName = isIP(this.url.hostname.replace(/^\[|\]$/g, '')) === 0
    this.tls = tls
    this.serverName = tls?.serverName ?? (isName ? this.url.hostname : undefined)
    this.name = endpoint ? `${address} at ${endpointName(endpoint)}` : address
    this.connect = {
      ...(unix === undefined ? {} : { socketPath: unix.socketPath }),
      ...(endpoint === undefined ? {} : { lookup: lookupFor(endpoint) }),
    }
    this.health = new Health(health, since)
    const { idleMs, maxAgeMs } = connections
    this.clients = new Clients({
      ...{ origin: this.url.origin, connectMs: timeouts.connectMs, idleMs, maxAgeMs, protocol, maxHeadBytes },
      ...{ ...this.connect, tls },
    })
    this.slots = new Slots(connections)
    this.#checks = health.check && new HealthChecks(this, health.check)
  }

  /** Calls that it has, with those that wait for a connection. */
  get underWay(): number {
    return this.slots.inUse + this.slots.waiting
  }

  /** True if no route leads here any more. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  /** Retires the address, since no route leads here any more: calls under way finish, and one that is about to try again still may. */
  retire(): void {
    this.#isRetired = true
    this.#checks?.stop()
    setTimeout(() => void this.clients.close(), retiringMs).unref()
  }

  /** Ends what is still under way. */
  async close(): Promise<void> {
    this.#checks?.stop()
    await this.clients.destroy()
  }
}
