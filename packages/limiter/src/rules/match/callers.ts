import type { Call } from '../../call.ts'
import { addressName } from '../../dimensions/find-dimension.ts'
import { type KeyInput, readerOf } from '../../dimensions/key.ts'
import { compileAmbiguity } from '../../dimensions/reading/ambiguity.ts'
import { compileNetworks, type Network, parseNetwork } from '../../http/ip-address.ts'

/** Callers by name: values of dimensions, and of `ip` networks. */
export type CallerList = Readonly<Record<string, readonly string[]>>

/** Returns a test whether a caller is on the list; compiled once, since lists may be long. */
export function compileCallers(list: CallerList, lookup: KeyInput): (call: Call) => boolean {
  const address = addressName(lookup.dimensions)
  const tests = Object.entries(list).map(([name, values]) =>
    name === address ? within(name, values, lookup) : among(name, values, lookup),
  )
  const [only] = tests
  return only && tests.length === 1 ? only : call => tests.some(test => test(call))
}

/** Returns a test whether a caller is on a deny list, or may be: an ambiguous value counts as listed. */
export function compileDenied(list: CallerList, lookup: KeyInput): (call: Call) => boolean {
  const isListed = compileCallers(list, lookup)
  const isAmbiguous = compileAmbiguity(Object.keys(list), lookup)
  return isAmbiguous ? call => isListed(call) || isAmbiguous(call) : isListed
}

function within(name: string, values: readonly string[], lookup: KeyInput): (call: Call) => boolean {
  const holds = compileNetworks(values.map(parseNetwork).filter((one): one is Network => one !== undefined))
  // the whole address: the dimension would give its network
  const read = Object.hasOwn(lookup.identify, name)
    ? readerOf(name, lookup)
    : (call: Call) => call.attributes?.[name] ?? call.ip
  return call => {
    const address = read(call)
    return typeof address === 'string' && holds(address)
  }
}

function among(name: string, values: readonly string[], lookup: KeyInput): (call: Call) => boolean {
  const known = new Set(values)
  const read = readerOf(name, lookup)
  const isAmbiguous = compileAmbiguity([name], lookup)
  return call => {
    const value = read(call)
    return value !== undefined && known.has(value) && !isAmbiguous?.(call)
  }
}
