import { Pool } from 'undici'
import type { RouteSettings } from '../settings/route-settings.ts'
import { Health } from './health.ts'

export type UpstreamOptions = Pick<RouteSettings, 'health'> & {
  readonly timeouts: Pick<RouteSettings['timeouts'], 'connectMs'>
}

const mostConnections = 256
const retiringMs = 10_000

/** One address of a service: its connections, and how it is doing. */
export class Upstream {
  readonly url: URL
  /** What stands in front of every path there; no slash at its end. */
  readonly basePath: string
  readonly pool: Pool
  readonly health: Health

  constructor(address: string, { health, timeouts }: UpstreamOptions) {
    this.url = new URL(address)
    this.basePath = this.url.pathname.replace(/\/$/, '')
    this.health = new Health(health)
    this.pool = new Pool(this.url.origin, {
      connections: mostConnections,
      pipelining: 1,
      connect: { timeout: timeouts.connectMs, rejectUnauthorized: true },
      // a service that closes idle connections after five seconds, as Node's do, says so; others are taken at their word
      keepAliveTimeout: 4000,
    })
  }

  /** No route leads here any more: calls under way finish, and one that is about to try again still may. */
  retire(): void {
    setTimeout(() => void this.pool.close(), retiringMs).unref()
  }

  /** Ends what is still under way. */
  async close(): Promise<void> {
    await this.pool.destroy()
  }
}
