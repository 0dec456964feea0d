import type { CompiledRule } from 'diana-limiter/gateway'
import { startsFrom } from './calendar-starts.ts'

/*
 * How much a limit admits in any interval of a length: all calls whose moments are at least x and below x + length, in whole
 * microseconds.
 *
 *   window        units in each interval of the period, so units for each period that is begun
 *   clock window  units in each window of the clock; an interval touches one more than fit into it
 *   bucket        its size, and what is refilled between the first and the last moment
 *
 * Several limits for the same calls hold together. An interval can be cut into pieces, each counted by another limit: the least sum
 * over all ways to cut it is what passes. Each limit is a constraint on the calls of intervals, and such a system of constraints is
 * totally unimodular: its largest set of calls is as large as its cheapest cover.
 */
export interface Curve {
  /** A window that begins anywhere, for which pieces of the period may be used as often as one likes. */
  readonly windowUs?: number | undefined
  readonly units: number
  /** The kind of its counting: `window` and `clock` periods, or a bucket that refills. */
  readonly kind: 'window' | 'clock' | 'bucket' | 'other'
  /** The length of a window, or the time in which a bucket refills one call. */
  readonly periodUs: number
  most(lengthUs: number): number
}

type Meter = CompiledRule['meters'][number]

/** Beside it, doubles are exact. */
const DUST = 1e-7

/** Returns the curve of one limit for calls of one cost; undefined if nothing bounds it in time. */
export function curveOf(meter: Meter, cost: number, nowUs: number): Curve | undefined {
  const envelope = meter.rate?.envelope
  if (meter.held !== undefined || envelope === undefined || cost < 1) return undefined
  if (envelope.onlyForCost1 && cost !== 1) return undefined
  if (cost > envelope.largest) return { kind: 'window', units: 0, windowUs: 1, periodUs: 1, most: () => 0 }
  const { most, ceiling } = envelope
  if (most !== undefined) {
    return { kind: 'other', periodUs: 0, units: Math.floor(most(1) / cost), most: us => Math.floor(most(us) / cost) }
  }
  if (ceiling === undefined) return undefined
  const units = Math.floor(ceiling.units / cost)
  if (ceiling.kind === 'bucket') {
    const { units: size, perUs } = ceiling
    const periodUs = perUs === 0 ? Number.POSITIVE_INFINITY : cost / perUs
    return { kind: 'bucket', periodUs, units, most: us => Math.floor((size + perUs * (us - 1)) / cost + DUST) }
  }
  const { periodUs } = ceiling
  if (ceiling.kind === 'window') {
    return { kind: 'window', units, periodUs, windowUs: periodUs, most: us => units * Math.ceil(us / periodUs) }
  }
  const { startOf } = ceiling
  if (startOf === undefined) {
    return { kind: 'clock', periodUs, units, most: us => units * (1 + Math.ceil((us - 1) / periodUs)) }
  }
  const touched = mostTouched(startOf, periodUs, nowUs)
  return { kind: 'clock', periodUs: longestOf(periodUs), units, most: us => units * touched(us) }
}

/** Makes a length that is compared with other calendar periods only: days of 25 hours have no multiple. */
function longestOf(periodUs: number): number {
  return periodUs + 0.5
}

/** Returns the most periods of a calendar that an interval touches in the years to come. */
function mostTouched(startOf: (at: number) => number, longestUs: number, nowUs: number): (lengthUs: number) => number {
  return lengthUs => {
    const starts = startsFrom(startOf, longestUs, nowUs)
    let most = 0
    let first = 0
    // an interval that ends with the first moment of a period
    for (let last = 0; last < starts.length; last++) {
      while (starts[first]! < starts[last]! - lengthUs + 2) first++
      most = Math.max(most, last - first + 1)
    }
    return 1 + (lengthUs < 2 ? 0 : most)
  }
}

const MOST_TRIED = 64
const MOST_COVERS = 20_000

/** Returns the most that all of these limits together admit; Infinity if there are none. */
export function mostOf(curves: readonly Curve[], lengthUs: number): number {
  if (curves.length === 0) return Number.POSITIVE_INFINITY
  let least = Math.min(...curves.map(curve => curve.most(lengthUs)))
  const windows = curves.filter(({ windowUs }) => windowUs !== undefined)
  // the cheapest per microsecond first
  windows.sort((a, b) => a.units / a.windowUs! - b.units / b.windowUs!)
  let covers = 0
  const coverRest = (from: number, restUs: number, spent: number): void => {
    if (restUs <= 0) {
      least = Math.min(least, spent)
      return
    }
    for (const curve of curves) least = Math.min(least, spent + curve.most(restUs))
    // the value that was found so far is a bound, too
    if (covers++ > MOST_COVERS) return
    for (let index = from; index < windows.length; index++) {
      const { windowUs, units } = windows[index]!
      if (spent + (restUs / windowUs!) * units >= least) return
      const whole = Math.floor(restUs / windowUs!)
      // few pieces less than as many as fit: more of them would have to be replaced at a higher price
      for (let fewer = 0; fewer < MOST_TRIED && whole - fewer > 0; fewer++) {
        const pieces = whole - fewer
        const lower = spent + pieces * units + ((restUs - pieces * windowUs!) * units) / windowUs!
        if (lower >= least) break
        coverRest(index + 1, restUs - pieces * windowUs!, spent + pieces * units)
      }
    }
  }
  if (curves.length > 1) coverRest(0, lengthUs, 0)
  return least
}

/** True if a limit never refuses a call that the others let pass. */
export function neverRefuses(one: Curve, others: readonly Curve[]): boolean {
  if (others.length === 0) return false
  const { kind, units, periodUs } = one
  if (kind === 'bucket') {
    // in no interval more than the bucket holds and refills
    return others.some(other => other.kind !== 'other' && other.most(2) <= units && paceOf(other) <= 1 / periodUs)
  }
  if (kind === 'other') return false
  const aligned =
    kind === 'clock' ? others.filter(other => other.kind === 'clock' && periodUs % other.periodUs === 0) : []
  if (aligned.some(other => other.units * (periodUs / other.periodUs) <= units)) return true
  return mostOf(others, Math.ceil(periodUs)) <= units
}

/** Calls in a microsecond in the long run. */
function paceOf({ kind, units, periodUs }: Curve): number {
  return kind === 'bucket' ? 1 / periodUs : units / periodUs
}
