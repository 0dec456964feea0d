import { hexDigit } from '../../http/hex-digit.ts'

const SPACE = 0x20
const EQUALS = 0x3d

/**
 * The name of a query parameter or a cookie as the most lenient services know it: some ignore its case, PHP takes dots and
 * spaces for `_`, and many read `name[]`, `name[0]` and `name[x]` as `name`.
 */
export class ParameterName {
  readonly #name: string

  constructor(name: string) {
    this.#name = canonical(name)
  }

  /** Finds where the value begins of a piece of a text that begins at `start` with this name, as some service reads it; or -1. */
  valueAt(text: string, start: number): number {
    const name = this.#name
    let at = start
    for (let index = 0; index < name.length; index++) {
      let code = text.charCodeAt(at++)
      if (code === 0x2b) code = SPACE
      else if (code === 0x25) {
        code = hexDigit(text.charCodeAt(at)) * 16 + hexDigit(text.charCodeAt(at + 1))
        at += 2
      } else if (endsName(code)) return -1
      if (code > 0x7f) return this.#decodedValueAt(text, start)
      // PHP skips leading spaces, as all servers do for cookies
      if (index === 0 && (code === SPACE || code === 0x09)) index--
      else if (folded(code) !== name.charCodeAt(index)) return -1
    }
    if (text.charCodeAt(at) === EQUALS) return at + 1
    const end = endOfName(text, at)
    if (text.charCodeAt(end) !== EQUALS) return -1
    return LIST_PLACE.test(text.slice(at, end)) ? end + 1 : -1
  }

  #decodedValueAt(text: string, start: number): number {
    const end = endOfName(text, start)
    const name = canonical(decodePercent(text.slice(start, end).replaceAll('+', ' ')).trim())
    const isNamed = name === this.#name || name.startsWith(`${this.#name}[`)
    return isNamed && text.charCodeAt(end) === EQUALS ? end + 1 : -1
  }
}

/** The text that may follow a name: a list index, a NUL, which ends the name for some servers, or blanks. */
const LIST_PLACE = /^(?:\[|%5b|%00|[ \t]*$)/i

function canonical(name: string): string {
  return name.toLowerCase().replaceAll(/[. ]/g, '_')
}

function folded(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code | 0x20
  return code === 0x2e || code === SPACE ? 0x5f : code
}

function endsName(code: number): boolean {
  return code === EQUALS || code === 0x26 || code === 0x3b
}

function endOfName(text: string, start: number): number {
  let at = start
  while (at < text.length && !endsName(text.charCodeAt(at))) at++
  return at
}

/** Percent-decodes a text; one that is badly escaped stays as it is. */
export function decodePercent(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
