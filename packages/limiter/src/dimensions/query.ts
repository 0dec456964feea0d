import { hexDigit } from '../hex-digit.ts'
import type { Dimension } from './dimension.ts'
import { decodePercent } from './percent.ts'

/** A parameter of the query; given several times, all its values together are one value. */
export const query: Dimension = {
  name: 'query',
  argument: 'required',
  read: (call, argument) => (call.query === undefined ? undefined : readParameter(call.query, argument)),
}

function readParameter(text: string, name: string): string | undefined {
  let values: string | undefined
  let equals = -1
  for (let start = 0; start < text.length; ) {
    const ampersand = text.indexOf('&', start)
    const end = ampersand < 0 ? text.length : ampersand
    if (equals < start) equals = text.indexOf('=', start)
    if (equals < 0) break
    if (equals + 1 < end && isNamed(text, start, equals, name)) {
      const value = text.slice(equals + 1, end)
      values = values === undefined ? value : `${values},${value}`
    }
    start = end + 1
  }
  // decoded once and together: a broken escape is dear to find, and a query may hold thousands
  return values === undefined ? undefined : decodeForm(values)
}

function isNamed(text: string, start: number, end: number, name: string): boolean {
  let at = start
  for (let index = 0; index < name.length; index++) {
    if (at >= end) return false
    let code = text.charCodeAt(at++)
    if (code === 0x2b) code = 0x20
    else if (code === 0x25) {
      code = hexDigit(text.charCodeAt(at)) * 16 + hexDigit(text.charCodeAt(at + 1))
      at += 2
      if (code > 0x7f) return decodeForm(text.slice(start, end)) === name
    }
    if (code !== name.charCodeAt(index)) return false
  }
  return at === end
}

function decodeForm(text: string): string {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}
