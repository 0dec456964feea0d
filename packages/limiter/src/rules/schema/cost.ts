import type { Call } from '../../call.ts'
import type { Dimension } from '../../dimensions/dimension.ts'
import { findDimension } from '../../dimensions/find-dimension.ts'
import { compileAmbiguity } from '../../dimensions/reading/ambiguity.ts'

/** The cost of a call by a rule: fixed, or read from the call within bounds. */
export type CostInput = number | { readonly from: string; readonly least: number; readonly most: number }

/** Reads the cost of a call. A value that is not a whole number costs 1, and two values cost the most. */
export function compileCost(input: CostInput, dimensions: readonly Dimension[]): (call: Call) => number {
  if (typeof input === 'number') return () => input
  const { from, least, most } = input
  const read = findDimension(from, dimensions)
  const isAmbiguous = compileAmbiguity([from], { identify: {}, dimensions })
  return call => {
    if (isAmbiguous?.(call)) return most
    return Math.min(Math.max(wholeNumber(read?.(call)) ?? 1, least), most)
  }
}

const MOST = 15

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && text.length <= MOST && /^\d+$/.test(text) ? Number(text) : undefined
}
