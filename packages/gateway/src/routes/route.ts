import type { RouteSettings } from '../settings/route-settings.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import type { Upstreams } from '../upstreams/upstreams.ts'

/** Calls that go to one service, at one of its addresses in turn. */
export class Route {
  readonly settings: RouteSettings
  readonly upstreams: readonly Upstream[]
  /** Whether headers are changed on the way, which few routes do. */
  readonly changesRequest: boolean
  readonly changesResponse: boolean
  #turn = -1

  constructor(settings: RouteSettings, upstreams: Upstreams) {
    const { to, requestHeaders, responseHeaders } = settings
    this.settings = settings
    this.upstreams = to.map(address => upstreams.find(address, settings))
    this.changesRequest = requestHeaders.remove.length > 0 || Object.keys(requestHeaders.set).length > 0
    this.changesResponse = responseHeaders.remove.length > 0 || Object.keys(responseHeaders.set).length > 0
  }

  /** The next address that is not resting; if all are, the next one, since asking is better than refusing. */
  next(now: number, except?: Upstream): Upstream {
    const { length } = this.upstreams
    let resting: Upstream | undefined
    for (let step = 0; step < length; step++) {
      this.#turn = this.#turn + 1 >= length ? 0 : this.#turn + 1
      const upstream = this.upstreams[this.#turn]!
      if (upstream === except) continue
      if (!upstream.health.isResting(now)) return upstream
      resting ??= upstream
    }
    return resting ?? except!
  }

  /** Where a call to `target` goes at an address; `target` begins with the path of this route. */
  targetAt(upstream: Upstream, target: string): string {
    const { path, rewrite } = this.settings
    if (rewrite === undefined) return upstream.basePath + target
    const rest = path === '/' ? target : target.slice(path.length)
    const begin = rewrite === '/' ? '' : rewrite
    const joined = upstream.basePath + begin + rest
    return joined.startsWith('/') ? joined : `/${joined}`
  }
}
