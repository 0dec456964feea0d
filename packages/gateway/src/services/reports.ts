import type { AddressTrafficStats, HealthState } from './address-state.ts'

/** The state of one address of a route; one that the route has no more is draining until its last call has ended. */
export interface AddressReport extends Omit<HealthState, 'state'> {
  readonly state: HealthState['state'] | 'draining'
  readonly address: string
  readonly weight: number
  /** Its weight at this moment, while it starts slowly. */
  readonly share: number
  /** Calls that it serves, and calls that wait for a connection to it. */
  readonly underWay: number
  readonly waiting: number
  /** Connections to it that are open; routes with the same settings share them. */
  readonly connections: number
}

/** The states of the addresses of one route. */
export interface RouteReport {
  /** Identifies the route, also after a reload. */
  readonly id: string
  readonly host: readonly string[]
  readonly path: string
  /** The methods that it takes; none is every method. */
  readonly method: readonly string[]
  /** The names of headers that it asks for; their values may be secrets. */
  readonly headers: readonly string[]
  readonly addresses: readonly AddressReport[]
  /** Names whose last lookup failed, with the reason. */
  readonly troubles: readonly string[]
}

/** A route with addresses that get no calls. */
export interface RouteTrouble {
  readonly id: string
  /** Its host and path. */
  readonly route: string
  readonly unhealthy: number
  readonly of: number
}

/** The outcomes of the calls of one route at one address, since the start of a process. */
export interface TrafficSample extends AddressTrafficStats {
  readonly route: string
  readonly address: string
}

// an address that drains may be in use again, with other settings
const byGravity: readonly AddressReport['state'][] = ['draining', 'healthy', 'resting', 'unhealthy']

/** Returns the reports of several workers as one: their calls together, and of each address the worst that a worker knows. */
export function mergeReports(reports: readonly (readonly RouteReport[])[]): RouteReport[] {
  const [first = [], ...others] = reports
  return first.map((route, at) => {
    // a worker that has not taken the newest rules yet may have other routes
    const same = others.map(other => other[at]).filter(one => isSameRoute(one, route))
    const addresses = [route, ...same].flatMap(one => one.addresses)
    const known = new Map<string, AddressReport>()
    for (const one of addresses) {
      const before = known.get(one.address)
      known.set(one.address, before === undefined ? one : mergeAddress(before, one))
    }
    const troubles = [...new Set([route, ...same].flatMap(one => one.troubles))]
    return { ...route, addresses: [...known.values()], troubles }
  })
}

function isSameRoute(one: RouteReport | undefined, other: RouteReport): one is RouteReport {
  return one?.id === other.id
}

function mergeAddress(one: AddressReport, other: AddressReport): AddressReport {
  const worse = byGravity.indexOf(other.state) > byGravity.indexOf(one.state) ? other : one
  return {
    ...worse,
    share: one.state === 'draining' || other.state === 'draining' ? worse.share : Math.min(one.share, other.share),
    underWay: one.underWay + other.underWay,
    waiting: one.waiting + other.waiting,
    connections: one.connections + other.connections,
  }
}

/** Returns the troubles that several workers know, each route once with the most addresses that one of them finds unhealthy. */
export function mergeTroubles(troubles: readonly RouteTrouble[]): RouteTrouble[] {
  const worst = new Map<string, RouteTrouble>()
  for (const one of troubles) {
    if (one.unhealthy > (worst.get(one.id)?.unhealthy ?? 0)) worst.set(one.id, one)
  }
  return [...worst.values()]
}
