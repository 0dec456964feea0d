import { isIP } from 'node:net'
import type { RouteSettings } from '../settings/route-settings.ts'
import type { ServiceTls } from '../tls/service-tls.ts'
import { Clients } from './clients.ts'
import { Health } from './health.ts'
import { Slots } from './slots.ts'

export type UpstreamOptions = Pick<RouteSettings, 'health' | 'connections' | 'tls'> & {
  readonly timeouts: Pick<RouteSettings['timeouts'], 'connectMs'>
}

const retiringMs = 10_000

/** One address of a service: its connections, how many calls may use them, and how it is doing. */
export class Upstream {
  readonly url: URL
  /** What stands in front of every path there; no slash at its end. */
  readonly basePath: string
  /** The name that its certificate is for; none for an address. */
  readonly serverName: string | undefined
  /** How it is verified, if its routes say so. */
  readonly tls: ServiceTls | undefined
  readonly clients: Clients
  readonly slots: Slots
  readonly health: Health

  constructor(address: string, { health, timeouts, connections }: UpstreamOptions, tls: ServiceTls | undefined) {
    this.url = new URL(address)
    this.basePath = this.url.pathname.replace(/\/$/, '')
    const isName = isIP(this.url.hostname.replace(/^\[|\]$/g, '')) === 0
    this.tls = tls
    this.serverName = tls?.serverName ?? (isName ? this.url.hostname : undefined)
    this.health = new Health(health)
    this.clients = new Clients(this.url.origin, timeouts.connectMs, tls)
    this.slots = new Slots(connections)
  }

  /** No route leads here any more: calls under way finish, and one that is about to try again still may. */
  retire(): void {
    setTimeout(() => void this.clients.close(), retiringMs).unref()
  }

  /** Ends what is still under way. */
  async close(): Promise<void> {
    await this.clients.destroy()
  }
}
