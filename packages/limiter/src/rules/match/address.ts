import { isIP } from 'node:net'
import { type AddressBits, isIPv4, parseAddressBits, writeAddressBits } from '../../http/address-bits.ts'
import { show } from '../show.ts'

const scratch: AddressBits = new Uint16Array(8)

/** Returns what is wrong with an address or a network of a trusted proxy. */
export function networkFault(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  // a zone such as %eth0 is not part of a proxy's address
  const family = address.includes('%') ? 0 : isIP(address)
  if (rest.length > 0 || family === 0 || !parseAddressBits(address, scratch)) {
    return `${show(text)} is not an address or a network: write 10.0.0.1, 10.0.0.0/8 or fd00::/8`
  }
  // ::10.0.0.1 is meant as IPv4, an obsolete form of it, and would be compared as IPv6
  const [, dotted] = /^::((?:\d+\.){3}\d+)$/.exec(address) ?? []
  const spelled = dotted ?? writeAddressBits(scratch)
  const isFour = dotted !== undefined || isIPv4(scratch)
  const bits = family === 4 ? 32 : 128
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) {
    return `${show(text)} must end in a prefix from /0 to /${bits}: write ${spelled}/${isFour ? 32 : 128} for one address`
  }
  if (family === 4 || !isFour) return undefined
  // read as 8 bits of 128, ::ffff:10.0.0.0/8 would trust every IPv4 address there is
  const length = Number(prefix) >= 96 ? Number(prefix) - 96 : Number(prefix)
  return `${show(text)} is an IPv4 network written as IPv6: write ${length <= 32 ? `${spelled}/${length}` : spelled}`
}
