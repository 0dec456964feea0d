import type { Call } from '../call.ts'
import { ip } from './ip.ts'
import { describePart, type KeyPart } from './key.ts'

/** Reads the key of a rule, dimension by dimension. */
export function describeKey(key: string, by: readonly string[]): Record<string, KeyPart> {
  let rest = key
  const parts = by.map((name, i): [string, KeyPart] => {
    if (i === by.length - 1) return [name, describePart(rest)]
    const colon = rest.indexOf(':')
    const end = colon + 1 + Number(rest.slice(0, colon))
    const part = rest.slice(colon + 1, end)
    rest = rest.slice(end)
    return [name, describePart(part)]
  })
  return Object.fromEntries(parts)
}

/** Returns a call that is counted under a key; undefined if a part of the key is a digest, whose value is not known. */
export function callOfKey(key: string, by: readonly string[]): Call | undefined {
  const parts = Object.entries(describeKey(key, by))
  if (parts.some(([, { countedBy }]) => countedBy === 'digest')) return undefined
  const address = parts.find(([name, { countedBy }]) => countedBy === 'address' || name === ip.name)?.[1].value
  const given = parts.filter(([name, { countedBy }]) => countedBy === 'value' && name !== ip.name)
  const attributes = Object.fromEntries(given.map(([name, { value }]) => [name, value]))
  return { method: '', path: '/', ip: address, attributes }
}
