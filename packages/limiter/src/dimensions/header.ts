import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'

/** A header; sent several times, all its values together are one value, since servers differ in which one they take. */
export const header: Dimension = {
  name: 'header',
  argument: 'required',
  read: (call, argument) => readerOf(argument)(call),
  readerOf,
}

function readerOf(argument: string): (call: Call) => string | undefined {
  const name = argument.toLowerCase()
  const hasScheme = name === 'authorization'
  return call => {
    const value = call.headers?.[name]
    const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : undefined
    return text !== undefined && hasScheme ? withPlainScheme(text) : text
  }
}

/** Servers take `Bearer x`, `bearer x` and `Bearer  x` for the same (RFC 9110, section 11.1). */
function withPlainScheme(credentials: string): string {
  const space = credentials.indexOf(' ')
  if (space < 0) return credentials
  return `${credentials.slice(0, space).toLowerCase()} ${credentials.slice(space + 1).trimStart()}`
}
