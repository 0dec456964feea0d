import type { Call } from '../../call.ts'
import type { Dimension } from '../../dimensions/dimension.ts'
import { findDimension } from '../../dimensions/find-dimension.ts'
import { compileAmbiguity } from '../../dimensions/reading/ambiguity.ts'

/** What a call costs by a rule: always the same, or what the call says, within bounds. */
export type CostInput = number | { readonly from: string; readonly least: number; readonly most: number }

/** Reads the cost of a call. It may say anything: what is no whole number stands for 1, and two values for the most. */
export function compileCost(words: CostInput, dimensions: readonly Dimension[]): (call: Call) => number {
  if (typeof words === 'number') return () => words
  const { from, least, most } = words
  const read = findDimension(from, dimensions)
  const isAmbiguous = compileAmbiguity([from], { identify: {}, dimensions })
  return call => {
    if (isAmbiguous?.(call)) return most
    return Math.min(Math.max(wholeNumber(read?.(call)) ?? 1, least), most)
  }
}

const most = 15

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && text.length <= most && /^\d+$/.test(text) ? Number(text) : undefined
}
