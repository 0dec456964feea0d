import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'
import { ParameterName } from './parameter-name.ts'
import { decodePercent } from './percent.ts'

/**
 * A parameter of the query. Services differ in which one they take of several, so a call that gives it two values is
 * ambiguous.
 */
export const query: Dimension = {
  name: 'query',
  argument: 'required',
  read: (call, argument) => readerOf(argument)(call),
  readerOf,
  ambiguityOf: argument => {
    const name = new ParameterName(argument)
    return ({ query: text }) => text !== undefined && hasOtherValue(text, name)
  },
}

function readerOf(argument: string): (call: Call) => string | undefined {
  const name = new ParameterName(argument)
  return ({ query: text }) => {
    let found: string | undefined
    if (text !== undefined) {
      eachValue(text, name, value => {
        found = decodeForm(value)
        return found === ''
      })
    }
    return found === '' ? undefined : found
  }
}

function hasOtherValue(text: string, name: ParameterName): boolean {
  let first: string | undefined
  let isOther = false
  const seen = new Set<string>()
  eachValue(text, name, raw => {
    // a broken escape is dear to decode, and a query may hold thousands of one
    if (seen.has(raw)) return true
    seen.add(raw)
    const value = decodeForm(raw)
    if (value === '') return true
    first ??= value
    isOther = value !== first
    return !isOther
  })
  return isOther
}

/** Visits every value that some service may find, as long as `visit` wants more. Some take `;` for `&`. */
function eachValue(text: string, name: ParameterName, visit: (raw: string) => boolean): void {
  let isBehindSemicolon = false
  let [ampersand, semicolon, equals] = [-1, -1, -1]
  for (let start = 0; start < text.length; ) {
    // each is looked for again only once it is behind: a query may hold thousands of the others
    if (ampersand < start) ampersand = indexOrEnd(text, '&', start)
    if (semicolon < start) semicolon = indexOrEnd(text, ';', start)
    if (equals < start) equals = indexOrEnd(text, '=', start)
    if (equals === text.length) return
    const end = Math.min(ampersand, semicolon)
    if (equals < end && name.isAt(text, start, equals)) {
      if (!isBehindSemicolon && end < ampersand && !visit(text.slice(equals + 1, ampersand))) return
      if (!visit(text.slice(equals + 1, end))) return
    }
    isBehindSemicolon = end === semicolon && end < text.length
    start = end + 1
  }
}

function indexOrEnd(text: string, character: string, start: number): number {
  const at = text.indexOf(character, start)
  return at < 0 ? text.length : at
}

function decodeForm(text: string): string {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text).trim()
}
