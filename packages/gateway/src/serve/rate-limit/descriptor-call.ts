import type { Call } from 'diana-limiter'
import { canonicalAddress } from 'diana-limiter/gateway'
import type { Descriptor } from './rate-limit-request.ts'

/** The name that Envoy gives the entry with the address of its own caller. */
const addressEntry = 'remote_address'

/**
 * A descriptor as a call. Its attributes are `domain`, `descriptor` (the names of its entries in their order, joined by commas) and
 * each entry under its name; the second entry of a name is `name#2`, so that no entry can stand for another one.
 */
export class DescriptorCall implements Call {
  readonly method: string = 'POST'
  readonly path: string = '/'
  readonly ip: string | undefined
  readonly attributes: Readonly<Record<string, string>>

  constructor(domain: string, { entries }: Descriptor) {
    // without a prototype, so that no entry can have a name that means something else
    const attributes: Record<string, string> = Object.create(null)
    attributes.domain = domain
    attributes.descriptor = ''
    let names = ''
    for (let i = 0; i < entries.length; i += 2) {
      const key = entries[i]!
      names += i === 0 ? escapeName(key) : `,${escapeName(key)}`
      attributes[key in attributes ? nextName(key, attributes) : key] = entries[i + 1]!
    }
    attributes.descriptor = names
    this.attributes = attributes
    const address = attributes[addressEntry]
    this.ip = address === undefined ? undefined : canonicalAddress(address)
  }
}

/** Returns the name of one more entry of a name that is taken. */
export function nextName(key: string, taken: Readonly<Record<string, unknown>>): string {
  let count = 2
  while (`${key}#${count}` in taken) count++
  return `${key}#${count}`
}

/** Escapes a name, since a comma in it must not make two names of it. */
export function escapeName(name: string): string {
  return name.includes(',') || name.includes('%') ? name.replaceAll('%', '%25').replaceAll(',', '%2C') : name
}
