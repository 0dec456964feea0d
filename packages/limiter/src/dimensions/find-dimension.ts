import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'

/** What a rule or `identify` calls `header:x-account-id`, ready to read; undefined when no dimension is meant. */
export function findDimension(
  name: string,
  dimensions: readonly Dimension[],
): ((call: Call) => string | undefined) | undefined {
  const colon = name.indexOf(':')
  const kind = colon < 0 ? name : name.slice(0, colon)
  const argument = colon < 0 ? '' : name.slice(colon + 1)
  const dimension = dimensions.find(one => one.name === kind)
  if (dimension === undefined) return undefined
  if (dimension.argument === 'required' ? argument === '' : colon >= 0) return undefined
  return dimension.readerOf?.(argument) ?? (call => dimension.read(call, argument))
}
