import type { IncomingHttpHeaders } from 'node:http'
import { StepRing } from 'diana-limiter/gateway'
import type { CallReply, CallRequest, Trust } from '../../http/call.ts'
import { pathOf } from '../../http/normalize-request.ts'
import type { AnswerSettings, RedirectSettings } from '../../settings/routes/answer-settings.ts'
import type { RouteConditions } from '../../settings/routes/match-settings.ts'
import type { RouteSettings } from '../../settings/routes/route-settings.ts'
import type { RetryBudgetSettings } from '../../settings/upstreams/upstream-settings.ts'
import { type Affinity, affinityOf, cookieFor } from '../balancing/affinity.ts'
import { Compressible } from '../compression/compressible.ts'
import { Pool } from '../pool.ts'
import { Throttle } from '../throttle.ts'
import type { Upstream } from '../upstream.ts'
import type { Upstreams } from '../upstreams.ts'

/** The progress of a call so far. */
export interface Trying {
  readonly tried: readonly Upstream[]
  /** True if nothing of the call was sent at the last of them. */
  readonly isUnsent: boolean
  /** True if the last of them may be asked again if there is no other. */
  readonly mayStay: boolean
  readonly affinity?: Affinity | undefined
}

const mostTries = 8
const maxLabel = 128

/** Calls that go to one service, at one of its addresses. */
export class Route {
  readonly settings: RouteSettings
  /** The name of this route in logs and metrics. */
  readonly label: string
  /** Identifies it, also after a reload. */
  readonly id: string
  /** The addresses of the service. */
  readonly pool: Pool
  /** True if headers are changed on the way, which few routes do. */
  readonly changesRequest: boolean
  readonly changesResponse: boolean
  /** The answers that are compressed; none unless the settings say so. */
  readonly compressible: Compressible | undefined
  /** True if the service gets the Host that the caller asked for. */
  readonly keepsHost: boolean
  /** The conditions that a call must meet besides its host and path. */
  readonly conditions: Conditions
  /** The gateway's own answer, in place of a service's. */
  readonly ownAnswer: OwnAnswer | undefined
  /** The number of segments of the path that `rewrite` takes the place of. */
  readonly #depth: number
  /** Refuses calls to a service in trouble; undefined unless the settings ask for it. */
  readonly throttle: Throttle | undefined
  readonly #budget: RetryBudget

  constructor(settings: RouteSettings, upstreams: Upstreams) {
    const { to, path, keepHost, requestHeaders, responseHeaders } = settings
    this.#depth = path === '/' ? 0 : path.split('/').length - 1
    this.settings = settings
    this.conditions = new Conditions(settings)
    this.ownAnswer = this.#ownAnswerOf(settings)
    this.label = `${settings.host.join()}${path}`.slice(0, maxLabel)
    this.pool = new Pool(settings, upstreams)
    this.id = this.pool.id
    this.#budget = new RetryBudget(settings.retryBudget)
    this.throttle = settings.throttle && new Throttle(settings.throttle)
    // a service behind https is likely to be another owner's, and known by its own name only
    this.keepsHost = keepHost ?? to.every(address => !/^https:/i.test(address))
    this.changesRequest = requestHeaders.remove.length > 0 || Object.keys(requestHeaders.set).length > 0
    this.compressible = settings.compression ? new Compressible(settings.compression) : undefined
    this.changesResponse = responseHeaders.remove.length > 0 || Object.keys(responseHeaders.set).length > 0
  }

  /** Returns the address for a new call; `affinity` is what binds its caller to one. */
  first(now: number, affinity?: Affinity): Upstream {
    this.#budget.count(now)
    return this.pool.next(now, affinity)!
  }

  /**
   * Returns where a call is tried again that failed at all of `tried`. Nothing was sent of an unsent call, so that it costs no
   * service anything twice: it may go to every healthy address. All other second tries are bounded by the budget.
   */
  again(now: number, { tried, isUnsent, mayStay, affinity }: Trying): Upstream | undefined {
    if (!this.settings.retry || tried.length >= mostTries) return undefined
    const next = this.pool.next(now, affinity, tried) ?? (mayStay ? tried.at(-1) : undefined)
    if (next === undefined) return undefined
    // a service that gets fewer calls gets no second tries
    if (!isUnsent && this.throttle !== undefined && this.throttle.chance(now) > 0) return undefined
    return (isUnsent && !next.health.isResting(now)) || this.#budget.take(now) ? next : undefined
  }

  /** Returns a healthy address with room, for a call that has waited in vain for another. */
  elsewhere(now: number, full: Upstream): Upstream | undefined {
    const other = this.pool.next(now, undefined, [full])
    return other?.slots.hasRoom && !other.health.isResting(now) ? other : undefined
  }

  /** Returns what binds a call to one of the addresses. */
  affinityOf({ headers, raw: { socket } }: CallRequest, trust: Trust): Affinity | undefined {
    const { sticky } = this.settings
    if (sticky === undefined) return undefined
    const address = (): string | undefined => trust.addressOf(socket.remoteAddress, headers[trust.forwardedBy])
    return affinityOf(sticky, { headers, address })
  }

  /** Returns the cookie that binds the caller of a call to the address that has answered it, if one is due. */
  cookieFor(affinity: Affinity, upstream: Upstream, { raw: { socket } }: CallRequest): string | undefined {
    const { sticky, path } = this.settings
    return (
      sticky && cookieFor(sticky, affinity, { tag: this.pool.tagOf(upstream), path, isSecure: 'encrypted' in socket })
    )
  }

  #ownAnswerOf({ answer, redirect }: RouteSettings): OwnAnswer | undefined {
    if (answer) return staticAnswer(answer)
    return redirect && redirectAnswer(redirect, target => target.slice(endOfSegments(target, this.#depth)))
  }

  /** Returns where a call to `target` goes at an address; `target` begins with the path of this route, perhaps with parameters. */
  targetAt(upstream: Upstream, target: string): string {
    const { rewrite } = this.settings
    if (rewrite === undefined) return upstream.basePath + target
    const rest = target.slice(endOfSegments(target, this.#depth))
    const begin = rewrite === '/' ? '' : rewrite
    const joined = upstream.basePath + begin + rest
    return joined.startsWith('/') ? joined : `/${joined}`
  }
}

/** Returns where the first segments of a target end: a segment of a call may be longer than the route's, as `/v1;x` is. */
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

/** The parts of a call that conditions are compared with. */
export interface ConditionedCall {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

/** The method and the headers that a route asks for. */
export class Conditions {
  /** The number of conditions: of routes with the same host and path, the one with the most comes first. */
  readonly count: number
  readonly #methods: readonly string[]
  readonly #headers: readonly [name: string, values: readonly string[]][]

  constructor({ method, header }: RouteConditions) {
    this.#methods = method
    this.#headers = Object.entries(header)
    this.count = this.#headers.length + (method.length > 0 ? 1 : 0)
  }

  areMetBy({ method, headers }: ConditionedCall): boolean {
    if (this.count === 0) return true
    if (this.#methods.length > 0 && !this.#methods.includes(method)) {
      if (method !== 'HEAD' || !this.#methods.includes('GET')) return false
    }
    return this.#headers.every(([name, values]) => hasValue(headers[name], values))
  }
}

/** True if a header has a value. One that comes several times is joined by commas, so each item is a value, too, as it is for rules. */
function hasValue(received: string | readonly string[] | undefined, wanted: readonly string[]): boolean {
  if (received === undefined) return false
  const lines = typeof received === 'string' ? [received] : received
  return lines.some(line => wanted.some(pattern => fits(line, pattern) || lineHas(line, pattern)))
}

function lineHas(line: string, pattern: string): boolean {
  return line.includes(',') && line.split(',').some(item => fits(item.trim(), pattern))
}

function fits(value: string, pattern: string): boolean {
  return pattern.endsWith('*') ? value.startsWith(pattern.slice(0, -1)) : value === pattern
}

/** Answers a call to `target` without a service. */
export type OwnAnswer = (target: string, reply: CallReply) => void

export function staticAnswer({ status, body, headers }: AnswerSettings): OwnAnswer {
  const bytes = Buffer.from(body)
  const type = bytes.length > 0 ? { 'content-type': 'text/plain; charset=utf-8' } : {}
  return (_target, reply) => {
    reply
      .code(status)
      .headers({ ...type, ...headers })
      .send(bytes.length > 0 ? bytes : undefined)
  }
}

/** Makes the answer of a redirect; `restOf` takes the path of the route off a target. */
export function redirectAnswer(settings: RedirectSettings, restOf: (target: string) => string): OwnAnswer {
  return (target, reply) => {
    reply
      .code(settings.status)
      .header('location', locationOf(settings, target, restOf(pathOf(target))))
      .send()
  }
}

function locationOf({ to, keepPath, keepQuery }: RedirectSettings, target: string, rest: string): string {
  const query = keepQuery ? target.slice(pathOf(target).length) : ''
  // with two slashes in front, a path would be another host
  const added = keepPath ? rest.replace(/^\/+/, '/') : ''
  if (added === '' || added === '/') return to + query
  return (to.endsWith('/') ? to.slice(0, -1) : to) + added + query
}

const seconds = 10

/** Bounds second tries by the calls of the last ten seconds, so that the calls of an outage are not sent twice. */
export class RetryBudget {
  readonly #settings: RetryBudgetSettings
  readonly #calls = new StepRing(new Float64Array(seconds))
  readonly #tries = new StepRing(new Float64Array(seconds))
  #second = 0

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings
  }

  /** Counts a call that has come. */
  count(now: number): void {
    this.#calls.add(this.#secondOf(now), 1)
  }

  /** True if a call may be tried again now; counts the try if so. */
  take(now: number): boolean {
    const second = this.#secondOf(now)
    const { percent, perSecond } = this.#settings
    const most = (this.#calls.sum(second, seconds) * percent) / 100 + perSecond * seconds
    if (this.#tries.sum(second, seconds) + 1 > most) return false
    this.#tries.add(second, 1)
    return true
  }

  /** Returns the second of a moment; one that is passed does not come again if the clock is set back. */
  #secondOf(now: number): number {
    this.#second = Math.max(this.#second, Math.floor(now / 1000))
    return this.#second
  }
}
