import type { Shape } from 'diana-limiter/gateway'
import { SlidingCounts } from '../../figures/sliding-counts.ts'
import { type ClockWindow, windowOf, windowsBetween } from './clock-windows.ts'

/*
 * The least that a meter must have refused, whatever the order and the moments of calls were.
 *
 * A call is known to have come in [x, x + width). What was admitted never exceeds the shape of the meter, in true moments; so in the
 * moments x it never exceeds a shape that is wider by `width`: a window shorter by it, a bucket larger by what it refills in it.
 * Among all sets of calls that do not exceed that shape, taking each call that fits gives the largest (a call that is taken
 * earlier leaves earlier). What is left over was refused.
 */
export interface Ceiling {
  /** Takes of `units` that came at x as many as fit, and returns how many do not. */
  offer(slot: number, x: number, units: number): number
  /** Takes over the state of a key from another one of this kind. */
  copy(from: number, to: number, other: Ceiling): void
  forget(slot: number): void
}

/** Creates the ceiling of a shape for calls whose moments are known to within `widthUs`. */
export function createCeiling(shape: Shape, widthUs: number, tickUs: number): Ceiling {
  if (shape.kind === 'bucket') return new BucketCeiling(shape.units + shape.perUs * widthUs, shape.perUs)
  if (shape.kind === 'clock-window') return new ClockCeiling(shape, widthUs)
  // moments x are multiples of a tick, so that all within the first length are in one window of true moments
  const lengthUs = shape.periodUs - widthUs
  if (lengthUs >= 0) return new WindowCeiling(shape.units, lengthUs + 1)
  const windows = Math.ceil(widthUs / shape.periodUs)
  return new WindowCeiling(shape.units * windows, Math.min(1, tickUs))
}

class WindowCeiling implements Ceiling {
  readonly #units: number
  readonly #taken: SlidingCounts

  constructor(units: number, lengthUs: number) {
    this.#units = units
    this.#taken = new SlidingCounts(lengthUs, 'early')
  }

  offer(slot: number, x: number, units: number): number {
    const fits = Math.max(0, Math.min(units, this.#units - this.#taken.at(slot, x)))
    this.#taken.add(slot, x, fits)
    return units - fits
  }

  copy(from: number, to: number, other: WindowCeiling): void {
    this.#taken.copy(from, to, other.#taken)
  }

  forget(slot: number): void {
    this.#taken.forget(slot)
  }
}

/** Beside it, sums of doubles are exact. */
const DUST = 1e-6

class BucketCeiling implements Ceiling {
  readonly #units: number
  readonly #perUs: number
  readonly #levels: number[] = []
  readonly #moments: number[] = []

  constructor(units: number, perUs: number) {
    this.#units = units
    this.#perUs = perUs
  }

  offer(slot: number, x: number, units: number): number {
    const before = this.#levels[slot] ?? 0
    const level = Math.max(0, before - (x - (this.#moments[slot] ?? x)) * this.#perUs)
    const fits = Math.max(0, Math.min(units, Math.floor(this.#units - level + DUST)))
    this.#levels[slot] = level + fits
    this.#moments[slot] = x
    return units - fits
  }

  copy(from: number, to: number, other: BucketCeiling): void {
    this.#levels[to] = other.#levels[from] ?? 0
    this.#moments[to] = other.#moments[from] ?? 0
  }

  forget(slot: number): void {
    this.#levels[slot] = 0
  }
}

/** Calls that may have come in one window or another are counted apart: they fit into all of these together. */
class ClockCeiling implements Ceiling {
  readonly #shape: ClockWindow
  readonly #windowOf: (x: number) => number
  readonly #widthUs: number
  readonly #first: number[] = []
  readonly #last: number[] = []
  readonly #taken: number[] = []

  constructor(shape: ClockWindow, widthUs: number) {
    this.#shape = shape
    this.#windowOf = windowOf(shape)
    this.#widthUs = widthUs
  }

  offer(slot: number, x: number, units: number): number {
    const first = this.#windowOf(x)
    const last = this.#windowOf(x + Math.max(1, this.#widthUs) - 1)
    if (this.#first[slot] !== first || this.#last[slot] !== last) {
      this.#first[slot] = first
      this.#last[slot] = last
      this.#taken[slot] = 0
    }
    const taken = this.#taken[slot]!
    const windows = windowsBetween(this.#shape, first, last, this.#widthUs)
    const fits = Math.max(0, Math.min(units, this.#shape.units * windows - taken))
    this.#taken[slot] = taken + fits
    return units - fits
  }

  copy(from: number, to: number, other: ClockCeiling): void {
    this.#first[to] = other.#first[from] ?? -1
    this.#last[to] = other.#last[from] ?? -1
    this.#taken[to] = other.#taken[from] ?? 0
  }

  forget(slot: number): void {
    this.#first[slot] = -1
  }
}
