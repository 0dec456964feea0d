import type { Meter, MeterMigration, MeterRate, MeterRedis } from './algorithm.ts'
import type { Envelope } from './envelope.ts'

/*
 * The arithmetic of Guava's SmoothRateLimiter: what is remembered is when the next call may pass. A call never waits
 * for itself, it pays by making the next one wait. Unused permits are stored up to `largest`; what a stored
 * permit costs is a curve, and the curve is the whole difference between bursting and warming up.
 *
 *   owed    how long after `moment` the next call may pass
 *   spent   how many of the storable permits are gone: 0 is a limiter never used
 *
 * Both stay small numbers, so that doubles represent them without drift; only `moment` is a date.
 */
const MOMENT = 0
const DEBT = 1
const SPENT = 2
/** So few permits are what doubles leave of none. */
const DUST = 1e-9
/** No debt takes longer to pay off: moments stay exact. */
const LONGEST_DEBT_US = 3e15

/** What stored permits are worth, in microseconds and permits. */
export interface Curve {
  /** The interval between calls when nothing is stored. */
  readonly stableUs: number
  /** The most permits that are stored. */
  readonly largest: number
  /** How long one permit takes to come back while no permit is taken. */
  readonly coolDownUs: number
  /** Up to here a stored permit costs `floorUs`; beyond, `slope` more for each. */
  readonly threshold: number
  readonly floorUs: number
  readonly slope: number
}

export class Smooth implements Meter, MeterRate, MeterMigration {
  readonly slots = 3
  readonly maxWaitUs: number
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly redis: MeterRedis
  readonly scale: readonly number[]
  readonly perUs: number
  readonly envelope?: Envelope | undefined
  readonly #curve: Curve

  constructor(curve: Curve, maxWaitUs: number, periodUs = 0) {
    this.#curve = curve
    this.maxWaitUs = maxWaitUs
    this.redis = { lua: { name: 'smooth' }, numbers: { ...curve } }
    this.perUs = 1 / curve.stableUs
    this.envelope = envelopeOf(curve)
    this.scale = [periodUs, curve.largest, curve.coolDownUs]
  }

  delay(state: Float64Array, at: number, now: number, cost = 1): number {
    if (cost === 0) return 0
    const left = Math.ceil(state[at + DEBT]! - this.#elapsed(state, at, now))
    return left <= 0 ? 0 : left + Math.max(0, state[at + MOMENT]! - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    const spent = this.#settle(state, at, now)
    const stored = Math.min(cost, this.#curve.largest - spent)
    const price = priceUs(this.#curve, this.#curve.largest - spent, stored) + (cost - stored) * this.#curve.stableUs
    state[at + DEBT] = Math.max(now + delay - state[at + MOMENT]!, state[at + DEBT]!) + price
    state[at + SPENT] = spent + stored
  }

  record(state: Float64Array, at: number, now: number, cost: number, delay: number, carries: boolean): void {
    if (carries || this.delay(state, at, now, cost) <= delay) this.take(state, at, now, cost, delay)
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    this.take(state, at, now, cost, 0)
    state[at + DEBT] = Math.min(LONGEST_DEBT_US, state[at + DEBT]!)
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    const { largest, floorUs, stableUs, coolDownUs } = this.#curve
    const isOpen = moment > now
    // what it cost by another limit is not known
    if (!isOpen && moment <= changedAt) return
    const spent = this.#settle(state, at, now)
    // permits that may have come back by themselves do not come back twice
    const permits = isOpen ? cost : Math.max(0, cost - (now - moment) / coolDownUs)
    // if stored permits are free, a call that waits has found none
    const tookNone = isOpen && floorUs < stableUs && spent === largest
    const before = tookNone ? spent : Math.max(0, spent - permits)
    // what it cost is known while it waits, unless it took the last that was stored; else the least it can have cost
    let price = cost * (tookNone ? stableUs : floorUs)
    if (isOpen && spent < largest) price = priceUs(this.#curve, largest - before, spent - before)
    state[at + SPENT] = before
    this.repay(state, at, now, Math.max(0, price - Math.max(0, now - moment)))
  }

  /** Takes `us` off what is owed. */
  repay(state: Float64Array, at: number, now: number, us: number): void {
    this.#settle(state, at, now)
    state[at + DEBT] = Math.max(0, state[at + DEBT]! - us)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return this.delay(state, at, now) === 0 ? 1 : 0
  }

  /** How many calls of cost 1 would pass at once: those that find a stored permit for nothing, and one that pays later. */
  passesAtOnce(state: Float64Array, at: number, now: number): number {
    if (this.delay(state, at, now) > 0) return 0
    const { largest, floorUs, coolDownUs } = this.#curve
    if (floorUs > 0) return 1
    const idle = this.#elapsed(state, at, now) - state[at + DEBT]!
    const spent = Math.max(0, state[at + SPENT]! - Math.max(0, idle) / coolDownUs)
    return Math.floor(largest - spent + DUST) + 1
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [, oldLargest = 1, oldCoolDownUs = 1] = oldScale
    const moment = old[MOMENT]!
    const idle = Math.max(0, now - moment) - old[DEBT]!
    const left = old[SPENT]! - Math.max(0, idle) / oldCoolDownUs
    const spent = left > DUST ? left : 0
    if (idle >= 0 && spent === 0) return
    state[at + MOMENT] = Math.max(now, moment)
    state[at + DEBT] = Math.max(0, -idle)
    state[at + SPENT] = (spent / oldLargest) * this.#curve.largest
  }

  idleAt(state: Float64Array, at: number): number {
    // added last, since beside a date there is no room for fractions
    return state[at + MOMENT]! + Math.ceil(state[at + DEBT]! + state[at + SPENT]! * this.#curve.coolDownUs)
  }

  /** Brings the state to `now`; returns what is spent then. */
  #settle(state: Float64Array, at: number, now: number): number {
    const idle = this.#elapsed(state, at, now) - state[at + DEBT]!
    const left = state[at + SPENT]! - Math.max(0, idle) / this.#curve.coolDownUs
    const spent = left > DUST ? left : 0
    state[at + DEBT] = Math.max(0, -idle)
    state[at + SPENT] = spent
    state[at + MOMENT] = Math.max(now, state[at + MOMENT]!)
    return spent
  }

  #elapsed(state: Float64Array, at: number, now: number): number {
    return Math.max(0, now - state[at + MOMENT]!)
  }
}

/** A state whose store is empty at `now`, as if all its permits had just been spent; the next call passes after `owedUs`. */
export function emptied(curve: Curve, now: number, debtUs = 0): Float64Array {
  const state = new Float64Array(SPENT + 1)
  state[MOMENT] = now
  state[DEBT] = debtUs
  state[SPENT] = curve.largest
  return state
}

/** Stored permits are free: after idling, a burst of them passes at once. */
export function burstCurve(stableUs: number, maxBurstMs: number): Curve {
  const largest = (maxBurstMs * 1000) / stableUs
  return { stableUs, largest, coolDownUs: stableUs, threshold: largest, floorUs: 0, slope: 0 }
}

/**
 * Stored permits are dear: the fuller the store, the colder the limiter, up to `coldFactor` times the stable interval.
 *
 *   interval
 *     cold |            /|
 *          |          /  |      the price of permits is the area under the line
 *   stable |--------/    |
 *          +--------|----|-- stored
 *              threshold largest
 */
export function warmUpCurve(stableUs: number, warmUpUs: number, coldFactor: number): Curve {
  const threshold = (0.5 * warmUpUs) / stableUs
  const largest = threshold + (2 * warmUpUs) / (stableUs + stableUs * coldFactor)
  const slope = (stableUs * coldFactor - stableUs) / (largest - threshold)
  return { stableUs, largest, coolDownUs: warmUpUs / largest, threshold, floorUs: stableUs, slope }
}

/** The price of `permits` out of `stored`: the area under the curve. */
function priceUs({ threshold, floorUs, slope }: Curve, stored: number, permits: number): number {
  const above = Math.max(0, Math.min(permits, stored - threshold))
  return above * (floorUs + (stored - threshold - above / 2) * slope) + (permits - above) * floorUs
}

/** After a call of cost 1 the next one passes no earlier than the stable interval, and no later than the cold one. */
function envelopeOf({ stableUs, largest, threshold, floorUs, slope }: Curve): Envelope | undefined {
  if (floorUs === 0) return undefined
  const coldUs = Math.ceil(floorUs + (largest - threshold) * slope) + 1
  return {
    largest: Number.POSITIVE_INFINITY,
    onlyForCost1: true,
    ceiling: { kind: 'bucket', units: 1, perUs: (1 + DUST) / stableUs },
    floor: { kind: 'window', units: 1, periodUs: coldUs },
  }
}
