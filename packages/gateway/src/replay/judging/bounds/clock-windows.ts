import type { Shape } from 'diana-limiter/gateway'

export type ClockWindow = Extract<Shape, { readonly kind: 'clock-window' }>

/** Returns a number for the window of each moment. */
export function windowOf({ periodUs, startOf }: ClockWindow): (x: number) => number {
  return startOf ?? (x => Math.floor(x / periodUs))
}

/** No period of a calendar is shorter. */
const SHORTEST_US = 20 * 3_600_000_000

/** Returns into how many windows calls fall at most whose first and last window are known, and that are less than `widthUs` apart. */
export function windowsBetween({ startOf }: ClockWindow, first: number, last: number, widthUs: number): number {
  if (startOf === undefined) return last - first + 1
  return first === last ? 1 : 1 + Math.ceil(widthUs / SHORTEST_US)
}
