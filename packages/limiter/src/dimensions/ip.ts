import { canonicalAddress } from '../http/ip-address.ts'
import type { Dimension } from './dimension.ts'

/** The caller's address: IPv4 in one spelling, IPv6 by /64 by default. */
export const ip: Dimension = byPrefix(64)

function byPrefix(ipv6Prefix: number): Dimension {
  return {
    name: 'ip',
    argument: 'none',
    field: 'ip',
    read: call => (call.ip === undefined ? undefined : canonicalAddress(call.ip, ipv6Prefix)),
    set: settings => byPrefix(settings.ipv6Prefix),
  }
}
