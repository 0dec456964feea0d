import { isDeepStrictEqual } from 'node:util'
import { DianaError, type SectionFollower } from 'diana-limiter'
import { RouteTable } from './routes/route-table.ts'
import { type GatewaySettings, parseGatewaySettings } from './settings/gateway-settings.ts'
import type { RouteSettings } from './settings/routes/route-settings.ts'
import { Upstreams, type UpstreamsParts } from './upstreams/upstreams.ts'

/** What a running gateway cannot change: its server and its chain of filters are built once. */
const atTheStart = {
  listen: ({ listen }) => listen,
  tls: ({ tls }) => tls,
  http2: ({ http2 }) => http2,
  admin: ({ admin }) => admin,
  filters: ({ filters }) => filters,
  accessLog: ({ accessLog }) => accessLog,
  tracing: ({ tracing }) => tracing,
  'limits.headers': ({ limits }) => limits.headersBytes,
} satisfies Record<string, (settings: GatewaySettings) => unknown>

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

/** For a process that takes no calls itself, but reads and writes the rule file: holds it to what workers can change. */
export function followFixedSettings(): SectionFollower {
  let inForce: GatewaySettings | undefined
  return value => {
    const settings = settingsIn(value)
    if (inForce) assertChangeable(inForce, settings)
    return () => {
      inForce = settings
    }
  }
}

function takesEveryCall({ host, path, method, header }: RouteSettings): boolean {
  return host.length === 0 && path === '/' && method.length === 0 && Object.keys(header).length === 0
}

function settingsIn(value: unknown): GatewaySettings {
  return (value as GatewaySettings | undefined) ?? parseGatewaySettings({})
}

function assertChangeable(before: GatewaySettings, after: GatewaySettings): void {
  for (const [word, read] of Object.entries(atTheStart)) {
    if (isDeepStrictEqual(read(before), read(after))) continue
    const remedy = 'leave it as it was, or start Diana anew'
    throw new DianaError('BAD_RULES', `gateway.${word} is read at the start only: ${remedy}`)
  }
}
