import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'

/** The place where one address of a name is reached: one IP address, or one of each family if these are all that the name has. */
export type Endpoint = readonly LookupAddress[]

const mostEndpoints = 256

/**
 * Returns the machines behind a name. A name with at most one address of each family is one machine, and both addresses are tried;
 * otherwise each IPv4 address is a machine, or each IPv6 address if there is no other.
 */
export function endpointsOf(answer: readonly LookupAddress[]): Endpoint[] {
  const known = new Map(answer.map(({ address, family }) => [address, { address, family }]))
  // in an order of their own, so that the same of too many are taken each time
  const sorted = [...known.values()].sort((a, b) => (a.address < b.address ? -1 : 1))
  const [v4, v6] = [sorted.filter(({ family }) => family === 4), sorted.filter(({ family }) => family === 6)]
  if (v4.length <= 1 && v6.length <= 1) return sorted.length === 0 ? [] : [[...v4, ...v6]]
  return (v4.length > 0 ? v4 : v6).slice(0, mostEndpoints).map(one => [one])
}

/** Returns a text that distinguishes an endpoint from all others. */
export function endpointName(endpoint: Endpoint): string {
  return endpoint.map(({ address }) => address).join(' ')
}

/** Answers for every name with these addresses. */
export function lookupFor(endpoint: Endpoint): LookupFunction {
  return (_name, { all }, callback) => {
    if (all) callback(null, [...endpoint])
    else callback(null, endpoint[0]!.address, endpoint[0]!.family)
  }
}
