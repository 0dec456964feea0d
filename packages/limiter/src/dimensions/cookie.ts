import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'
import { ParameterName } from './parameter-name.ts'
import { decodePercent } from './percent.ts'

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

/** Visits the values of a cookie until `visit` says that it is done; says whether it did. */
function eachCookie(text: string, name: ParameterName, visit: (value: string) => boolean): boolean {
  let equals = -1
  for (let start = 0; start < text.length; ) {
    const semicolon = text.indexOf(';', start)
    const end = semicolon < 0 ? text.length : semicolon
    if (equals < start) equals = text.indexOf('=', start)
    if (equals < 0) return false
    if (equals < end && isNamed(text, start, equals, name)) {
      const value = unquote(text.slice(equals + 1, end).trim())
      if (value !== '' && visit(value)) return true
    }
    start = end + 1
  }
  return false
}

function isNamed(text: string, start: number, equals: number, name: ParameterName): boolean {
  let [first, end] = [start, equals]
  while (first < end && isSpace(text.charCodeAt(first))) first++
  while (end > first && isSpace(text.charCodeAt(end - 1))) end--
  return name.isAt(text, first, end)
}

/** What stands in quotes may be escaped, as Python reads it: `\130` is `X`. */
function unquote(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return decodePercent(value)
  const inner = value.slice(1, -1)
  return decodePercent(inner.includes('\\') ? inner.replace(/\\(?:([0-3][0-7]{2})|(.))/g, unescaped) : inner)
}

function unescaped(_escape: string, octal: string | undefined, character: string): string {
  return octal === undefined ? character : String.fromCharCode(Number.parseInt(octal, 8))
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
