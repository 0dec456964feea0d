import type { Shape } from 'diana-limiter/gateway'
import { SlidingCounts } from '../../figures/sliding-counts.ts'
import { type ClockWindow, windowOf } from './clock-windows.ts'

/*
 * The most that a meter can have refused, whatever the order and the moments of calls were.
 *
 * A meter refuses a call only if the shape of its floor has no room. A set of calls that keeps within a shape which is narrower by
 * `width` (a window longer by it, a bucket that is charged at x + width and asked at x) keeps within the shape itself in true
 * moments, and a meter that refuses only what does not fit has then admitted at least as many calls up to each moment. So it has
 * refused at most the others.
 *
 * As long as all calls that came, admitted or not, keep within the narrower shape, the meter has surely refused none of them.
 */
export interface Floor {
  /** Counts `units` that came at x, none larger than `largest`; returns how many of them may have been refused up to now, beyond earlier ones. */
  offer(slot: number, x: number, units: number, largest: number): number
  /**
   * Returns by how many units the calls of the key, with those that came last, may exceed the shape; none was refused if that is
   * not above 0.
   */
  excess(slot: number): number
  /** The time for which a key matters after its last call. */
  readonly memoryUs: number
  forget(slot: number): void
}

export interface Uncertainty {
  readonly tickUs: number
  /** A call came in [x, x + width). */
  readonly widthUs: number
  /** The longest time by which a later call may have come before it. */
  readonly aheadUs: number
}

/** Creates the floor of a shape; calls may pass `waitUs` later than they came. */
export function createFloor(shape: Shape | undefined, waitUs: number, uncertainty: Uncertainty): Floor {
  const { widthUs, tickUs, aheadUs } = uncertainty
  if (shape === undefined) return noFloor
  if (shape.kind === 'bucket') return new BucketFloor(shape.units, shape.perUs, widthUs, aheadUs)
  const isCertain = waitUs === 0 && aheadUs === 0 && widthUs === tickUs
  if (shape.kind === 'clock-window' && isCertain && beginsWithTick(shape, tickUs)) return new ClockFloor(shape)
  return new WindowFloor(shape.units, shape.periodUs + waitUs + widthUs + aheadUs)
}

/** True if windows begin with a tick: those of a calendar begin with a second. */
function beginsWithTick({ periodUs, startOf }: ClockWindow, tickUs: number): boolean {
  return (startOf === undefined ? periodUs : 1_000_000) % tickUs === 0
}

const noFloor: Floor = {
  offer: (_slot, _x, units) => units,
  excess: () => Number.POSITIVE_INFINITY,
  memoryUs: Number.POSITIVE_INFINITY,
  forget: () => {},
}

class WindowFloor implements Floor {
  readonly memoryUs: number
  readonly #units: number
  readonly #came: SlidingCounts
  readonly #taken: SlidingCounts
  readonly #all: number[] = []
  readonly #isOver: boolean[] = []

  constructor(units: number, lengthUs: number) {
    this.memoryUs = lengthUs
    this.#units = units
    this.#came = new SlidingCounts(lengthUs, 'late')
    this.#taken = new SlidingCounts(lengthUs, 'late')
  }

  offer(slot: number, x: number, units: number, largest: number): number {
    const before = this.#came.at(slot, x)
    const came = before + units
    this.#all[slot] = came
    if (!this.#isOver[slot]) {
      // as long as all calls are taken, one count is enough for both
      if (came <= this.#units - largest + 1) {
        this.#came.add(slot, x, units)
        return 0
      }
      this.#isOver[slot] = true
      this.#taken.copy(slot, slot, this.#came)
    }
    this.#came.add(slot, x, units)
    const fits = Math.max(0, Math.min(units, this.#units - largest + 1 - this.#taken.at(slot, x)))
    this.#taken.add(slot, x, fits)
    // nothing is left of what was refused
    if (before === 0) this.#isOver[slot] = fits < units
    return units - fits
  }

  excess(slot: number): number {
    return this.#all[slot]! - this.#units
  }

  forget(slot: number): void {
    this.#came.forget(slot)
    this.#taken.forget(slot)
    this.#isOver[slot] = false
  }
}

const DUST = 1e-6

class BucketFloor implements Floor {
  readonly memoryUs: number
  readonly #units: number
  readonly #perUs: number
  readonly #widthUs: number
  readonly #aheadUs: number
  readonly #moments: number[] = []
  /** Counts of all calls that came, and of those that were taken. */
  readonly #came: number[] = []
  readonly #taken: number[] = []
  readonly #highest: number[] = []

  constructor(units: number, perUs: number, widthUs: number, aheadUs: number) {
    this.#units = units
    this.#perUs = perUs
    this.#widthUs = widthUs
    this.#aheadUs = aheadUs
    this.memoryUs = units / perUs + widthUs + aheadUs
  }

  offer(slot: number, x: number, units: number, largest: number): number {
    const moment = this.#moments[slot] ?? x + this.#widthUs
    const asked = Math.max(0, x - moment) * this.#perUs
    const charged = Math.max(0, x + this.#widthUs - moment) * this.#perUs
    const came = this.#came[slot] ?? 0
    const taken = this.#taken[slot] ?? 0
    const level = Math.max(0, taken - asked)
    const room = this.#units - largest + 1 - level
    const fits = Math.max(0, Math.min(units, Math.floor(level === 0 ? room : room - DUST)))
    // calls that came later but may have been first have not been refilled for
    const ahead = this.#aheadUs === 0 ? 0 : (this.#aheadUs + this.#widthUs) * this.#perUs
    this.#highest[slot] = Math.max(0, came - asked) + units + ahead
    this.#came[slot] = Math.max(0, came - charged) + units
    this.#taken[slot] = Math.max(0, taken - charged) + fits
    this.#moments[slot] = x + this.#widthUs
    return units - fits
  }

  excess(slot: number): number {
    return this.#highest[slot]! - this.#units
  }

  forget(slot: number): void {
    this.#came[slot] = 0
    this.#taken[slot] = 0
  }
}

/** Windows of the clock that begin and end with a tick: it is known in which one each call came. */
class ClockFloor implements Floor {
  readonly memoryUs: number
  readonly #units: number
  readonly #windowOf: (x: number) => number
  readonly #window: number[] = []
  readonly #came: number[] = []
  readonly #taken: number[] = []

  constructor(shape: ClockWindow) {
    this.#units = shape.units
    this.#windowOf = windowOf(shape)
    this.memoryUs = shape.periodUs
  }

  offer(slot: number, x: number, units: number, largest: number): number {
    const window = this.#windowOf(x)
    const isSame = this.#window[slot] === window
    const taken = isSame ? this.#taken[slot]! : 0
    this.#window[slot] = window
    this.#came[slot] = (isSame ? this.#came[slot]! : 0) + units
    const fits = Math.max(0, Math.min(units, this.#units - largest + 1 - taken))
    this.#taken[slot] = taken + fits
    return units - fits
  }

  excess(slot: number): number {
    return this.#came[slot]! - this.#units
  }

  forget(slot: number): void {
    this.#window[slot] = -1
  }
}
