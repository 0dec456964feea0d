import { hexDigit } from './hex-digit.ts'

/** An address as eight groups of sixteen bits; IPv4 is written the mapped way, ::ffff:a.b.c.d. */
export type AddressBits = Uint16Array

const MAX_TEXT = 256
const scratch: AddressBits = new Uint16Array(8)

/**
 * Returns one text per caller: an IPv4 address in dotted form however it was written, an IPv6 address as the network of
 * `ipv6Prefix` bits around it, since one host owns a whole /64. Undefined when the text is no address.
 */
export function canonicalAddress(text: string, ipv6Prefix = 64): string | undefined {
  if (parseDotted(text, 0, text.length) >= 0) return text
  // so a dual-stack socket spells each IPv4 peer
  if (text.startsWith('::ffff:') && parseDotted(text, 7, text.length) >= 0) return text.slice(7)
  if (!parseAddressBits(text, scratch)) return undefined
  if (ipv6Prefix >= 128 || isIPv4(scratch) || isTranslated(scratch)) return writeAddressBits(scratch)
  for (let at = 0; at < 8; at++) scratch[at] = scratch[at]! & groupMask(ipv6Prefix, at)
  return `${writeAddressBits(scratch)}/${ipv6Prefix}`
}

/** Returns the whole address of a caller in one spelling: no network of IPv6. */
export function wholeAddress(address: string | undefined): string | undefined {
  return address === undefined ? undefined : canonicalAddress(address, 128)
}

/**
 * Reads an address in any spelling into `bits` and returns whether it was one. A port, brackets, a zone and the spaces
 * around it are dropped. By hand, since every call on a dual-stack socket brings `::ffff:1.2.3.4`, and the parsers at
 * hand cost microseconds or take `::1.2.3.4` for a mapped address.
 */
export function parseAddressBits(text: string, bits: AddressBits): boolean {
  let start = 0
  let end = text.length
  if (end > MAX_TEXT) return false
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--

  if (text.charCodeAt(start) === 0x5b) {
    const close = text.indexOf(']', start)
    if (close < 0 || (close + 1 < end && !isPort(text, close + 1, end))) return false
    return parseIPv6(text, start + 1, zoneStart(text, start + 1, close), bits)
  }
  const colon = text.indexOf(':', start)
  if (colon < 0) return parseIPv4(text, start, end, bits)
  if (text.indexOf(':', colon + 1) < 0) return isPort(text, colon, end) && parseIPv4(text, start, colon, bits)
  return parseIPv6(text, start, zoneStart(text, start, end), bits)
}

/** Returns the four bytes of a plain dotted address as one number, or -1. */
export function parseDotted(text: string, start: number, end: number): number {
  let value = 0
  let dots = 0
  let byte = -1
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x2e) {
      if (byte < 0 || ++dots > 3) return -1
      value = value * 256 + byte
      byte = -1
    } else {
      // a leading zero is octal to some readers and decimal to others
      if (code < 0x30 || code > 0x39 || byte === 0) return -1
      byte = (byte < 0 ? 0 : byte * 10) + code - 0x30
      if (byte > 255) return -1
    }
  }
  return dots === 3 && byte >= 0 ? value * 256 + byte : -1
}

export function isIPv4(bits: AddressBits): boolean {
  return bits[5] === 0xffff && (bits[0]! | bits[1]! | bits[2]! | bits[3]! | bits[4]!) === 0
}

/** Returns the one spelling of an address: dotted for IPv4, RFC 5952 for IPv6. */
export function writeAddressBits(bits: AddressBits): string {
  if (isIPv4(bits)) return `${bits[6]! >> 8}.${bits[6]! & 255}.${bits[7]! >> 8}.${bits[7]! & 255}`
  let gapStart = 8
  let gapEnd = 8
  for (let at = 0; at < 8; at++) {
    let end = at
    while (end < 8 && bits[end] === 0) end++
    if (end - at > Math.max(gapEnd - gapStart, 1)) {
      gapStart = at
      gapEnd = end
    }
    at = Math.max(at, end - 1)
  }
  let text = ''
  for (let at = 0; at < gapStart; at++) text += at === 0 ? bits[at]!.toString(16) : `:${bits[at]!.toString(16)}`
  if (gapStart === 8) return text
  text += '::'
  for (let at = gapEnd; at < 8; at++) text += at === gapEnd ? bits[at]!.toString(16) : `:${bits[at]!.toString(16)}`
  return text
}

function parseIPv4(text: string, start: number, end: number, bits: AddressBits): boolean {
  const value = parseDotted(text, start, end)
  if (value < 0) return false
  bits.fill(0)
  bits[5] = 0xffff
  bits[6] = value >>> 16
  bits[7] = value & 0xffff
  return true
}

function parseIPv6(text: string, start: number, end: number, bits: AddressBits): boolean {
  let count = 0
  let gap = -1
  let at = start
  if (text.startsWith('::', at) && at + 2 <= end) {
    gap = 0
    at += 2
  }
  while (at < end) {
    let value = 0
    const groupStart = at
    for (; at < end; at++) {
      const digit = hexDigit(text.charCodeAt(at))
      if (digit < 0) break
      value = value * 16 + digit
      if (at - groupStart > 3) return false
    }
    if (at < end && text.charCodeAt(at) === 0x2e) {
      const dotted = parseDotted(text, groupStart, end)
      if (dotted < 0 || count > 6) return false
      bits[count++] = dotted >>> 16
      bits[count++] = dotted & 0xffff
      at = end
      break
    }
    if (at === groupStart || count === 8) return false
    bits[count++] = value
    if (at === end) break
    if (text.charCodeAt(at) !== 0x3a || ++at === end) return false
    if (text.charCodeAt(at) === 0x3a) {
      if (gap >= 0) return false
      gap = count
      at++
    }
  }
  if (gap < 0) return count === 8
  if (count === 8) return false
  bits.copyWithin(8 - (count - gap), gap, count)
  bits.fill(0, gap, 8 - (count - gap))
  return true
}

function zoneStart(text: string, start: number, end: number): number {
  const at = text.indexOf('%', start)
  return at < 0 || at > end ? end : at
}

function isPort(text: string, colon: number, end: number): boolean {
  if (text.charCodeAt(colon) !== 0x3a || end - colon < 2 || end - colon > 6) return false
  for (let at = colon + 1; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x30 || code > 0x39) return false
  }
  return true
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** Returns the bits of a group that belong to a network of `length` bits. */
export function groupMask(length: number, group: number): number {
  const ones = Math.min(Math.max(length - group * 16, 0), 16)
  return (0xffff << (16 - ones)) & 0xffff
}

/**
 * True if an address is in 64:ff9b::/96, which holds the whole IPv4 internet behind a translator: these are many callers, not one
 * host's /64.
 */
function isTranslated(bits: AddressBits): boolean {
  return bits[0] === 0x64 && bits[1] === 0xff9b && (bits[2]! | bits[3]! | bits[4]! | bits[5]!) === 0
}
