import type { Limiter } from 'diana-limiter'
import type { HealthState } from './health/health.ts'

/** How one address of a route is doing. */
export interface AddressReport extends HealthState {
  readonly address: string
  readonly weight: number
  /** Its weight at this moment, while it starts slowly. */
  readonly share: number
  /** Calls that it serves, and calls that wait for a connection to it. */
  readonly underWay: number
  readonly waiting: number
}

/** How the addresses of one route are doing. */
export interface RouteReport {
  readonly host: readonly string[]
  readonly path: string
  readonly addresses: readonly AddressReport[]
  /** Names whose last lookup failed, with the reason. */
  readonly troubles: readonly string[]
}

type Reporter = () => readonly RouteReport[]

const reporters = new WeakMap<Limiter, Reporter>()

/** Lets the admin API find the gateway that a limiter works for. */
export function reportUpstreams(limiter: Limiter, reporter: Reporter): void {
  reporters.set(limiter, reporter)
}

/** How the addresses of all routes are doing; none if the limiter works for no gateway. */
export function readUpstreams(limiter: Limiter): readonly RouteReport[] {
  return reporters.get(limiter)?.() ?? []
}

const byGravity: readonly HealthState['state'][] = ['healthy', 'resting', 'unhealthy']

/** The reports of several workers as one: their calls together, and of each address the worst that a worker knows. */
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
  return one?.path === other.path && one.host.join() === other.host.join()
}

function mergeAddress(one: AddressReport, other: AddressReport): AddressReport {
  const worse = byGravity.indexOf(other.state) > byGravity.indexOf(one.state) ? other : one
  return {
    ...worse,
    share: Math.min(one.share, other.share),
    underWay: one.underWay + other.underWay,
    waiting: one.waiting + other.waiting,
  }
}
