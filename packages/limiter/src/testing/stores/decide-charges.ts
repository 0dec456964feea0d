import { fullAt, type Meter } from '../../algorithms/algorithm.ts'
import { type CatchUp, catchUpTable } from '../../stores/catch-up.ts'
import type { Held } from '../../stores/leases/reservations.ts'
import { delayBeside } from '../../stores/memory/delay-beside.ts'
import { layOut } from '../../stores/memory/migrate-states.ts'
import type { FleetCharge, FleetCounter, FleetRefund } from '../../stores/store.ts'

const NONE_HELD: Held = { amount: 0, until: 0 }

/**
 * Returns the size of a state: the numbers of each level of the rule, one after the other, and at its end the moment of the last reset.
 * All zeros is a key never seen.
 */
export function stateSize({ meters }: FleetCounter): number {
  return meters.reduce((sum, { slots }) => sum + slots, 1)
}

/**
 * Decides all charges of a call by the states of their keys, and writes the answer of each level into the charges. `take`
 * counts all charges if the call is allowed, and none otherwise; `look` changes no state. `held` is what processes hold of each key
 * in advance, for a store that leases permits.
 */
export function decideCharges(
  what: 'take' | 'look',
  charges: readonly FleetCharge[],
  states: readonly Float64Array[],
  now: number,
  held: readonly Held[] = [],
): boolean {
  charges.forEach((charge, i) => void measure(charge, states[i]!, now, held[i] ?? NONE_HELD))
  const allowed = charges.every(({ fits, enforced }) => fits || !enforced)
  charges.forEach((charge, i) => {
    if (what === 'take' && charge.cost > 0) count(charge, states[i]!, now, allowed && charge.fits)
    report(charge, states[i]!, now, held[i] ?? NONE_HELD)
  })
  return allowed
}

/** Refunds a charge, unless the key was reset since. */
export function refundCharge({ counter, cost, moment, wait = 0 }: FleetRefund, state: Float64Array, now: number): void {
  if (moment - wait < state.at(-1)!) return
  for (const [meter, at] of levelsOf(counter)) meter.refund(state, at, now, cost, moment)
}

/** Forgets what is counted for a key. Charges of before are not refunded any more; a charge at `now` is later. */
export function resetState(state: Float64Array, now: number): void {
  state.fill(0)
  state[state.length - 1] = now
}

/** Counts what the store has missed of a key, as far as it fits, and writes into `unfit` what does not. */
export function catchUpState(missed: CatchUp<FleetCounter>, state: Float64Array, now: number): void {
  const { meters, offsets } = layOut(missed.counter.meters)
  catchUpTable({ meters, offsets, state: () => state, base: () => 0 }, 0, missed, now)
}

/** Returns each meter of a counter, and where its numbers begin. */
function levelsOf(counter: FleetCounter): [meter: Meter, at: number][] {
  const { meters, offsets } = layOut(counter.meters)
  return meters.map((meter, level) => [meter, offsets[level]!])
}

function measure(charge: FleetCharge, state: Float64Array, now: number, held: Held): void {
  const { counter, cost, mayWait, delays } = charge
  charge.wait = 0
  charge.fits = true
  levelsOf(counter).forEach(([meter, at], level) => {
    const delay = delayBeside(held.amount, { meter, state, at }, now, cost)
    delays[level] = delay
    charge.wait = Math.max(charge.wait, delay)
    if (delay > (mayWait ? meter.maxWaitUs : 0)) charge.fits = false
  })
}

function count({ counter, cost, wait }: FleetCharge, state: Float64Array, now: number, isAdmitted: boolean): void {
  for (const [meter, at] of levelsOf(counter)) {
    if (isAdmitted) meter.take(state, at, now, cost, wait)
    else meter.rate?.start?.begin(state, at, now)
  }
}

function report({ counter, remaining, resets }: FleetCharge, state: Float64Array, now: number, held: Held): void {
  levelsOf(counter).forEach(([meter, at], level) => {
    remaining[level] = Math.max(0, meter.remaining(state, at, now) - held.amount)
    resets[level] = Math.max(0, fullAt(meter, state, at) - now)
  })
}
