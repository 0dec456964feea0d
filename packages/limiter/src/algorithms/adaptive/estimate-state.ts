/* The numbers of one key, in an array of the caller. */

/** Where the numbers of one key are, from the first of its state. */
export const IN_FLIGHT = 0
export const LIMIT = 1
export const BASE_US = 2
export const PER_US = 3
export const LIMITING = 4
export const CHANGED_AT = 5
export const FROM = 6
export const AREA = 7
export const GOOD = 8
export const FULL_US = 9
export const SPENT = 10
export const LAST_FLIGHT = 11
export const LAST_US = 12
export const WINDOWS = 13
export const STREAK = 14
export const FLOOR = 15
export const LOWEST = 16
export const ANSWER_US = 17
export const SQUARES = 18
export const DESCENT = 19
export const TRUST = 20

/** How many numbers a key needs. */
export const ESTIMATE_SLOTS = 21

/** The credit for a short excess: the whole burst for this long. */
export const CREDIT_US = 1_000_000
/** So many windows without a queue make the time of an answer reliable. */
export const TRUSTED_WINDOWS = 8

/** The square of the coefficient of variation of the times of a window's answers. */
export function variationOf(state: Float64Array, at: number): number {
  const good = state[at + GOOD]!
  const meanUs = state[at + ANSWER_US]! / good
  return state[at + SQUARES]! / good / (meanUs * meanUs) - 1
}

/** Whether the time of an answer without a queue is known. */
export function isTrusted(state: Float64Array, at: number): boolean {
  return state[at + TRUST]! >= TRUSTED_WINDOWS
}
