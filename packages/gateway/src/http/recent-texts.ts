const places = 256
const longest = 40

/** One text that came before, with the bytes it was made of. */
interface Place {
  readonly bytes: Uint8Array
  length: number
  text: string
}

/**
 * Makes text of bytes as `Buffer.toString('latin1')` does, only quicker for what came before, such as the header names of a
 * service: a short text is found by its bytes. A text that meets another at its place takes the place.
 */
export class RecentTexts {
  readonly #places: readonly Place[] = Array.from({ length: places }, () => {
    return { bytes: new Uint8Array(longest), length: -1, text: '' }
  })
  readonly #letters: 'as they are' | 'in lower case'

  constructor(letters: 'as they are' | 'in lower case') {
    this.#letters = letters
  }

  /** The text of all bytes, or of those between two positions. */
  textOf(bytes: Buffer, from = 0, to: number = bytes.length): string {
    const length = to - from
    if (length === 0 || length > longest) return this.#decode(bytes, from, to)
    const hash = length * 31 + bytes[from]! * 7 + bytes[from + (length >> 1)]! * 3 + bytes[to - 1]!
    const place = this.#places[hash & (places - 1)]!
    if (!isAt(place, bytes, from, length)) {
      place.text = this.#decode(bytes, from, to)
      place.length = length
      for (let at = 0; at < length; at++) place.bytes[at] = bytes[from + at]!
    }
    return place.text
  }

  #decode(bytes: Buffer, from: number, to: number): string {
    const text = bytes.toString('latin1', from, to)
    return this.#letters === 'in lower case' ? text.toLowerCase() : text
  }
}

function isAt(place: Place, bytes: Buffer, from: number, length: number): boolean {
  if (place.length !== length) return false
  // from the end, where texts differ that begin alike
  for (let at = length - 1; at >= 0; at--) if (place.bytes[at] !== bytes[from + at]) return false
  return true
}
