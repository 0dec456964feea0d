import type { SectionFollower } from 'diana-limiter/gateway'
import { assertChangeable } from '../settings/fixed-settings.ts'
import { type GatewaySettings, parseGatewaySettings } from '../settings/gateway-settings.ts'
import type { RouteSettings } from '../settings/routes/route-settings.ts'
import { settingsIn } from '../settings/settings-of.ts'
import { RouteTable } from './routes/route-table.ts'
import { Upstreams, type UpstreamsParts } from './upstreams.ts'

/** The settings and routes in force. They change together, by one assignment each, and calls under way keep theirs. */
export class LiveSettings {
  readonly upstreams: Upstreams
  readonly #fallback: string | undefined
  readonly #onChange: (settings: GatewaySettings) => void
  #settings: GatewaySettings | undefined
  #routes: RouteTable | undefined

  /** Calls that no route takes go to `fallback`, if it is given. */
  constructor(fallback: string | undefined, onChange: (settings: GatewaySettings) => void, parts: UpstreamsParts) {
    this.upstreams = new Upstreams(parts)
    this.#fallback = fallback
    this.#onChange = onChange
  }

  get settings(): GatewaySettings {
    return this.#settings!
  }

  get routes(): RouteTable {
    return this.#routes!
  }

  readonly follow: SectionFollower = value => {
    const settings = this.#complete(settingsIn(value))
    if (this.#settings) assertChangeable(this.#settings, settings)
    const routes = new RouteTable(settings.routes, this.upstreams)
    return () => {
      this.#settings = settings
      this.#routes = routes
      this.upstreams.names.intervalMs = settings.dns.intervalMs
      this.upstreams.use(
        routes.routes.map(({ pool }) => pool),
        performance.now(),
      )
      this.#onChange(settings)
    }
  }

  #complete(settings: GatewaySettings): GatewaySettings {
    if (this.#fallback === undefined) return settings
    if (settings.routes.some(takesEveryCall)) return settings
    const { routes } = parseGatewaySettings({ routes: [{ to: this.#fallback }] })
    return { ...settings, routes: [...settings.routes, ...routes] }
  }
}

function takesEveryCall({ host, path, method, header }: RouteSettings): boolean {
  return host.length === 0 && path === '/' && method.length === 0 && Object.keys(header).length === 0
}
