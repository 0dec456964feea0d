/*
 * The lowest levels of a bucket since a few moments, so that a refund knows what time has already restored of a charge.
 *
 *  level |      /|\    /|            without the first call the level would have reached 0 where it is lowest since then:
 *        | /|\_/ | \__/ |            a refund gives back min(cost, lowest debt since the call), no more and no less
 *        |/ ^          ^ lowest since the second call
 *        +--|-------------- time
 *           lowest since the first call
 *
 * The lowest debt since a moment is a staircase that rises with the moment. Each step is kept as a pair: the lowest debt, and
 * the first moment since which it holds. A new low removes all steps above it, so a bucket whose calls are not refunded
 * rarely has more than two. A refund lowers every step by what it gives back, which is exact in any order of refunds.
 *
 * There is room for STEPS of them. If there is none, a step that is hardly above the one before it is left out, and else the
 * one is removed that is least above the one before it, in proportion. A charge of its time is then known to be unpaid as far
 * as the step before it says, or as far as the refill up to the step after it does not cover it: a refund may give back too
 * little, never too much.
 *
 * Steps are (LOW, SINCE) pairs from `at` on, oldest first; unused ones are zeros.
 */
export const STEPS = 4
const LOW = 0
const SINCE = 1
const PAIR = 2
/** If there is no room, a step is left out to which the one before it stands in this proportion or a larger one. */
const FLAT = 3 / 4

/** How a bucket refills: `perStep` units at once every `stepUs` microseconds. A continuous refill has steps of 1 microsecond. */
export interface Refill {
  readonly perStep: number
  readonly stepUs: number
}

/** The most units that come back between two moments. */
export function refillBetween({ perStep, stepUs }: Refill, from: number, to: number): number {
  return to <= from ? 0 : Math.ceil((to - from) / stepUs) * perStep
}

/** Notes that the debt has fallen to `low` since the moment `since`. */
export function noteLow(steps: Float64Array, at: number, since: number, low: number): void {
  const end = at + STEPS * PAIR
  const top = steps[end - PAIR + LOW]!
  if (top < low && top >= low * FLAT) return
  let place = at
  while (place < end && steps[place + LOW]! > 0) place += PAIR
  let from = since
  while (place > at && steps[place - PAIR + LOW]! >= low) {
    place -= PAIR
    if (steps[place + SINCE]! < from) from = steps[place + SINCE]!
    steps[place + LOW] = 0
    steps[place + SINCE] = 0
  }
  if (low <= 0) return
  if (place === end) {
    makeRoom(steps, at)
    place -= PAIR
  }
  steps[place + LOW] = low
  steps[place + SINCE] = from
}

/** Removes the step that is least above the one before it. */
function makeRoom(steps: Float64Array, at: number): void {
  const last = at + (STEPS - 1) * PAIR
  let flattest = last
  let largest = 0
  for (let place = last; place > at; place -= PAIR) {
    const ratio = steps[place - PAIR + LOW]! / steps[place + LOW]!
    if (ratio < largest) continue
    flattest = place
    largest = ratio
  }
  // by hand, since copyWithin takes several times as long for so few numbers
  for (let slot = flattest; slot < last; slot++) steps[slot] = steps[slot + PAIR]!
}

/** What is known of a charge. */
export interface Unpaid {
  /** The lowest debt since then, as far as it is known. */
  low: number
  /** What time has not paid of it. */
  units: number
}

/**
 * What time has not restored of `units` that were charged at `moment`, if the level is `level` at `now`. If `isRefill` is false
 * the refill since the charge was another one, and only steps that reach back to it count.
 */
export function unpaidOf(
  steps: Float64Array,
  at: number,
  refill: Refill,
  charge: { readonly units: number; readonly moment: number; readonly isRefill: boolean },
  level: number,
  now: number,
): Unpaid {
  const { units, moment, isRefill } = charge
  let low = 0
  let unpaid = isRefill ? Math.min(level, units - refillBetween(refill, moment, now)) : 0
  for (let place = at; place < at + STEPS * PAIR && steps[place + LOW]! > 0; place += PAIR) {
    const [height, since] = [steps[place + LOW]!, steps[place + SINCE]!]
    if (since <= moment) low = height
    else if (isRefill) unpaid = Math.max(unpaid, Math.min(height, units - refillBetween(refill, moment, since)))
  }
  return { low, units: Math.min(units, Math.max(low, unpaid)) }
}

/** Lowers the steps as if `units` less had been charged at `moment`, since when the lowest debt was `low`. */
export function lowerSteps(steps: Float64Array, at: number, moment: number, units: number, low: number): void {
  let kept = at
  let below = 0
  for (let place = at; place < at + STEPS * PAIR; place += PAIR) {
    const [height, since] = [steps[place + LOW]!, steps[place + SINCE]!]
    const lowered = since >= moment ? height - units : Math.min(height, low - units)
    steps[place + LOW] = 0
    steps[place + SINCE] = 0
    if (lowered <= below) continue
    steps[kept + LOW] = lowered
    steps[kept + SINCE] = since
    below = lowered
    kept += PAIR
  }
}

/** Moves steps of moments to come back to `now`; of several the lowest counts. */
export function rewindSteps(steps: Float64Array, at: number, now: number): void {
  let isLast = false
  for (let place = at; place < at + STEPS * PAIR; place += PAIR) {
    if (isLast) {
      steps[place + LOW] = 0
      steps[place + SINCE] = 0
    } else if (steps[place + SINCE]! > now) {
      steps[place + SINCE] = now
      isLast = true
    }
  }
}
