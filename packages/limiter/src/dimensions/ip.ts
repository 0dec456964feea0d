import type { Call } from '../call.ts'
import { canonicalAddress } from '../http/address-bits.ts'
import type { Dimension } from './dimension.ts'

/** The caller's address: IPv4 in one spelling, IPv6 by /64 by default. */
export const ip: Dimension = byPrefix(64)

function byPrefix(ipv6Prefix: number): Dimension {
  const read = (call: Call): string | undefined =>
    call.ip === undefined ? undefined : canonicalAddress(call.ip, ipv6Prefix)
  return {
    name: 'ip',
    argument: 'none',
    field: 'ip',
    read,
    readerOf: () => read,
    set: settings => byPrefix(settings.ipv6Prefix),
  }
}
