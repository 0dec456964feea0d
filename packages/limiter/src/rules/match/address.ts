import ipaddr from 'ipaddr.js'
import { show } from '../show.ts'

/** What is wrong with an address or a network of a trusted proxy. */
export function networkFault(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  const ip = rest.length === 0 ? parseAddress(address) : undefined
  if (ip === undefined) return `${show(text)} is not an address or a network: write 10.0.0.1, 10.0.0.0/8 or fd00::/8`
  const bits = ip.kind() === 'ipv4' ? 32 : 128
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) {
    return `${show(text)} must end in a prefix from /0 to /${bits}: write ${ip.toString()}/${bits} for one address`
  }
  if (!(ip instanceof ipaddr.IPv6 && ip.isIPv4MappedAddress())) return undefined
  // read as 8 bits of 128, ::ffff:10.0.0.0/8 would trust every IPv4 address there is
  const plain = ip.toIPv4Address().toString()
  const length = Number(prefix) >= 96 ? Number(prefix) - 96 : Number(prefix)
  return `${show(text)} is an IPv4 network written as IPv6: write ${length <= 32 ? `${plain}/${length}` : plain}`
}

function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // ipaddr.js also reads 10, 0x0a.1 and zones such as %eth0, which no proxy's address looks like
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return ipaddr.IPv6.isValid(text) && !text.includes('%') ? ipaddr.IPv6.parse(text) : undefined
}
