import type { Dimension } from './dimension.ts'
import { decodePercent } from './percent.ts'

/** A cookie: the first of that name, as servers take it. */
export const cookie: Dimension = {
  name: 'cookie',
  argument: 'required',
  read: (call, argument) => {
    const value = call.headers?.cookie
    if (typeof value === 'string') return readCookie(value, argument)
    return Array.isArray(value) ? readCookie(value.join('; '), argument) : undefined
  },
}

function readCookie(text: string, name: string): string | undefined {
  for (let start = 0; start < text.length; ) {
    const semicolon = text.indexOf(';', start)
    const end = semicolon < 0 ? text.length : semicolon
    while (start < end && isSpace(text.charCodeAt(start))) start++
    if (text.startsWith(name, start)) {
      let equals = start + name.length
      while (equals < end && isSpace(text.charCodeAt(equals))) equals++
      if (equals < end && text.charCodeAt(equals) === 0x3d) return unquote(text.slice(equals + 1, end).trim())
    }
    start = end + 1
  }
  return undefined
}

function unquote(value: string): string {
  const quoted = value.length > 1 && value.startsWith('"') && value.endsWith('"')
  return decodePercent(quoted ? value.slice(1, -1) : value)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
