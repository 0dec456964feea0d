import { hexDigit } from '../hex-digit.ts'
import { decodePercent } from './percent.ts'

const space = 0x20

/**
 * The name of a query parameter or a cookie as the most lenient services know it: some ignore its case, PHP takes dots and
 * spaces for `_`, and many read `name[]`, `name[0]` and `name[x]` as `name`.
 */
export class ParameterName {
  readonly #name: string

  constructor(name: string) {
    this.#name = canonical(name)
  }

  /** Whether a piece of a text, which may be escaped, is this name to some service. */
  isAt(text: string, start: number, end: number): boolean {
    let at = start
    for (let index = 0; index < this.#name.length; index++) {
      if (at >= end) return false
      let code = text.charCodeAt(at++)
      if (code === 0x2b) code = space
      else if (code === 0x25) {
        code = hexDigit(text.charCodeAt(at)) * 16 + hexDigit(text.charCodeAt(at + 1))
        at += 2
      }
      if (code > 0x7f) return this.#isDecoded(text.slice(start, end))
      // PHP passes over spaces in front
      if (index === 0 && code === space) index--
      else if (folded(code) !== this.#name.charCodeAt(index)) return false
    }
    return at === end || isEnd(text, at)
  }

  #isDecoded(text: string): boolean {
    const name = canonical(decodePercent(text.replaceAll('+', ' ')).trimStart())
    return name === this.#name || name.startsWith(`${this.#name}[`)
  }
}

function canonical(name: string): string {
  return name.toLowerCase().replaceAll(/[. ]/g, '_')
}

function folded(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code | 0x20
  return code === 0x2e || code === space ? 0x5f : code
}

/** A bracket begins the place in a list, and a NUL ends a name for some. */
function isEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code === 0x5b || (code === 0x25 && /^%(?:5b|00)/i.test(text.slice(at, at + 3)))
}
