import { types } from 'node:util'
import type { Call } from '../call.ts'

type Attributes = NonNullable<Call['attributes']>

/**
 * Returns the attributes of a call, read before the limiter decides: an object of the application may have getters that throw,
 * which would interrupt the decision. An attribute that cannot be read is reported, and the call has the others.
 */
export function readAttributes(given: Call['attributes'], failed: (error: unknown) => void): Call['attributes'] {
  if (typeof given !== 'object' || given === null) return undefined
  if (!isPlain(given)) return guarded(given, failed)
  try {
    return { ...given }
  } catch {
    // one of them throws: which, is found below
  }
  const read: Record<string, string | undefined> = {}
  for (const name of Object.keys(given)) {
    try {
      read[name] = given[name]
    } catch (error) {
      failed(error)
    }
  }
  return read
}

function isPlain(given: object): boolean {
  if (types.isProxy(given)) return false
  const prototype: unknown = Object.getPrototypeOf(given)
  return prototype === Object.prototype || prototype === null
}

/** Guards attributes whose names are not known, as of a class or a proxy, so that each is read when a rule asks, and once. */
function guarded(given: Attributes, failed: (error: unknown) => void): Attributes {
  const known = new Map<PropertyKey, unknown>()
  return new Proxy(
    {},
    {
      get: (_target, name) => {
        if (!known.has(name))
          known.set(
            name,
            attempt(() => Reflect.get(given, name), failed),
          )
        return known.get(name)
      },
    },
  )
}

function attempt(read: () => unknown, failed: (error: unknown) => void): unknown {
  try {
    return read()
  } catch (error) {
    failed(error)
    return undefined
  }
}
