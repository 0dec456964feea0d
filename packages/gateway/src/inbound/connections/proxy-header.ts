import { isIPv4, isIPv6 } from 'node:net'

/**
 * The PROXY protocol (haproxy.org/download/3.0/doc/proxy-protocol.txt): a proxy that passes bytes on says in front of them
 * from where they came. Version 1 is a line of text, version 2 is binary:
 *
 *     PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n
 *
 *     0      12   13   14      16
 *     +------+----+----+-------+-----------+------+
 *     | sign | vc | fp | bytes | addresses | TLVs |
 *     +------+----+----+-------+-----------+------+
 */
export type ProxyHeader =
  /** More bytes are needed. */
  | 'incomplete'
  /** These bytes are no header. */
  | 'invalid'
  | {
      /** The offset of the bytes behind the header. */
      readonly length: number
      /** From where they came; undefined if the proxy speaks for itself, or does not know. */
      readonly source: Source | undefined
    }

export interface Source {
  readonly address: string
  readonly port: number
  readonly family: 'IPv4' | 'IPv6'
}

/** The longest line of version 1, as its authors count it. */
const longestLine = 107
/** Addresses take 36 bytes at most; the rest is for TLVs, which are skipped. */
const longestBinary = 4096

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const textBegin = Buffer.from('PROXY ', 'latin1')
const binaryHead = 16

/** Reads a header from the first bytes of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (beginsLike(bytes, signature)) return readBinary(bytes)
  return beginsLike(bytes, textBegin) ? readText(bytes) : 'invalid'
}

/** True if bytes begin with a mark, or are its beginning. */
function beginsLike(bytes: Buffer, mark: Buffer): boolean {
  const length = Math.min(bytes.length, mark.length)
  return bytes.compare(mark, 0, length, 0, length) === 0
}

function readText(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, longestLine).indexOf('\r\n')
  if (end < 0) return bytes.length < longestLine ? 'incomplete' : 'invalid'
  const length = end + 2
  const words = bytes.toString('latin1', 0, end).split(' ')
  const [, family, address, destination, port, destinationPort, ...rest] = words
  if (family === 'UNKNOWN') return { length, source: undefined }
  if (address === undefined || destination === undefined || rest.length > 0) return 'invalid'
  if (!isPort(port) || !isPort(destinationPort)) return 'invalid'
  if (family === 'TCP4' && isIPv4(address) && isIPv4(destination)) {
    return { length, source: { address, port: Number(port), family: 'IPv4' } }
  }
  // a zone means nothing on another machine
  if (family !== 'TCP6' || !isIPv6(address) || !isIPv6(destination) || address.includes('%')) return 'invalid'
  return { length, source: { address, port: Number(port), family: 'IPv6' } }
}

function isPort(text: string | undefined): boolean {
  return text !== undefined && /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535
}

function readBinary(bytes: Buffer): ProxyHeader {
  if (bytes.length < binaryHead) return 'incomplete'
  const [versionAndCommand, familyAndProtocol] = [bytes[12]!, bytes[13]!]
  const length = binaryHead + bytes.readUInt16BE(14)
  const isLocal = versionAndCommand === 0x20
  if ((!isLocal && versionAndCommand !== 0x21) || length > longestBinary) return 'invalid'
  if (bytes.length < length) return 'incomplete'
  if (isLocal) return { length, source: undefined }
  const addresses = bytes.subarray(binaryHead, length)
  switch (familyAndProtocol) {
    // TCP over IPv4: two addresses, two ports
    case 0x11:
      if (addresses.length < 12) return 'invalid'
      return {
        length,
        source: { address: addresses.subarray(0, 4).join('.'), port: addresses.readUInt16BE(8), family: 'IPv4' },
      }
    case 0x21:
      if (addresses.length < 36) return 'invalid'
      return { length, source: { address: spellIPv6(addresses), port: addresses.readUInt16BE(32), family: 'IPv6' } }
    // no address, or one of a Unix socket on the side of the proxy
    case 0x00:
    case 0x31:
      return { length, source: undefined }
    default:
      return 'invalid'
  }
}

function spellIPv6(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(':')
}
