import type { CompiledRule } from 'diana-limiter/gateway'
import { startsFrom } from './calendar-starts.ts'
import { curveOf, mostOf } from './curve.ts'

type Meter = CompiledRule['meters'][number]

/** Calls at one moment, in microseconds from the beginning of the interval; earlier ones prepare for it. */
export interface Burst {
  readonly atUs: number
  readonly calls: number
}

/** Calls that pass, and how many of them are in the interval. */
export interface Schedule {
  readonly reached: number
  readonly bursts: readonly Burst[]
  /** The moment at which the interval begins, in microseconds since 1970. */
  readonly startUs: number
}

const MOST_BURSTS = 30_000
/** The bursts after which it is known whether all of them are more than MOST_BURSTS. */
const SAMPLE_BURSTS = 500
const KEPT_BURSTS = 1000
/** A limiter is warm when this number of calls takes as long as the calls before. */
const WARM_CALLS = 500
const MOST_WARM_CALLS = 200_000

/** Returns the schedule of calls that gets most out of these meters in an interval, found with the meters themselves. */
export function findSchedule(
  meters: readonly Meter[],
  lengthUs: number,
  cost: number,
  nowUs: number,
): Schedule | undefined {
  const curves = meters.flatMap(meter => curveOf(meter, cost, nowUs) ?? [])
  const bound = mostOf(curves, lengthUs)
  let best: Schedule | undefined
  for (const beginning of beginnings(meters, lengthUs, cost, nowUs)) {
    for (const isPatient of [true, false]) {
      const found = play(meters, { ...beginning, bound }, lengthUs, cost, isPatient)
      if (found !== undefined && (best === undefined || found.reached > best.reached)) best = found
      if (best !== undefined && best.reached >= bound) return best
    }
  }
  return best
}

interface Beginning {
  readonly startUs: number
  /** The time between a single early call and the interval. */
  readonly early?: number | undefined
  /** The most calls that can pass, as far as it is known. */
  readonly bound?: number | undefined
  /** True if calls come before, as fast as they pass, until a limiter that warms up is warm. */
  readonly isWarm?: boolean | undefined
}

/** Returns moments at which intervals may begin: any, or just before the end of a window of the clock, or of one that a call has begun. */
function beginnings(meters: readonly Meter[], lengthUs: number, cost: number, nowUs: number): Beginning[] {
  const found: Beginning[] = [{ startUs: nowUs }]
  if (meters.some(({ rate }) => rate?.envelope?.onlyForCost1)) found.push({ startUs: nowUs, isWarm: true })
  const clockEnds: { readonly end: number; readonly aheads: readonly number[] }[] = []
  const firstCallPeriods: number[] = []
  for (const meter of meters) {
    const envelope = meter.rate?.envelope
    if (envelope?.most !== undefined) {
      const period = periodOf(meter, cost, nowUs)
      if (period === undefined) continue
      firstCallPeriods.push(period)
      const filled = timeToFill(meters, meter, nowUs, cost)
      for (const ahead of new Set([0, filled])) {
        // a period that the clock begins
        if (ahead < period) found.push({ startUs: nowUs + period - 1 - ahead })
        if (ahead < Math.min(period - 1, lengthUs)) found.push({ startUs: nowUs, early: period - 1 - ahead })
      }
      continue
    }
    if (envelope?.ceiling?.kind !== 'clock-window') continue
    const ends =
      envelope.ceiling.startOf === undefined
        ? [nextMultiple(nowUs, envelope.ceiling.periodUs)]
        : nextStarts(envelope.ceiling.startOf, envelope.ceiling.periodUs, lengthUs, nowUs)
    for (const end of ends) {
      const filled = timeToFill(meters, meter, end, cost)
      clockEnds.push({ end, aheads: filled > 0 && filled < lengthUs ? [0, filled] : [0] })
    }
  }
  for (const { end, aheads } of clockEnds) {
    for (const ahead of aheads) {
      found.push({ startUs: end - 1 - ahead })
      // windows that a call begins may end at the same moment
      for (const period of firstCallPeriods)
        if (ahead < period - 1) found.push({ startUs: end - 1 - ahead, early: period - 1 - ahead })
    }
  }
  return found
}

/** Returns the time until a meter that is used once is as it was: until the period ends that a call or the clock has begun. */
function periodOf(meter: Meter, cost: number, now: number): number | undefined {
  const state = new Float64Array(meter.slots)
  meter.take(state, 0, now, cost, 0)
  const period = meter.idleAt(state, 0) - now
  return period > 1 ? period : undefined
}

function nextMultiple(nowUs: number, periodUs: number): number {
  return (Math.floor(nowUs / periodUs) + 1) * periodUs
}

/** Returns the next beginning of a period, and that of one that is short enough for the interval to touch three. */
function nextStarts(startOf: (at: number) => number, longestUs: number, lengthUs: number, nowUs: number): number[] {
  const starts = startsFrom(startOf, longestUs, nowUs).filter(start => start > nowUs)
  const short = starts.find((start, index) => index + 1 < starts.length && starts[index + 1]! - start <= lengthUs - 2)
  return [...starts.slice(0, 1), ...(short === undefined ? [] : [short])]
}

/** Returns the time that it takes to use up one limit, as fast as the others let calls pass. */
function timeToFill(meters: readonly Meter[], filled: Meter, beforeUs: number, cost: number): number {
  const others = meters.filter(meter => meter !== filled)
  if (others.length === 0) return 0
  const { most: mostIn, ceiling } = filled.rate!.envelope!
  const most = mostIn?.(1) ?? ceiling!.units
  const found = play(
    others,
    { startUs: beforeUs - 1 },
    Number.MAX_SAFE_INTEGER / 4,
    cost,
    false,
    Math.floor(most / cost),
  )
  return found?.bursts.at(-1)?.atUs ?? 0
}

function play(
  meters: readonly Meter[],
  { startUs: givenUs, early, isWarm = false, bound = Number.POSITIVE_INFINITY }: Beginning,
  lengthUs: number,
  cost: number,
  isPatient: boolean,
  enough: number = Number.POSITIVE_INFINITY,
): Schedule | undefined {
  const states = meters.map(meter => new Float64Array(meter.slots))
  const bursts: Burst[] = []
  const take = (now: number, calls: number): void => {
    meters.forEach((meter, index) => {
      // one call after another, as they would come: a meter may price calls apart
      if (meter.rate?.envelope?.onlyForCost1)
        for (let i = 0; i < calls; i++) meter.take(states[index]!, 0, now, cost, 0)
      else meter.take(states[index]!, 0, now, calls * cost, 0)
    })
  }
  const room = (now: number): number =>
    Math.max(0, Math.floor(Math.min(...meters.map((meter, index) => meter.remaining(states[index]!, 0, now))) / cost))
  let startUs = givenUs
  let [before, from] = [0, startUs]
  for (let calls = 1; isWarm && calls <= MOST_WARM_CALLS; calls++) {
    take(startUs, 1)
    const wait = Math.max(...meters.map((meter, index) => meter.delay(states[index]!, 0, startUs, cost)))
    if (!Number.isFinite(wait)) return undefined
    startUs += Math.max(1, wait)
    if (calls % WARM_CALLS > 0) continue
    // moments are whole microseconds
    if (Math.abs(startUs - from - before) <= 2) break
    before = startUs - from
    from = startUs
  }
  if (early !== undefined) {
    for (const [index, meter] of meters.entries())
      if (meter.delay(states[index]!, 0, startUs - early, cost) > 0) return undefined
    take(startUs - early, 1)
    bursts.push({ atUs: -early, calls: 1 })
  }
  // waiting until half of a bucket has refilled loses nothing if it is the only limit, and needs fewer steps
  const half = isPatient ? Math.max(1, Math.floor(room(startUs) / 2)) : 1
  const lastUs = startUs + lengthUs - 1
  let reached = 0
  let now = startUs
  for (let steps = 0; steps < MOST_BURSTS; steps++) {
    const calls = Math.min(room(now), enough - reached)
    if (calls > 0) {
      take(now, calls)
      reached += calls
      if (bursts.length < KEPT_BURSTS || enough < Number.POSITIVE_INFINITY) bursts.push({ atUs: now - startUs, calls })
    }
    if (now >= lastUs || reached >= enough) return { reached, bursts, startUs }
    const wait = Math.max(1, ...meters.map((meter, index) => delayOf(meter, states[index]!, now, half * cost)))
    if (!Number.isFinite(wait)) return { reached, bursts, startUs }
    const isKnown = steps === SAMPLE_BURSTS && enough === Number.POSITIVE_INFINITY && bound > MOST_BURSTS
    if (isKnown && (steps / (now - startUs)) * lengthUs > MOST_BURSTS) return undefined
    now = Math.min(lastUs, now + wait)
  }
  return undefined
}

function delayOf(meter: Meter, state: Float64Array, now: number, cost: number): number {
  const delay = meter.delay(state, 0, now, cost)
  return Number.isFinite(delay) ? delay : meter.delay(state, 0, now, 1)
}
