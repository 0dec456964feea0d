import { canonicalAddress } from './address-bits.ts'

const HOST_NAME = /^[\w-]+(?:\.[\w-]+)*\.?(?::\d*)?$/
const ADDRESS_IN_BRACKETS = /^\[([\da-f:.]+)\](?::\d*)?$/i

/** Returns one spelling per host: `Example.COM.:8080` is `example.com`. Undefined if the text is not a host. */
export function hostName(text: string): string | undefined {
  if (text.charCodeAt(0) === 0x5b) {
    const address = ADDRESS_IN_BRACKETS.exec(text)?.[1]
    const one = address?.includes(':') ? canonicalAddress(address, 128) : undefined
    return one === undefined ? undefined : `[${one}]`
  }
  if (!HOST_NAME.test(text)) return undefined
  const colon = text.indexOf(':')
  let end = colon < 0 ? text.length : colon
  if (text.charCodeAt(end - 1) === 0x2e) end--
  return text.slice(0, end).toLowerCase()
}

/** Returns the host that a lenient service may read from an invalid Host header, so that rules about that host apply, too. */
export function looseHostName(text: string): string {
  const start = text.lastIndexOf('@') + 1
  const colon = text.indexOf(':', start)
  let end = colon < 0 ? text.length : colon
  while (end > start && text.charCodeAt(end - 1) === 0x2e) end--
  return text.slice(start, end).toLowerCase()
}
