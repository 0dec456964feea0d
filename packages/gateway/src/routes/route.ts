import type { RouteSettings } from '../settings/route-settings.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import type { Upstreams } from '../upstreams/upstreams.ts'
import { pathOf } from './called-path.ts'
import { Conditions } from './conditions.ts'
import { type OwnAnswer, redirectAnswer, staticAnswer } from './own-answer.ts'

/** Calls that go to one service, at one of its addresses in turn. */
export class Route {
  readonly settings: RouteSettings
  readonly upstreams: readonly Upstream[]
  /** Whether headers are changed on the way, which few routes do. */
  readonly changesRequest: boolean
  readonly changesResponse: boolean
  /** Whether the service is told the Host that the caller asked for. */
  readonly keepsHost: boolean
  /** What a call must have besides its host and path. */
  readonly conditions: Conditions
  /** How the gateway answers itself, in place of a service. */
  readonly ownAnswer: OwnAnswer | undefined
  /** How many segments the path has that `rewrite` takes the place of. */
  readonly #depth: number
  #turn = -1

  constructor(settings: RouteSettings, upstreams: Upstreams) {
    const { to, path, keepHost, requestHeaders, responseHeaders } = settings
    this.#depth = path === '/' ? 0 : path.split('/').length - 1
    this.settings = settings
    this.conditions = new Conditions(settings)
    this.ownAnswer = this.#ownAnswerOf(settings)
    this.upstreams = to.map(address => upstreams.find(address, settings))
    // a service behind https is likely to be somebody else's, and known by its own name only
    this.keepsHost = keepHost ?? to.every(address => new URL(address).protocol === 'http:')
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

  #ownAnswerOf({ answer, redirect }: RouteSettings): OwnAnswer | undefined {
    if (answer) return staticAnswer(answer)
    return redirect && redirectAnswer(redirect, target => target.slice(endOfSegments(target, this.#depth)))
  }

  /** Where a call to `target` goes at an address; `target` begins with the path of this route, perhaps with parameters. */
  targetAt(upstream: Upstream, target: string): string {
    const { rewrite } = this.settings
    if (rewrite === undefined) return upstream.basePath + target
    const rest = target.slice(endOfSegments(target, this.#depth))
    const begin = rewrite === '/' ? '' : rewrite
    const joined = upstream.basePath + begin + rest
    return joined.startsWith('/') ? joined : `/${joined}`
  }
}

/** Where the first segments of a target end: a segment of a call may be longer than the route's, as `/v1;x` is. */
function endOfSegments(target: string, count: number): number {
  const pathEnd = pathOf(target).length
  let end = 0
  for (let passed = 0; passed < count; passed++) {
    const next = target.indexOf('/', end + 1)
    if (next < 0 || next > pathEnd) return pathEnd
    end = next
  }
  return end
}
