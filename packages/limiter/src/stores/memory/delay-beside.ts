import type { Meter } from '../../algorithms/algorithm.ts'

/** Permits that a process holds and does not use are back after this time: see `IDLE_US` of a lease. */
export const RETURNED_US = 500_000

/** One level of a limit with the numbers of a key. */
export interface LevelState {
  readonly meter: Meter
  readonly state: Float64Array
  readonly at: number
}

/**
 * How long until `cost` fits beside permits that are held: at the latest when time has freed it, or when those may be back. The
 * process that asks holds `own` of them, and uses them itself.
 */
export function delayBeside(
  held: number,
  { meter, state, at }: LevelState,
  now: number,
  cost: number,
  own = 0,
): number {
  if (held === 0 || cost === 0) return meter.delay(state, at, now, cost)
  const delayWith = (used: number): number => {
    const delay = meter.delay(state, at, now, cost + used)
    if (delay !== Number.POSITIVE_INFINITY || used === 0) return delay
    // so much never fits at once: first, what is held is used
    const copy = state.slice(at, at + meter.slots)
    book([{ meter, state: copy, at: 0 }], now, used)
    return meter.delay(copy, 0, now, cost)
  }
  const delay = delayWith(held)
  return delay === 0 || own === held ? delay : Math.min(delay, Math.max(delayWith(own), RETURNED_US))
}

/** Counts permits that were used no later than `moment`. */
export function book(levels: readonly LevelState[], moment: number, cost: number): void {
  for (const { meter, state, at } of levels) {
    if (meter.migrate?.record) meter.migrate.record(state, at, moment, cost, 0, false)
    else meter.take(state, at, moment, cost, 0)
  }
}
