import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'
import { decodePercent, ParameterName } from './reading/parameter-name.ts'

/** A cookie. Services differ in which one they take of several, so a call that gives it two values is ambiguous. */
export const cookie: Dimension = {
  name: 'cookie',
  argument: 'required',
  read: (call, argument) => readerOf(argument)(call),
  readerOf,
  ambiguityOf: argument => {
    const name = new ParameterName(argument)
    return call => {
      const text = cookiesOf(call)
      if (text === undefined) return false
      let first: string | undefined
      return eachCookie(text, name, value => {
        first ??= value
        return value !== first
      })
    }
  },
}

function readerOf(argument: string): (call: Call) => string | undefined {
  const name = new ParameterName(argument)
  return call => {
    const text = cookiesOf(call)
    let found: string | undefined
    if (text !== undefined) {
      eachCookie(text, name, value => {
        found = value
        return true
      })
    }
    return found
  }
}

function cookiesOf({ headers }: Call): string | undefined {
  const value = headers?.cookie
  return typeof value === 'string' || value === undefined ? value : value.join('; ')
}

/** Visits the values of a cookie until `visit` returns true; returns whether it did. */
function eachCookie(text: string, name: ParameterName, visit: (value: string) => boolean): boolean {
  for (let start = 0; start < text.length; ) {
    const semicolon = text.indexOf(';', start)
    const end = semicolon < 0 ? text.length : semicolon
    const at = name.valueAt(text, start)
    if (at >= 0) {
      const value = unquote(text.slice(at, end).trim())
      if (value !== '' && visit(value)) return true
    }
    start = end + 1
  }
  return false
}

/** Reads a quoted value, which may have escapes, as Python reads it: `\130` is `X`. */
function unquote(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return decodePercent(value)
  const inner = value.slice(1, -1)
  return decodePercent(inner.includes('\\') ? inner.replace(/\\(?:([0-3][0-7]{2})|(.))/g, unescaped) : inner)
}

function unescaped(_escape: string, octal: string | undefined, character: string): string {
  return octal === undefined ? character : String.fromCharCode(Number.parseInt(octal, 8))
}
