import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'
import { decodePercent, ParameterName } from './reading/parameter-name.ts'

const AMPERSAND = 0x26
const SEMICOLON = 0x3b

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
    if (text === undefined) return undefined
    for (let at = nextValue(text, name, 0); at >= 0; at = nextValue(text, name, endOfPiece(text, at) + 1)) {
      const value = decodeForm(text.slice(at, wholeEnd(text, at)))
      if (value !== '') return value
    }
    return undefined
  }
}

function hasOtherValue(text: string, name: ParameterName): boolean {
  const at = nextValue(text, name, 0)
  if (at < 0) return false
  const end = endOfPiece(text, at)
  const isAlone = text.charCodeAt(end) !== SEMICOLON && nextValue(text, name, end + 1) < 0
  return !isAlone && differ(at, text, name)
}

/** True if the values from one on differ. None is decoded twice: a broken escape is expensive, and a query may have thousands. */
function differ(first: number, text: string, name: ParameterName): boolean {
  const seen = new Set<string>()
  const values = new Set<string>()
  for (let at = first; at >= 0 && values.size < 2; ) {
    const end = endOfPiece(text, at)
    const whole = text.charCodeAt(end) === SEMICOLON ? wholeEnd(text, at) : end
    for (const raw of [text.slice(at, end), text.slice(at, whole)]) {
      if (!seen.has(raw)) values.add(decodeForm(raw))
      seen.add(raw)
      values.delete('')
    }
    at = nextValue(text, name, end + 1)
  }
  return values.size > 1
}

/** Finds where the next value begins that some service may find at or after `start`, the beginning of a piece; -1 if there is none. */
function nextValue(text: string, name: ParameterName, start: number): number {
  for (let at = start; at < text.length; at = endOfPiece(text, at) + 1) {
    const value = name.valueAt(text, at)
    if (value >= 0) return value
  }
  return -1
}

/** Finds the end of a piece; some services take `;` for `&`. */
function endOfPiece(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === AMPERSAND || code === SEMICOLON) return at
  }
  return text.length
}

/** Returns the end of a value for services that do not. */
function wholeEnd(text: string, start: number): number {
  const end = text.indexOf('&', start)
  return end < 0 ? text.length : end
}

function decodeForm(text: string): string {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text).trim()
}
