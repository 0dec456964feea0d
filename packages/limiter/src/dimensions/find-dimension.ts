import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'
import { ip } from './ip.ts'

/** Finds what a rule or `identify` calls `header:x-account-id`, ready to read; undefined when no dimension is meant. */
export function findDimension(
  name: string,
  dimensions: readonly Dimension[],
): ((call: Call) => string | undefined) | undefined {
  const { kind, argument, colon } = splitName(name)
  const dimension = dimensions.find(one => one.name === kind)
  if (dimension === undefined) return undefined
  if (dimension.argument === 'required' ? argument === '' : colon >= 0) return undefined
  return dimension.readerOf?.(argument) ?? (call => dimension.read(call, argument))
}

/** Finds the dimension that reads the caller's address: lists of callers may name networks of it. */
export function addressDimension<One extends Pick<Dimension, 'name' | 'field'>>(
  dimensions: readonly One[],
): One | undefined {
  return dimensions.find(one => one.field === ip.field)
}

export function addressName(dimensions: readonly Pick<Dimension, 'name' | 'field'>[]): string {
  return addressDimension(dimensions)?.name ?? ip.name
}

/** Returns the parts of `header:x-account-id`. */
export function splitName(name: string): { readonly kind: string; readonly argument: string; readonly colon: number } {
  const colon = name.indexOf(':')
  if (colon < 0) return { kind: name, argument: '', colon }
  return { kind: name.slice(0, colon), argument: name.slice(colon + 1), colon }
}
