import type { Dimension } from './dimension.ts'

/** The host called, in lower case, without port and final dot. */
export const host: Dimension = {
  name: 'host',
  argument: 'none',
  read: call => (call.host === undefined ? undefined : hostName(call.host)),
}

/** One spelling per host: `Example.COM.:8080` is `example.com`. */
export function hostName(text: string): string {
  // an IPv6 host has colons of its own, inside brackets
  const close = text.charCodeAt(0) === 0x5b ? text.indexOf(']') : -1
  const colon = text.indexOf(':', close + 1)
  let end = colon < 0 ? text.length : colon
  while (end > 0 && text.charCodeAt(end - 1) === 0x2e) end--
  return text.slice(0, end).toLowerCase()
}
