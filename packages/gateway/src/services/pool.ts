import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { conditionsKey } from '../settings/routes/match-settings.ts'
import type { RouteSettings } from '../settings/routes/route-settings.ts'
import { parseUnixAddress } from '../settings/upstreams/address-settings.ts'
import type { Affinity } from './balancing/affinity.ts'
import { balancers, type Choice } from './balancing/index.ts'
import { hashOf, rendezvous } from './balancing/rendezvous.ts'
import { tagOf } from './balancing/sticky-cookie.ts'
import type { Endpoint } from './endpoints.ts'
import type { AddressReport, RouteReport, RouteTrouble } from './reports.ts'
import type { Upstream, UpstreamPlace } from './upstream.ts'
import type { Upstreams } from './upstreams.ts'

/** One address of a route. */
class Member implements Choice {
  readonly upstream: Upstream
  readonly weight: number
  readonly hash: number
  /** The tag of the route in its callers' cookies. */
  readonly tag: string
  share: number
  credit = 0

  constructor(upstream: Upstream, weight: number) {
    this.upstream = upstream
    this.weight = weight
    this.hash = hashOf(upstream.name)
    this.tag = tagOf(upstream.name)
    this.share = weight
  }

  get underWay(): number {
    return this.upstream.underWay
  }
}

/** The addresses of one route as they are at this moment, and which of them is next. */
export class Pool {
  /** Identifies its route, also after a reload. */
  readonly id: string
  readonly #settings: RouteSettings
  readonly #upstreams: Upstreams
  readonly #unfollow: (() => void)[] = []
  #members: readonly Member[] = []

  constructor(settings: RouteSettings, upstreams: Upstreams) {
    this.id = routeIdOf(settings)
    this.#settings = settings
    this.#upstreams = upstreams
    // before the route is in use: a file that cannot be used keeps the whole document out
    upstreams.readTls(settings.tls)
  }

  get upstreams(): Upstream[] {
    return this.#members.map(({ upstream }) => upstream)
  }

  /** Finds the addresses and follows names; those that were not known are new at `since`. */
  start(since?: number): void {
    const { names } = this.#upstreams
    this.#build(since)
    for (const name of new Set(this.#settings.to.map(nameIn))) {
      if (name === undefined) continue
      let wasKnown = names.endpointsOf(name).length > 0
      this.#unfollow.push(
        names.follow(name, () => {
          this.#build(wasKnown ? performance.now() : since)
          wasKnown = true
          this.#upstreams.sweep()
        }),
      )
    }
  }

  stop(): void {
    for (const unfollow of this.#unfollow.splice(0)) unfollow()
  }

  /**
   * Returns the address for a call, or undefined if all have been tried. Resting ones are asked if there are no others, since
   * asking is better than refusing, and full ones only if all are.
   */
  next(now: number, affinity?: Affinity, tried: readonly Upstream[] = []): Upstream | undefined {
    const members = this.#members
    if (members.length === 1 && tried.length === 0) return members[0]!.upstream
    const healthy: Member[] = []
    const rest: Member[] = []
    for (const member of members) {
      if (tried.includes(member.upstream)) continue
      const isHealthy = !member.upstream.health.isResting(now)
      // a caller stays where it was, even while an address takes no others
      if (isHealthy && affinity?.tag === member.tag) return member.upstream
      if (member.weight === 0) continue
      const ageMs = now - member.upstream.health.healthySince
      member.share = rampedShare(member.weight, ageMs, this.#settings.slowStartMs)
      if (isHealthy) healthy.push(member)
      else rest.push(member)
    }
    const choices = healthy.length > 0 ? healthy : rest
    if (choices.length === 0) return undefined
    if (affinity?.key !== undefined) return rendezvous(choices, affinity.key).upstream
    const free = choices.filter(({ upstream }) => upstream.slots.hasRoom)
    return balancers[this.#settings.balance](free.length > 0 ? free : choices).upstream
  }

  /** Returns what the cookie of a caller says who is to stay with an address. */
  tagOf(upstream: Upstream): string | undefined {
    return this.#members.find(member => member.upstream === upstream)?.tag
  }

  /** Reports how the addresses are doing. */
  report(now: number): RouteReport {
    const { host, path, method, header, to } = this.#settings
    const names = [...new Set(to.map(nameIn))].filter(name => name !== undefined)
    const troubles = names.flatMap(name => {
      const trouble = this.#upstreams.names.classifyError(name)
      return trouble === undefined ? [] : [`${name}: ${trouble}`]
    })
    return {
      ...{ id: this.id, host, path, method, headers: Object.keys(header) },
      ...{ addresses: this.#addresses(now), troubles },
    }
  }

  /** Returns how many of its addresses get no calls at this moment; undefined if all do. */
  trouble(now: number): RouteTrouble | undefined {
    let unhealthy = 0
    for (const { upstream } of this.#members) if (upstream.health.isResting(now)) unhealthy++
    if (unhealthy === 0) return undefined
    const { host, path } = this.#settings
    const more = host.length > 1 ? '…' : ''
    return { id: this.id, route: `${host[0] ?? ''}${more}${path}`, unhealthy, of: this.#members.length }
  }

  #addresses(now: number): AddressReport[] {
    return this.#members.map(({ upstream, weight }) => {
      const { slots, health } = upstream
      const share = rampedShare(weight, now - health.healthySince, this.#settings.slowStartMs)
      return {
        address: upstream.name,
        ...health.state(now),
        weight,
        share,
        underWay: slots.inUse,
        waiting: slots.waiting,
        connections: upstream.clients.size,
      }
    })
  }

  #build(since: number | undefined): void {
    const before = new Map(this.#members.map(member => [member.upstream, member]))
    const members = new Map<Upstream, Member>()
    for (const [at, address] of this.#settings.to.entries()) {
      for (const place of this.#placesOf(address)) {
        const upstream = this.#upstreams.find(place, this.#settings, since)
        const weight = this.#settings.weights[at]! + (members.get(upstream)?.weight ?? 0)
        const known = before.get(upstream)
        members.set(upstream, known?.weight === weight ? known : new Member(upstream, weight))
      }
    }
    this.#members = [...members.values()]
  }

  #placesOf(address: string): UpstreamPlace[] {
    const name = nameIn(address)
    const endpoints: readonly Endpoint[] = name === undefined ? [] : this.#upstreams.names.endpointsOf(name)
    return endpoints.length === 0 ? [{ address }] : endpoints.map(endpoint => ({ address, endpoint }))
  }
}

/** Returns the host name in an address that must be looked up. */
function nameIn(address: string): string | undefined {
  if (parseUnixAddress(address)) return undefined
  const { hostname } = new URL(address)
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : undefined
}

/** Identifies a route, also after a reload. It is a digest, since the values of headers that a route asks for may be secrets. */
function routeIdOf(settings: RouteSettings): string {
  const text = JSON.stringify([settings.host, settings.path, conditionsKey(settings)])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}

/** The part of its weight that an address gets at first. */
const firstPart = 0.1

/** Returns the share of an address that came back, or was added, `ageMs` ago: it grows evenly until it is the whole weight. */
export function rampedShare(weight: number, ageMs: number, slowStartMs: number): number {
  return ageMs >= slowStartMs ? weight : weight * Math.max(firstPart, ageMs / slowStartMs)
}
