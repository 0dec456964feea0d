/** One name, as bytes and as text. */
interface KnownName {
  readonly bytes: Buffer
  readonly text: string
}

const longestKept = 40

/**
 * Header names of services in lower case. A name that came before is found by its bytes: to make its text again, and to look
 * that text up afterwards, would take several times as long.
 */
export class HeaderNames {
  /** Names by a hash of some of their bytes; a name that meets another at its place takes the place. */
  readonly #known: (KnownName | undefined)[] = new Array(256).fill(undefined)

  textOf(bytes: Buffer): string {
    const { length } = bytes
    if (length === 0 || length > longestKept) return decode(bytes)
    const place = (length * 31 + bytes[0]! * 7 + bytes[length >> 1]! * 3 + bytes[length - 1]!) & 0xff
    const known = this.#known[place]
    if (known !== undefined && isSame(known.bytes, bytes)) return known.text
    const text = decode(bytes)
    // a copy, since the bytes are part of everything that was received with them
    this.#known[place] = { bytes: Buffer.from(bytes), text }
    return text
  }
}

function decode(bytes: Buffer): string {
  return bytes.toString('latin1').toLowerCase()
}

function isSame(one: Buffer, other: Buffer): boolean {
  const { length } = one
  if (length !== other.length) return false
  for (let at = 0; at < length; at++) if (one[at] !== other[at]) return false
  return true
}
