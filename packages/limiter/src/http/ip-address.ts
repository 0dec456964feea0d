import { DianaError } from '../errors.ts'
import { type AddressBits, groupMask, isIPv4, parseAddressBits, wholeAddress } from './address-bits.ts'

/** The header in which proxies name those they call for. */
export type ForwardedBy = 'x-forwarded-for' | 'forwarded'

/** Chooses the caller's address among the socket's peer and the addresses in X-Forwarded-For or Forwarded. */
export type AddressReader = (
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
) => string | undefined

/** One item of the header → the address in it; an item that is none stays none. */
type ItemReader = (item: string) => string

/** Addresses that agree with `bits` in the first `length` bits. */
export interface Network {
  readonly bits: AddressBits
  readonly length: number
}

const MAX_ENTRIES = 64
const scratch: AddressBits = new Uint16Array(8)

/** Reads `10.0.0.0/8`, `2001:db8::/32` or one address; undefined when it is none of these. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/')
  const bits = new Uint16Array(8)
  const address = slash < 0 ? text : text.slice(0, slash)
  if (!parseAddressBits(address, bits)) return undefined
  if (slash < 0) return { bits, length: 128 }
  const digits = text.slice(slash + 1)
  if (!/^\d{1,3}$/.test(digits)) return undefined
  const length = Number(digits)
  // a mapped network counts its bits from the left of all 128: `::ffff:10.0.0.0/8` would contain every IPv4 address
  const dotted = isIPv4(bits) && !address.includes(':')
  const total = dotted ? length + 96 : length
  return total > 128 || (isIPv4(bits) && total < 96) ? undefined : { bits, length: total }
}

/** Creates a reader of addresses; `trustProxy` is a number of hops or a list of networks; throws if it is neither. */
export function createAddressReader(
  trustProxy: number | readonly string[],
  forwardedBy: ForwardedBy = 'x-forwarded-for',
): AddressReader {
  const read = forwardedBy === 'forwarded' ? readForwarded : asItIs
  if (typeof trustProxy !== 'number') return readPastTrusted(trustProxy.map(requireNetwork), read)
  if (!Number.isInteger(trustProxy) || trustProxy < 0 || trustProxy > MAX_ENTRIES) {
    throw new DianaError('BAD_RULES', `trustProxy is ${trustProxy}: say how many proxies to trust, 0 to ${MAX_ENTRIES}`)
  }
  return trustProxy === 0 ? wholeAddress : readHops(trustProxy, read)
}

const asItIs: ItemReader = item => item

function readHops(hops: number, read: ItemReader): AddressReader {
  return (peer, forwardedFor) => {
    const entries = new EntriesFromRight(forwardedFor, read)
    let good = peer
    for (let left = hops; left > 0; left--) {
      const entry = entries.next()
      if (entry === undefined) return wholeAddress(peer)
      if (!parseAddressBits(entry, scratch)) break
      good = entry
    }
    return wholeAddress(good)
  }
}

function readPastTrusted(networks: readonly Network[], read: ItemReader): AddressReader {
  return (peer, forwardedFor) => {
    if (peer === undefined || !parseAddressBits(peer, scratch)) return undefined
    const entries = new EntriesFromRight(forwardedFor, read)
    let good = peer
    for (let left = MAX_ENTRIES; left > 0 && isWithin(networks, scratch); left--) {
      const entry = entries.next()
      if (entry === undefined || !parseAddressBits(entry, scratch)) break
      good = entry
    }
    return wholeAddress(good)
  }
}

/** Returns the caller's address as a framework's own test of proxies finds it; what is no address ends the walk. */
export function addressPast(
  isTrusted: (address: string, hop: number) => boolean,
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
  forwardedBy: ForwardedBy = 'x-forwarded-for',
): string | undefined {
  if (peer === undefined || !parseAddressBits(peer, scratch)) return undefined
  const entries = new EntriesFromRight(forwardedFor, forwardedBy === 'forwarded' ? readForwarded : asItIs)
  let good = peer
  for (let hop = 0; hop < MAX_ENTRIES && isTrusted(good, hop); hop++) {
    const entry = entries.next()?.trim()
    if (entry === undefined || !parseAddressBits(entry, scratch)) break
    good = entry
  }
  return wholeAddress(good)
}

/** Returns the last of the addresses from the peer to the caller before one that is none. */
export function lastAddress(addresses: readonly string[]): string | undefined {
  let good: string | undefined
  for (const one of addresses) {
    if (!parseAddressBits(one, scratch)) break
    good = one
  }
  return wholeAddress(good)
}

/** The items of a header that may have come on several lines, last first, cut one by one: it may be 64 KiB long. */
class EntriesFromRight {
  readonly #lines: readonly string[]
  readonly #read: ItemReader
  #line: number
  #text: string
  #end: number

  constructor(header: string | readonly string[] | undefined, read: ItemReader) {
    this.#read = read
    this.#lines = typeof header === 'string' ? [header] : (header ?? [])
    this.#line = this.#lines.length - 1
    this.#text = this.#lines[this.#line] ?? ''
    this.#end = this.#line < 0 ? -1 : this.#text.length
  }

  next(): string | undefined {
    if (this.#end < 0) {
      if (this.#line <= 0) return undefined
      this.#text = this.#lines[--this.#line]!
      this.#end = this.#text.length
    }
    const comma = this.#end === 0 ? -1 : this.#text.lastIndexOf(',', this.#end - 1)
    const entry = this.#text.slice(comma + 1, this.#end)
    this.#end = comma
    return this.#read(entry)
  }
}

function requireNetwork(text: string): Network {
  const network = parseNetwork(text)
  if (network !== undefined) return network
  throw new DianaError('BAD_RULES', `trustProxy names "${text}": write an address or a network such as 10.0.0.0/8`)
}

/** Returns a test whether an address, in any spelling, lies in one of many networks; they are sorted by their length once. */
export function compileNetworks(networks: readonly Network[]): (address: string) => boolean {
  const byLength = new Map<number, Set<string>>()
  const masked = (bits: AddressBits, length: number): string => {
    let text = ''
    for (let at = 0; at < 8; at++) text += String.fromCharCode(bits[at]! & groupMask(length, at))
    return text
  }
  for (const { bits, length } of networks) {
    const known = byLength.get(length) ?? new Set()
    // `::/0` contains no IPv4 address, though it contains mapped forms
    byLength.set(length, known.add(`${isIPv4(bits)}${masked(bits, length)}`))
  }
  return address => {
    if (!parseAddressBits(address, scratch)) return false
    const kind = isIPv4(scratch)
    for (const [length, known] of byLength) if (known.has(`${kind}${masked(scratch, length)}`)) return true
    return false
  }
}

function isWithin(networks: readonly Network[], bits: AddressBits): boolean {
  for (const network of networks) {
    // `::/0` contains no IPv4 address, though it contains mapped forms
    if (isIPv4(network.bits) === isIPv4(bits) && agree(network, bits)) return true
  }
  return false
}

function agree(network: Network, bits: AddressBits): boolean {
  for (let at = 0; at * 16 < network.length; at++) {
    if (((network.bits[at]! ^ bits[at]!) & groupMask(network.length, at)) !== 0) return false
  }
  return true
}

/** Returns a test whether a peer is a trusted proxy: with a number of hops, every peer is. */
export function createPeerTest(trustProxy: number | readonly string[]): (peer: string | undefined) => boolean {
  if (typeof trustProxy === 'number') return () => trustProxy > 0
  const holds = compileNetworks(trustProxy.map(requireNetwork))
  return peer => peer !== undefined && holds(peer)
}

const MAX_ITEM = 1024
const PAIR = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~\w:[\]-]+))[ \t]*$/

/**
 * Returns the address of one item of a Forwarded header (RFC 7239): `for=192.0.2.60;proto=http`, `For="[2001:db8::17]:4711"`. Empty
 * if it names none, or anything in it is not as it should be: items are cut at commas from the right, since a caller's open quote
 * must not swallow what a proxy has added, and what a caller got into a quoted text of the proxy's item leaves an unmatched quote.
 */
export function readForwarded(item: string): string {
  if (item.length > MAX_ITEM) return ''
  let address: string | undefined
  for (const text of item.split(';')) {
    const [, name, quoted, plain] = PAIR.exec(text) ?? []
    if (name === undefined) return ''
    if (name.toLowerCase() !== 'for') continue
    if (address !== undefined) return ''
    address = quoted ?? plain
  }
  return address ?? ''
}
