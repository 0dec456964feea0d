import type { Call } from '../call.ts'
import { canonicalAddress } from '../http/address-bits.ts'
import type { Dimension } from './dimension.ts'

/** The host called, in lower case, without port and final dot. */
export const host: Dimension = {
  name: 'host',
  argument: 'none',
  read: call => (call.host === undefined ? undefined : hostName(call.host)),
  ambiguityOf: () => namesTwoHosts,
}

/** HTTP/2 has `:authority` in place of Host, and a call may bring both. */
function namesTwoHosts({ host: text, headers }: Call): boolean {
  const authority = headers?.[':authority']
  return typeof authority === 'string' && authority !== text && hostName(authority) !== hostName(text ?? '')
}

const name = /^[\w-]+(?:\.[\w-]+)*\.?(?::\d*)?$/
const addressInBrackets = /^\[([\da-f:.]+)\](?::\d*)?$/i

/** One spelling per host: `Example.COM.:8080` is `example.com`. Undefined for what is no host. */
export function hostName(text: string): string | undefined {
  if (text.charCodeAt(0) === 0x5b) {
    const address = addressInBrackets.exec(text)?.[1]
    const one = address?.includes(':') ? canonicalAddress(address, 128) : undefined
    return one === undefined ? undefined : `[${one}]`
  }
  if (!name.test(text)) return undefined
  const colon = text.indexOf(':')
  let end = colon < 0 ? text.length : colon
  if (text.charCodeAt(end - 1) === 0x2e) end--
  return text.slice(0, end).toLowerCase()
}

/** What a service that does not look closely may take for the host: rules about it hold for what is no host, too. */
export function looseHostName(text: string): string {
  const start = text.lastIndexOf('@') + 1
  const colon = text.indexOf(':', start)
  let end = colon < 0 ? text.length : colon
  while (end > start && text.charCodeAt(end - 1) === 0x2e) end--
  return text.slice(start, end).toLowerCase()
}
