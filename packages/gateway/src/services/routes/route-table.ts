import type { SectionFollower } from 'diana-limiter/gateway'
import { canonicalHost, hostName } from 'diana-limiter/schema'
import { assertChangeable } from '../../settings/fixed-settings.ts'
import { type GatewaySettings, parseGatewaySettings } from '../../settings/gateway-settings.ts'
import { oneSpelling } from '../../settings/one-spelling.ts'
import type { RouteSettings } from '../../settings/routes/route-settings.ts'
import { settingsIn } from '../../settings/settings-of.ts'
import { Upstreams, type UpstreamsParts } from '../upstreams.ts'
import { type ConditionedCall, Route } from './route.ts'

/** The routes of one host, by their path. */
type Paths = Map<string, Route[]>

const everyHost = ''

/**
 * Finds the route of a call: the most exact host first, of its routes those with the longest path, and of these the one with
 * the most conditions, or the first of them in the file. A route whose conditions the call does not meet is passed over.
 */
export class RouteTable {
  readonly #hosts = new Map<string, Paths>()
  readonly #deepest: number
  readonly #namesHosts: boolean
  readonly routes: readonly Route[]

  constructor(settings: readonly RouteSettings[], upstreams: Upstreams) {
    this.routes = settings.map(one => new Route(one, upstreams))
    for (const route of this.routes) {
      const { host, path } = route.settings
      const names = host.length === 0 ? [everyHost] : host.map(canonicalHost)
      for (const name of names) this.#routesAt(this.#pathsOf(name), oneSpelling(path) ?? path).push(route)
    }
    for (const paths of this.#hosts.values()) for (const alike of paths.values()) alike.sort(byConditions)
    this.#deepest = Math.max(0, ...settings.map(({ path }) => (path === '/' ? 0 : path.split('/').length - 1)))
    this.#namesHosts = [...this.#hosts.keys()].some(name => name !== everyHost)
  }

  /** Finds the route of a call; `path` is the one that is counted. */
  find(path: string, call: ConditionedCall): Route | undefined {
    const { host } = call.headers
    const name = this.#namesHosts && host !== undefined ? hostName(host) : undefined
    return (
      (name === undefined ? undefined : this.#findByHost(name, path, call)) ?? this.#findByPath(everyHost, path, call)
    )
  }

  #findByHost(name: string, path: string, call: ConditionedCall): Route | undefined {
    const exact = this.#findByPath(name, path, call)
    if (exact) return exact
    for (let dot = name.indexOf('.', 1); dot > 0; dot = name.indexOf('.', dot + 1)) {
      const route = this.#findByPath(name.slice(dot), path, call)
      if (route) return route
    }
    return undefined
  }

  #findByPath(host: string, path: string, call: ConditionedCall): Route | undefined {
    const paths = this.#hosts.get(host)
    if (paths === undefined) return undefined
    let end = this.#beginningOf(path)
    while (end > 0) {
      const route = firstMetBy(call, paths.get(path.slice(0, end)))
      if (route) return route
      end = path.lastIndexOf('/', end - 1)
    }
    return firstMetBy(call, paths.get('/'))
  }

  /** Returns how much of a path any route could name: a caller's path may have thousands of segments, and no route's has. */
  #beginningOf(path: string): number {
    let end = 0
    for (let depth = 0; depth < this.#deepest; depth++) {
      const next = path.indexOf('/', end + 1)
      if (next < 0) return path.length
      end = next
    }
    return end
  }

  #routesAt(paths: Paths, path: string): Route[] {
    const known = paths.get(path)
    if (known) return known
    const routes: Route[] = []
    paths.set(path, routes)
    return routes
  }

  #pathsOf(host: string): Paths {
    const known = this.#hosts.get(host)
    if (known) return known
    const paths: Paths = new Map()
    this.#hosts.set(host, paths)
    return paths
  }
}

function firstMetBy(call: ConditionedCall, routes: readonly Route[] | undefined): Route | undefined {
  if (routes === undefined) return undefined
  for (const route of routes) if (route.conditions.areMetBy(call)) return route
  return undefined
}

function byConditions(one: Route, other: Route): number {
  return other.conditions.count - one.conditions.count
}

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
