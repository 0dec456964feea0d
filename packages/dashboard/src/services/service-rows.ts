import type { AddressState, ServiceAddress, ServiceFigures, ServiceRoute } from '../api/generated.ts'

/** A line of the table of services: one address, or all addresses of a route together. */
export interface ServiceRow {
  readonly id: string
  readonly route: ServiceRoute
  /** Undefined for all addresses together. */
  readonly address?: ServiceAddress | undefined
  readonly figures?: ServiceFigures | undefined
}

const gravity: Readonly<Record<AddressState, number>> = { unhealthy: 3, resting: 2, healthy: 1, draining: 0 }

/**
 * Returns the addresses, those in trouble first: by state, then by the share of errors, then by latency. The addresses of a route stay
 * together, below a line for the route if it has several; routes without an address answer calls themselves, and are left out.
 */
export function serviceRows(routes: readonly ServiceRoute[]): ServiceRow[] {
  const groups = routes.map(route => {
    const { id, addresses, figures } = route
    const rows: ServiceRow[] = addresses
      .map(address => ({ id: `${id} ${address.address}`, route, address, figures: address.figures }))
      .sort(byTrouble)
    return { rows, whole: { id, route, figures } }
  })
  return groups
    .filter(({ rows }) => rows.length > 0)
    .sort((one, other) => byTrouble(one.rows[0]!, other.rows[0]!))
    .flatMap(({ rows, whole }) => (rows.length > 1 ? [whole, ...rows] : rows))
}

/** Returns the share of failed calls; undefined if there was none in the last minute. */
export function errorShare(figures: ServiceFigures | undefined): number | undefined {
  return figures === undefined || figures.calls === 0 ? undefined : figures.errors / figures.calls
}

/** Names a route by its conditions: GET api.example.com/orders. */
export function routeName({ host, path, method }: ServiceRoute): string {
  return `${method.length > 0 ? `${method.join(', ')} ` : ''}${host.join(', ')}${path}`
}

function byTrouble(one: ServiceRow, other: ServiceRow): number {
  const [first, second] = [weightsOf(one), weightsOf(other)]
  const at = first.findIndex((weight, index) => weight !== second[index])
  if (at >= 0) return second[at]! - first[at]!
  return one.id < other.id ? -1 : 1
}

function weightsOf({ address, figures }: ServiceRow): number[] {
  const latency = figures?.latency
  const late = latency === undefined ? 0 : (latency.p95Ms ?? Number.MAX_VALUE)
  return [gravity[address?.state ?? 'healthy'], errorShare(figures) ?? 0, late]
}
