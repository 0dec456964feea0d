import type { Call } from '../../call.ts'
import type { Dimension } from '../dimension.ts'
import { findDimension, splitName } from '../find-dimension.ts'
import { type KeyInput, present, sourcesOf } from '../key.ts'

export type CallTest = (call: Call) => boolean

/**
 * Returns a test whether a call brings several values of a dimension of `by`, and services could read any of them: no key is safe then.
 * Undefined if no dimension can be read in two ways.
 */
export function compileAmbiguity(by: readonly string[], lookup: KeyInput): CallTest | undefined {
  const tests = by.map(name => ambiguityOf(name, lookup)).filter(test => test !== undefined)
  const [only] = tests
  return tests.length > 1 ? call => tests.some(test => test(call)) : only
}

function ambiguityOf(name: string, lookup: KeyInput): CallTest | undefined {
  const sources = (sourcesOf(name, lookup) ?? [name]).map(source => ({
    isAmbiguous: testOf(source, lookup.dimensions),
    read: findDimension(source, lookup.dimensions),
  }))
  if (sources.every(({ isAmbiguous }) => isAmbiguous === undefined)) return undefined
  return call => {
    // the application knows better than any header
    if (present(call.attributes?.[name]) !== undefined) return false
    for (let i = 0; i < sources.length; i++) {
      const { isAmbiguous, read } = sources[i]!
      if (isAmbiguous?.(call)) return true
      // a later source is not asked if this one has a value
      if (i + 1 < sources.length && present(read?.(call)) !== undefined) return false
    }
    return false
  }
}

function testOf(name: string, dimensions: readonly Dimension[]): CallTest | undefined {
  const { kind, argument } = splitName(name)
  return dimensions.find(one => one.name === kind)?.ambiguityOf?.(argument)
}
