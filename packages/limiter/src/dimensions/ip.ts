import { canonicalAddress } from '../address.ts'
import type { Dimension } from './dimension.ts'

/** The caller's address: IPv4 in one spelling, IPv6 by /64. */
export const ip: Dimension = {
  name: 'ip',
  argument: 'none',
  read: call => (call.ip === undefined ? undefined : canonicalAddress(call.ip)),
}
