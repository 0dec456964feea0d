import { isIP } from 'node:net'
import type { RouteSettings } from '../settings/route-settings.ts'
import { Clients } from './clients.ts'
import { Health } from './health.ts'
import { Slots } from './slots.ts'

export type UpstreamOptions = Pick<RouteSettings, 'health' | 'connections' | 'maxHeadBytes'> & {
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
  readonly clients: Clients
  readonly slots: Slots
  readonly health: Health

  constructor(address: string, { health, timeouts, connections, maxHeadBytes }: UpstreamOptions) {
    this.url = new URL(address)
    this.basePath = this.url.pathname.replace(/\/$/, '')
    this.serverName = isIP(this.url.hostname.replace(/^\[|\]$/g, '')) === 0 ? this.url.hostname : undefined
    this.health = new Health(health)
    this.clients = new Clients(this.url.origin, { connectMs: timeouts.connectMs, maxHeadBytes })
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
