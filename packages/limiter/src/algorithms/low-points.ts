/*
 * The lowest debts of a bucket since a few moments, so that a refund can tell what time has already paid of a charge.
 *
 *   debt |      /|\    /|            without the first call the debt would have reached 0 where it is lowest since then:
 *        | /|\_/ | \__/ |            a refund gives back min(cost, lowest debt since the call), no more and no less
 *        |/ ^          ^ lowest since the second call
 *        +--|-------------- time
 *           lowest since the first call
 *
 * The lowest debt since a moment is a staircase that rises with the moment. Each step is kept as a pair: the lowest debt, and
 * the first moment since which it holds. A new low removes all steps above it, so a bucket whose calls are not refunded
 * rarely has more than two. A refund lowers every step by what it gives back, which is exact in any order of refunds.
 *
 * There is room for STEPS of them. Where there is one more, the one is removed that is least above the step before it, in
 * proportion. A charge of its time is then known to be unpaid as far as the step before it says, or as far as the refill up
 * to the step after it does not cover it: a refund may give back too little, never too much.
 *
 * Steps are (LOW, SINCE) pairs from `at` on, oldest first; unused ones are zeros.
 */
export const STEPS = 4
const LOW = 0
const SINCE = 1
const PAIR = 2

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
  let size = 0
  while (size < STEPS && steps[at + size * PAIR + LOW]! > 0) size++
  let from = since
  while (size > 0 && steps[at + (size - 1) * PAIR + LOW]! >= low) {
    const top = at + --size * PAIR
    from = Math.min(from, steps[top + SINCE]!)
    steps[top + LOW] = 0
    steps[top + SINCE] = 0
  }
  if (low <= 0) return
  if (size === STEPS) {
    if (!makeRoom(steps, at, low)) return
    size--
  }
  steps[at + size * PAIR + LOW] = low
  steps[at + size * PAIR + SINCE] = from
}

/** Removes the step that is least above the one before it and returns true; false if that is the one to be added. */
function makeRoom(steps: Float64Array, at: number, low: number): boolean {
  let flattest = STEPS
  let largest = steps[at + (STEPS - 1) * PAIR + LOW]! / low
  for (let step = STEPS - 1; step > 0; step--) {
    const place = at + step * PAIR
    const ratio = steps[place - PAIR + LOW]! / steps[place + LOW]!
    if (ratio >= largest) [flattest, largest] = [step, ratio]
  }
  if (flattest === STEPS) return false
  steps.copyWithin(at + flattest * PAIR, at + (flattest + 1) * PAIR, at + STEPS * PAIR)
  return true
}

/** What is known of a charge. */
export interface Unpaid {
  /** The lowest debt since then, as far as it is known. */
  low: number
  /** What time has not paid of it. */
  units: number
}

/**
 * What time has not paid of `units` that were charged at `moment`, where the debt is `debt` at `now`. If `isRefill` is false
 * the refill since the charge was another one, and only steps that reach back to it count.
 */
export function unpaidOf(
  steps: Float64Array,
  at: number,
  refill: Refill,
  charge: { readonly units: number; readonly moment: number; readonly isRefill: boolean },
  debt: number,
  now: number,
): Unpaid {
  const { units, moment, isRefill } = charge
  let low = 0
  let unpaid = isRefill ? Math.min(debt, units - refillBetween(refill, moment, now)) : 0
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
