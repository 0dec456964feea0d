import type {
  Limit,
  Meter,
  MeterMemory,
  MeterMigration,
  MeterRate,
  MeterRedis,
  MeterStart,
  PassResult,
} from './algorithm.ts'
import { InvalidLimitError, MOST_DEBT } from './algorithm.ts'
import type { Envelope, Shape } from './envelope.ts'
import { lowerSteps, noteLow, type Refill, rewindSteps, STEPS, unpaidOf } from './numbers/low-points.ts'
import { exactRate } from './numbers/rate.ts'

/*
 * The arithmetic that token bucket and leaky bucket share: a debt that every admitted call raises and time pays off.
 *
 *   debt |   /|  /|                 capacity ----------------
 *        |  / | / |\
 *        | /  |/  | \___            a call fits while debt + cost <= capacity
 *        +------------------ time
 *
 * Time pays in steps: `perStep` units every `stepUs`, counted from the call that found the bucket full. A continuous refill
 * has steps of 1 microsecond, an interval refill has steps of the limit's period. Steps of an aligned refill are counted from
 * midnight UTC, as all whole multiples of the period are.
 *
 * debt(now) = max(0, debt - perStep * floor((now - moment) / stepUs))      moment: when the last step began
 *
 * A refund takes off the debt what time has not paid of the call (low-points.ts).
 *
 * The debt is kept in whole units (a token is `token` units), so nothing is ever rounded. A call that waits moves the
 * state on to the moment it will pass, and the next one waits behind it: first come, first served, without a queue.
 */
const LEVEL = 0
const MOMENT = 1
/** Where the low points begin. */
const LOWS = 2
/** How long a bucket that never refills is remembered. */
const LONGEST_US = 86_400_000_000
/** How long, at least, a bucket that starts empty is remembered after it has filled. */
const KEPT_FULL_US = 3_600_000_000
/** No debt takes longer to pay off: moments stay exact. */
const LONGEST_DEBT_US = 3e15

/** A report that comes late costs a bucket nothing: what is held does not refill, and nothing of it is lost. */
const REPORT_US = 100_000

export interface BucketShape {
  /** Tokens that may be taken at once. */
  readonly capacity: number
  /** Tokens that may be taken ahead of time by calls that wait; 0 lets none wait. */
  readonly ahead: number
  /** The longest that a call may wait for them. */
  readonly timeoutUs: number
  /** The largest cost one call may have. */
  readonly largest: number
  /** A new key begins with no tokens. */
  readonly startsEmpty: boolean
  /** Tokens come one by one; or all tokens of a period at once when it ends, the periods counted from a call, or by the clock. */
  readonly refill: 'continuous' | 'interval' | 'aligned'
}

/** How a bucket refills, and from when on its steps are counted. */
type Steps = Refill & Pick<UnitRefill, 'isAligned'>

/** A refill in whole units. */
interface UnitRefill extends Refill {
  readonly token: number
  /** Steps begin at whole multiples of their length. */
  readonly isAligned: boolean
}

export function bucketMeter(limit: Limit, shape: BucketShape): Meter {
  const periodUs = limit.periodMs * 1000
  if (limit.count === 0) {
    const rate = { token: 1_000_000, perStep: 0, stepUs: 1, isAligned: false }
    return new Bucket({ ...shape, capacity: 0, largest: 0, ahead: 0 }, rate, periodUs)
  }
  return new Bucket(shape, rateOf(limit.count, periodUs, shape), periodUs)
}

function rateOf(count: number, periodUs: number, { capacity, ahead, largest, refill }: BucketShape): UnitRefill {
  // a period refills no more than the capacity
  const isAligned = refill === 'aligned'
  if (refill !== 'continuous') return { token: 1, perStep: Math.min(count, capacity), stepUs: periodUs, isAligned }
  const rate = exactRate(count, periodUs, capacity + ahead + largest)
  if (rate === undefined) {
    throw new InvalidLimitError('limit', 'is too slow for so large a bucket; use a shorter period or a smaller burst')
  }
  return { token: rate.token, perStep: rate.perMicro, stepUs: 1, isAligned }
}

class Bucket implements Meter, MeterRate, MeterStart, MeterMigration, MeterMemory {
  readonly slots: number = LOWS + 2 * STEPS
  readonly coreSlots = LOWS
  readonly maxWaitUs: number
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly memory: MeterMemory = this
  readonly redis: MeterRedis
  readonly most: number
  readonly scale: readonly number[]
  readonly perUs: number
  readonly reportUs = REPORT_US
  readonly envelope: Envelope
  readonly start: MeterStart | undefined
  readonly #refill: UnitRefill
  readonly #capacity: number
  /** The largest debt that is counted. */
  readonly #mostDebt: number
  readonly #largest: number
  readonly #startsEmpty: boolean
  readonly #waits: boolean
  /** How long a bucket that starts empty is remembered after it has filled. */
  readonly #keptUs: number

  constructor(shape: BucketShape, refill: UnitRefill, periodUs: number) {
    const { token, perStep, stepUs, isAligned } = refill
    const aheadUs = shape.ahead === 0 ? 0 : Math.ceil((shape.ahead * token) / perStep) * stepUs
    this.maxWaitUs = Math.min(shape.timeoutUs, aheadUs)
    this.most = shape.capacity
    this.#refill = refill
    this.#capacity = shape.capacity * token
    this.#mostDebt = mostDebtOf(this.#capacity, shape.largest, refill)
    this.#largest = shape.largest
    this.#startsEmpty = shape.startsEmpty
    this.#waits = shape.timeoutUs > 0
    this.#keptUs = shape.startsEmpty ? Math.max(KEPT_FULL_US, paidOffUs(this.#capacity, refill)) : 0
    this.perUs = perStep / (token * stepUs)
    this.envelope = envelopeOf(shape, refill, this.perUs)
    this.scale = [periodUs, token, perStep, stepUs, this.#keptUs, this.#capacity, isAligned ? 1 : 0]
    this.start = shape.startsEmpty ? this : undefined
    const numbers = {
      ...{ token, perStep, stepUs, ...(isAligned && { aligned: 1 }) },
      capacity: this.#capacity,
      most: shape.capacity,
      mostDebt: this.#mostDebt,
      largest: shape.largest,
      startsEmpty: shape.startsEmpty ? 1 : 0,
      waits: this.#waits ? 1 : 0,
      keptUs: this.#keptUs,
    }
    this.redis = { lua: { name: 'bucket' }, numbers }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#largest) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    const { token, perStep, stepUs } = this.#refill
    const missing = this.#level(state, at, now) + cost * token - this.#capacity
    if (missing <= 0) return this.#isAhead(state, at, now) ? state[at + MOMENT]! - now : 0
    const begun = this.#isNew(state, at, now) ? this.#stepFrom(now) : stepBefore(state[at + MOMENT]!, now, stepUs)
    return begun + Math.ceil(missing / perStep) * stepUs - now
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    this.begin(state, at, now)
    this.#advance(state, at, Math.max(now + delay, state[at + MOMENT]!))
    const before = state[at + LEVEL]!
    // a call larger than the bucket has been leaking while it waited, down to the brim
    const most = before > this.#capacity ? this.#mostDebt : this.#capacity
    const level = Math.max(before, Math.min(most, before + cost * this.#refill.token))
    // a call that waited leaves less than a microsecond's worth, and no whole token that another call could take before it
    const isBrimful = delay > 0 && this.#refill.stepUs === 1 && this.#capacity - level < this.#refill.perStep
    state[at + LEVEL] = isBrimful ? Math.max(level, this.#capacity - this.#refill.token + 1) : level
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    this.begin(state, at, now)
    this.#advance(state, at, now)
    const before = state[at + LEVEL]!
    const units = Math.min(cost, this.#mostDebt / this.#refill.token) * this.#refill.token
    state[at + LEVEL] = Math.max(before, Math.min(this.#mostDebt, before + units))
  }

  pass(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean {
    const { token, perStep, stepUs } = this.#refill
    const last = state[at + MOMENT]!
    if (now < last || this.#startsEmpty || cost > this.#largest) return this.#passApart(state, at, now, cost, result)
    const level = levelAfter(now - last, state[at + LEVEL]!, this.#refill)
    const left = this.#capacity - level - cost * token
    if (left < 0) {
      const begun = stepUs === 1 ? now : stepBefore(last, now, stepUs)
      result.delay = begun - now + Math.ceil(-left / perStep) * stepUs
      result.remaining = Math.max(0, Math.floor((this.#capacity - level) / token))
      result.idleAt = last + Math.ceil(state[at + LEVEL]! / perStep) * stepUs
      return false
    }
    moveTo(state, at, now, level, this.#refill)
    state[at + LEVEL] = level + cost * token
    result.remaining = Math.floor(left / token)
    result.idleAt = state[at + MOMENT]! + Math.ceil((level + cost * token) / perStep) * stepUs
    return true
  }

  #passApart(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean {
    const delay = this.delay(state, at, now, cost)
    if (delay === 0) this.take(state, at, now, cost, 0)
    result.delay = delay
    result.remaining = this.remaining(state, at, now)
    result.idleAt = this.idleAt(state, at)
    return delay === 0
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    // a key that is forgotten starts again, and owes nothing for what it had before
    if (this.#isNew(state, at, now)) return
    const last = state[at + MOMENT]!
    // if no call ever waits, it is the clock that stepped back
    const then = this.#waits ? now : Math.max(now, last)
    // a step of the clock may have begun before a change of the limit, and what is left of a charge of before is not known
    const isKnown = moment > changedAt || !this.#refill.isAligned
    const isLast = isKnown && (moment >= then || moment >= last)
    if (then < last) this.#rewind(state, at, then)
    else this.#advance(state, at, then)
    const level = state[at + LEVEL]!
    const units = cost * this.#refill.token
    const charge = { units: Math.min(units, this.#capacity), moment, isRefill: moment > changedAt }
    // for the last call, the level itself shows what time has left
    const unpaid = isLast
      ? { units: Math.min(units, level), low: level }
      : unpaidOf(state, at + LOWS, this.#refill, charge, level, then)
    if (unpaid.units <= 0) return
    lowerSteps(state, at + LOWS, moment, unpaid.units, unpaid.low)
    state[at + LEVEL] = level - unpaid.units
  }

  drain(state: Float64Array, at: number, now: number): void {
    this.#advance(state, at, now)
    state[at + LEVEL] = Math.max(this.#capacity, state[at + LEVEL]!)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    if (this.#isAhead(state, at, now)) return 0
    return Math.max(0, Math.floor((this.#capacity - this.#level(state, at, now)) / this.#refill.token))
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [, oldToken = 1, perStep = 0, stepUs = 1, keptUs = 0] = oldScale
    const { token } = this.#refill
    const oldRate = { perStep, stepUs, isAligned: false }
    const before = new Float64Array(this.slots)
    for (let slot = 0; slot < old.length; slot++) before[slot] = old[slot]!
    if (now >= before[MOMENT]! + paidOffUs(before[LEVEL]!, oldRate) + keptUs) return
    if (before[MOMENT]! > now) rewind(before, 0, now, oldRate)
    else advance(before, 0, now, oldRate)
    state[at + LEVEL] = inTokensOf(token, before[LEVEL]!, oldToken)
    // steps of the same length continue, others begin now
    const continues = stepUs === this.#refill.stepUs && !this.#refill.isAligned
    state[at + MOMENT] = continues ? before[MOMENT]! : this.#stepFrom(now)
    for (let slot = LOWS; slot < this.slots; slot += 2) {
      state[at + slot] = inWholeUnits(token, before[slot]!, oldToken)
      if (state[at + slot]! > 0) state[at + slot + 1] = before[slot + 1]!
    }
    // lows that rounding has made 0 are no steps any more
    lowerSteps(state, at + LOWS, Number.NEGATIVE_INFINITY, 0, 0)
  }

  idleAt(state: Float64Array, at: number): number {
    if (isBlank(state, at)) return 0
    return state[at + MOMENT]! + paidOffUs(state[at + LEVEL]!, this.#refill) + this.#keptUs
  }

  fullAt(state: Float64Array, at: number): number {
    return state[at + MOMENT]! + paidOffUs(state[at + LEVEL]!, this.#refill)
  }

  /** A new key of a bucket that starts empty has used the whole capacity. */
  begin(state: Float64Array, at: number, now: number): boolean {
    if (!this.#isNew(state, at, now)) return false
    state.fill(0, at, at + this.slots)
    state[at + LEVEL] = this.#capacity
    state[at + MOMENT] = this.#stepFrom(now)
    return true
  }

  /** The beginning of a step that no call has begun before. */
  #stepFrom(now: number): number {
    return this.#refill.isAligned ? stepBefore(0, now, this.#refill.stepUs) : now
  }

  #isNew(state: Float64Array, at: number, now: number): boolean {
    return this.#startsEmpty && now >= this.idleAt(state, at)
  }

  /** Whether calls that wait have taken the next step already: no call passes before them. */
  #isAhead(state: Float64Array, at: number, now: number): boolean {
    return this.#waits && this.#refill.stepUs > 1 && state[at + MOMENT]! > now
  }

  #level(state: Float64Array, at: number, now: number): number {
    if (this.#isNew(state, at, now)) return this.#capacity
    return levelAfter(now - state[at + MOMENT]!, state[at + LEVEL]!, this.#refill)
  }

  #advance(state: Float64Array, at: number, moment: number): void {
    advance(state, at, moment, this.#refill)
  }

  #rewind(state: Float64Array, at: number, moment: number): void {
    rewind(state, at, moment, this.#refill)
  }
}

function isBlank(state: Float64Array, at: number): boolean {
  return state[at + LEVEL] === 0 && state[at + MOMENT] === 0
}

function levelAfter(elapsedUs: number, level: number, { perStep, stepUs }: Refill): number {
  if (elapsedUs < stepUs) return level
  const steps = stepUs === 1 ? elapsedUs : Math.floor(elapsedUs / stepUs)
  // the first test keeps the product below within exact integers
  return steps >= level / perStep ? 0 : level - steps * perStep
}

/** The beginning of the step in which `now` lies; that of the last one if that is still to come. */
function stepBefore(moment: number, now: number, stepUs: number): number {
  return now <= moment ? moment : moment + Math.floor((now - moment) / stepUs) * stepUs
}

/** Moves a state on to a moment. */
function advance(state: Float64Array, at: number, moment: number, refill: Steps): void {
  const level = levelAfter(moment - state[at + MOMENT]!, state[at + LEVEL]!, refill)
  moveTo(state, at, moment, level, refill)
}

/** Moves a state on to a moment just before which the debt is `debt`, and notes how low that is. */
function moveTo(state: Float64Array, at: number, moment: number, level: number, { stepUs, isAligned }: Steps): void {
  const last = state[at + MOMENT]!
  if (moment <= last) return
  // a full bucket begins its next step with the next call, unless the clock does
  const isBegun = stepUs === 1 || (level === 0 && !isAligned)
  const begun = isBegun ? moment : stepBefore(isAligned ? 0 : last, moment, stepUs)
  if (begun === last) return
  noteLow(state, at + LOWS, last, level)
  state[at + LEVEL] = level
  state[at + MOMENT] = begun
}

/** Moves a state back: what calls that wait were to find paid by then is still owed. */
function rewind(state: Float64Array, at: number, moment: number, { perStep, stepUs }: Refill): void {
  const steps = Math.ceil((state[at + MOMENT]! - moment) / stepUs)
  state[at + LEVEL] = state[at + LEVEL]! + steps * perStep
  state[at + MOMENT] = state[at + MOMENT]! - steps * stepUs
  rewindSteps(state, at + LOWS, state[at + MOMENT]!)
}

/** Whole tokens that, with a call on top, are exact numbers, and that time pays off in a time that is one. */
function mostDebtOf(capacity: number, largest: number, { token, perStep, stepUs }: UnitRefill): number {
  const exact = Math.min(
    Math.floor(Number.MAX_SAFE_INTEGER / token) - largest,
    Math.floor((Math.floor(LONGEST_DEBT_US / stepUs) * perStep) / token),
  )
  return Math.max(capacity, Math.min(capacity * MOST_DEBT, exact * token))
}

/** How long time takes to pay a debt. */
function paidOffUs(level: number, { perStep, stepUs }: Refill): number {
  if (level === 0) return 0
  return perStep === 0 ? LONGEST_US : Math.ceil(level / perStep) * stepUs
}

/** A debt in units of another token, rounded against the caller. */
function inTokensOf(token: number, level: number, oldToken: number): number {
  const whole = Math.floor(level / oldToken)
  const rest = level - whole * oldToken
  const part = Number.isSafeInteger(rest * token)
    ? Math.ceil((rest * token) / oldToken)
    : Math.floor((rest / oldToken) * token) + 1
  return whole * token + Math.min(token, part)
}

/** The same rounded down. */
function inWholeUnits(token: number, level: number, oldToken: number): number {
  const whole = Math.floor(level / oldToken)
  return whole * token + Math.max(0, Math.floor(((level - whole * oldToken) / oldToken) * token) - 1)
}

/** A refill in steps brings up to one step more in an interval, and has paid a full bucket after so many steps as it takes. */
function envelopeOf(shape: BucketShape, { perStep, stepUs, isAligned }: UnitRefill, perUs: number): Envelope {
  const { capacity, largest, startsEmpty, refill, timeoutUs } = shape
  const isInterval = refill !== 'continuous'
  const step = isInterval ? perStep : 0
  const ceiling: Shape = { kind: 'bucket', units: capacity + step, perUs }
  const mostByStep = (lengthUs: number): number => {
    const steps = Math.ceil((lengthUs - 1) / stepUs)
    // the first call begins a period, and the others come just before its end; all can if the clock begins it
    return isAligned
      ? capacity + perStep * steps
      : Math.max(capacity + perStep * (Math.ceil(lengthUs / stepUs) - 1), capacity - 1 + perStep * steps)
  }
  const most = isInterval && capacity > 0 ? mostByStep : undefined
  if (startsEmpty || perStep === 0) return { largest, ceiling, most }
  if (isInterval) {
    const periodUs = Math.ceil(capacity / perStep) * stepUs
    return { largest, ceiling, most, floor: { kind: 'window', units: capacity, periodUs } }
  }
  // a call that has waited leaves less than a whole token
  const units = timeoutUs > 0 ? Math.max(0, capacity - 1) : capacity
  return { largest, ceiling, floor: { kind: 'bucket', units, perUs } }
}
