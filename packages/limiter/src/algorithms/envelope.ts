/*
 * What is known of a meter without knowing the exact moments of calls. A replay of a log with whole seconds needs two facts, and each
 * algorithm states them:
 *
 *   ceiling   the calls that it admits never exceed this, in whatever order and at whatever moments they come
 *   floor     it refuses a call only if this has no room for it
 *
 * Both are a window (so many in any interval of that length), a window of the clock, or a bucket (in any interval t at most
 * units + perUs * t). The ceiling may be higher than what the meter admits, and the floor lower; never the other way round.
 */
export type Shape =
  | { readonly kind: 'window'; readonly units: number; readonly periodUs: number }
  | {
      readonly kind: 'clock-window'
      readonly units: number
      readonly periodUs: number
      /** Where the window of a moment begins, if windows are not whole multiples of the period. */
      readonly startOf?: ((at: number) => number) | undefined
    }
  | { readonly kind: 'bucket'; readonly units: number; readonly perUs: number }

export interface Envelope {
  /** The largest cost that a call can have; one of a higher cost is always refused. */
  readonly largest: number
  /** Whether this holds only if every call costs 1. */
  readonly onlyForCost1?: boolean | undefined
  readonly ceiling?: Shape | undefined
  /** The most that it admits in any interval of so many microseconds, if the ceiling is higher than that. */
  readonly most?: ((lengthUs: number) => number) | undefined
  readonly floor?: Shape | undefined
}
