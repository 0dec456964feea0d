import type { Overrun } from '../../algorithms/algorithm.ts'
import type { Call } from '../../call.ts'
import type { MeasuredCost } from '../../costs/cost-options.ts'
import type { Dimension } from '../../dimensions/dimension.ts'
import { findDimension } from '../../dimensions/find-dimension.ts'
import { compileAmbiguity } from '../../dimensions/reading/ambiguity.ts'

/** The cost of a call that is read from the call within bounds, or settled afterwards. */
export interface CostOptions extends MeasuredCost {
  /** Left out, the caller of `check` gives the cost. */
  readonly from?: string | undefined
  readonly least: number
  readonly most: number
  readonly overrun?: Overrun | undefined
  /** The time for which a charge waits to be settled, in milliseconds. */
  readonly hold?: number | undefined
}

/** The cost of a call by a rule: fixed, or read from the call within bounds, or settled afterwards. */
export type CostInput = number | CostOptions

export const DEFAULT_HOLD_MS = 600_000
export const LONGEST_HOLD_MS = 86_400_000

/** The settlement of the charges of a rule; with `holdMs`, each is a reservation that the store releases after that time. */
export interface SettlementTerms {
  readonly overrun: Overrun | undefined
  readonly holdMs: number | undefined
}

/** Returns the terms of settlement of a rule with one of its words, which reserves what calls cost; others charge it at once. */
export function settlementTerms(input: CostInput | undefined): SettlementTerms {
  if (typeof input !== 'object') return { overrun: undefined, holdMs: undefined }
  const { overrun, hold, reserve, settle } = input
  const isSettled = [overrun, hold, reserve, settle].some(word => word !== undefined)
  if (!isSettled) return { overrun: undefined, holdMs: undefined }
  return { overrun: overrun ?? 'debt', holdMs: hold ?? DEFAULT_HOLD_MS }
}

/**
 * Reads the cost of a call; undefined if the caller of `check` gives it. A value that is not a whole number costs 1, and two values
 * cost the most.
 */
export function compileCost(
  input: CostInput | undefined,
  dimensions: readonly Dimension[],
): ((call: Call) => number) | undefined {
  if (input === undefined) return undefined
  if (typeof input === 'number') return () => input
  const { from, least, most } = input
  if (from === undefined) return undefined
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
