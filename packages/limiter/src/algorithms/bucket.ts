import type { Limit, Meter, Told, Twin } from './algorithm.ts'
import { Misfit } from './algorithm.ts'
import type { Rate } from './rate.ts'
import { exactRate } from './rate.ts'

/*
 * The arithmetic that token bucket and leaky bucket share: a debt that every admitted call raises and time pays off.
 *
 *   debt |   /|  /|                 capacity ----------------
 *        |  / | / |\
 *        | /  |/  | \___            a call fits while debt + cost <= capacity
 *        +------------------ time
 *
 * debt(now) = max(0, debt - perMicro * (now - moment))      delay = (debt + cost - capacity) / perMicro
 *
 * A refund takes off the debt what time has not paid of it: the cost, but no more than the least debt there was since the
 * call. A state knows that least debt for the last call, and for calls since one moment before it (`since`, `low`). For
 * older calls it is at least the cost less what time can have paid.
 *
 *   debt |  /|\   /|           |\ = another call    without the first call the debt would have been 0 at the dip:
 *        | / | \_/ |                                what is above the dip is all that time has left of it
 *        +------------------ time
 *
 * The debt is kept in whole units (a token is `token` units), so nothing is ever rounded. A call that waits moves the
 * state on to the moment it will pass, and the next one waits behind it: first come, first served, without a queue.
 */
const DEBT = 0
const MOMENT = 1
const LOW = 2
const SINCE = 3
/** A bucket that never refills is remembered for so long. */
const LONGEST_US = 86_400_000_000

export interface BucketShape {
  /** Tokens that may be taken at once. */
  readonly capacity: number
  /** Tokens that may be taken ahead of time by calls that wait; 0 lets none wait. */
  readonly ahead: number
  /** The longest that a call may wait for them. */
  readonly timeoutUs: number
  /** The largest cost one call may have. */
  readonly largest: number
  /** A new key begins with its first call paid for and nothing left. */
  readonly startsEmpty: boolean
}

export function bucketMeter(limit: Limit, shape: BucketShape): Meter {
  const periodUs = limit.periodMs * 1000
  if (limit.count === 0) {
    return new Bucket({ ...shape, capacity: 0, largest: 0, ahead: 0 }, { token: 1_000_000, perMicro: 0 }, periodUs)
  }
  const tokens = shape.capacity + shape.ahead + shape.largest
  const rate = exactRate(limit.count, periodUs, tokens)
  if (rate === undefined) {
    throw new Misfit('limit', 'is too slow for so large a bucket; use a shorter period or a smaller burst')
  }
  return new Bucket(shape, rate, periodUs)
}

class Bucket implements Meter {
  readonly slots = 4
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly most: number
  readonly scale: readonly number[]
  readonly #token: number
  readonly #perMicro: number
  readonly #capacity: number
  readonly #largest: number
  readonly #startsEmpty: boolean
  readonly #waits: boolean
  /** An emptied bucket is full again after so long; 0 where that does not matter. */
  readonly #fillUs: number

  constructor(shape: BucketShape, { token, perMicro }: Rate, periodUs: number) {
    this.patienceUs = shape.ahead === 0 ? 0 : Math.min(shape.timeoutUs, Math.ceil((shape.ahead * token) / perMicro))
    this.most = shape.capacity
    this.#token = token
    this.#perMicro = perMicro
    this.#capacity = shape.capacity * token
    this.#largest = shape.largest
    this.#startsEmpty = shape.startsEmpty
    this.#waits = shape.timeoutUs > 0
    this.#fillUs = shape.startsEmpty && perMicro > 0 ? Math.ceil(this.#capacity / perMicro) : 0
    this.scale = [periodUs, token, perMicro, this.#fillUs, this.#capacity]
    this.numbers = {
      token,
      perMicro,
      capacity: this.#capacity,
      largest: shape.largest,
      startsEmpty: shape.startsEmpty ? 1 : 0,
      waits: this.#waits ? 1 : 0,
      fillUs: this.#fillUs,
    }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#largest) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    const missing = this.#debt(state, at, now) + cost * this.#token - this.#capacity
    if (missing <= 0) return 0
    return Math.max(0, state[at + MOMENT]! - now) + Math.ceil(missing / this.#perMicro)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    const moment = Math.max(now + delay, state[at + MOMENT]!)
    const fresh = this.#startsEmpty && this.#isNew(state, at, now)
    // a call larger than the bucket has been leaking while it waited, down to the brim
    const debt = fresh ? this.#capacity : Math.min(this.#capacity, this.#debt(state, at, moment) + cost * this.#token)
    // whoever waited leaves less than a microsecond's worth, and no token of it, lest another pass before him
    const brimful = delay > 0 && this.#capacity - debt < this.#perMicro
    this.#write(state, at, moment, brimful ? Math.max(debt, this.#capacity - this.#token + 1) : debt)
  }

  pass(state: Float64Array, at: number, now: number, cost: number, told: Told): boolean {
    const elapsedUs = now - state[at + MOMENT]!
    const debt = debtAfter(elapsedUs, state[at + DEBT]!, this.#perMicro) + cost * this.#token
    const left = this.#capacity - debt
    if (left < 0 || elapsedUs < 0 || this.#startsEmpty || cost > this.#largest) {
      const delay = this.delay(state, at, now, cost)
      if (delay === 0) this.take(state, at, now, cost, 0)
      told.delay = delay
      told.remaining = this.remaining(state, at, now)
      told.idleAt = this.idleAt(state, at)
      return delay === 0
    }
    rememberLow(state, at, debt - cost * this.#token, now)
    state[at + DEBT] = debt
    state[at + MOMENT] = now
    told.remaining = Math.floor(left / this.#token)
    told.idleAt = now + Math.ceil(debt / this.#perMicro)
    return true
  }

  giveBack(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    const last = state[at + MOMENT]!
    // if no call ever waits, it is the clock that stepped back
    const then = this.#waits ? now : Math.max(now, last)
    // what was expected to be paid off by the moment of a call that will not come is still owed now
    const debt = this.#debt(state, at, then) + Math.max(0, last - then) * this.#perMicro
    const units = cost * this.#token
    const back = this.#unpaid(state, at, then, units, moment, changedAt)
    if (back === 0) return
    // without this call the debt would have been lower all the time
    state[at + LOW] = Math.max(0, state[at + LOW]! - units)
    this.#write(state, at, then, Math.max(0, debt - back))
  }

  /** What time has not paid of a charge. */
  #unpaid(state: Float64Array, at: number, now: number, units: number, moment: number, changedAt: number): number {
    // no time has passed, or the debt itself says it
    if (moment >= now || moment >= state[at + MOMENT]!) return units
    // what time can have paid at most, if the rate was always this one
    const least = moment > changedAt ? units - (now - moment) * this.#perMicro : 0
    const low = moment >= state[at + SINCE]! ? state[at + LOW]! : 0
    return Math.min(units, Math.max(0, least, low))
  }

  drain(state: Float64Array, at: number, now: number): void {
    this.#write(state, at, Math.max(now, state[at + MOMENT]!), this.#capacity)
  }

  #write(state: Float64Array, at: number, moment: number, debt: number): void {
    rememberLow(state, at, Math.min(debt, this.#debt(state, at, moment)), moment)
    state[at + DEBT] = debt
    state[at + MOMENT] = moment
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, Math.floor((this.#capacity - this.#debt(state, at, now)) / this.#token))
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [, oldToken = 1, oldPerMicro = 0, oldFillUs = 0] = oldScale
    const [debt, moment] = [old[DEBT]!, old[MOMENT]!]
    if (now >= moment + keptUs(debt, oldPerMicro, oldFillUs)) return
    // what calls that wait were to find paid by then is owed now, and paid at the new rate
    const ahead = Math.max(0, moment - now) * oldPerMicro
    const owed = inTokensOf(this.#token, debtAfter(now - moment, debt, oldPerMicro) + ahead, oldToken)
    // whoever is known to a bucket that starts empty is not taken for new
    state[at + DEBT] = Math.max(owed, this.#startsEmpty ? 1 : 0)
    state[at + MOMENT] = now
    // the new rate says nothing of how much was paid by then, the least debt does
    const left = debtAfter(now - moment, debt, oldPerMicro)
    const isRaised = 2 * old[LOW]! < left
    state[at + LOW] = inWholeUnits(this.#token, isRaised ? left : Math.min(left, old[LOW]!), oldToken)
    state[at + SINCE] = Math.min(now, isRaised ? moment : old[SINCE]!)
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + MOMENT]! + keptUs(state[at + DEBT]!, this.#perMicro, this.#fillUs)
  }

  #debt(state: Float64Array, at: number, now: number): number {
    return debtAfter(now - state[at + MOMENT]!, state[at + DEBT]!, this.#perMicro)
  }

  #isNew(state: Float64Array, at: number, now: number): boolean {
    return state[at + DEBT] === 0 || now >= this.idleAt(state, at)
  }
}

function debtAfter(elapsedUs: number, debt: number, perMicro: number): number {
  if (elapsedUs <= 0) return debt
  // the first test keeps the product below within exact integers
  if (elapsedUs >= debt / perMicro) return 0
  return debt - elapsedUs * perMicro
}

/**
 * Notes how low the debt was just before `moment`. There is room for one moment since when the least debt is known: an older
 * one tells of more calls, and is kept unless a later one tells of much more.
 */
function rememberLow(state: Float64Array, at: number, debt: number, moment: number): void {
  const last = state[at + MOMENT]!
  const low = Math.min(state[at + LOW]!, debt)
  const isRaised = moment > last && 2 * low < debt
  state[at + LOW] = isRaised ? debt : low
  if (isRaised) state[at + SINCE] = last
  else if (state[at + SINCE]! > moment) state[at + SINCE] = moment
}

/** How long a debt is remembered; a bucket that starts empty also while full, or staying away would be the way to lose it. */
function keptUs(debt: number, perMicro: number, fillUs: number): number {
  if (debt === 0) return 0
  const paidOffUs = perMicro === 0 ? LONGEST_US : Math.ceil(debt / perMicro)
  return Math.max(paidOffUs, fillUs) + fillUs
}

/** A debt in units of another token, rounded against the caller. */
function inTokensOf(token: number, debt: number, oldToken: number): number {
  const whole = Math.floor(debt / oldToken)
  const rest = debt - whole * oldToken
  const part = Number.isSafeInteger(rest * token)
    ? Math.ceil((rest * token) / oldToken)
    : Math.floor((rest / oldToken) * token) + 1
  return whole * token + Math.min(token, part)
}

/** The same rounded down. */
function inWholeUnits(token: number, debt: number, oldToken: number): number {
  const whole = Math.floor(debt / oldToken)
  return whole * token + Math.max(0, Math.floor(((debt - whole * oldToken) / oldToken) * token) - 1)
}

const twin: Twin = {
  name: 'bucket',
  pass: `
local DEBT, MOMENT, LOW, SINCE = 1, 2, 3, 4
local perMicro, elapsedUs, debt = meter.perMicro, now - state[MOMENT], state[DEBT]
if elapsedUs >= debt / perMicro then debt = 0 else debt = debt - elapsedUs * perMicro end
debt = debt + cost * meter.token
local left = meter.capacity - debt
if left < 0 or elapsedUs < 0 or meter.startsEmpty == 1 or cost > meter.largest then return nil end
local before, low = debt - cost * meter.token, state[LOW]
if before < low then low = before end
if elapsedUs > 0 and 2 * low < before then low, state[SINCE] = before, state[MOMENT] end
state[DEBT], state[MOMENT], state[LOW] = debt, now, low
return floor(left / meter.token), now + ceil(debt / perMicro)`,
  lua: `
local DEBT, MOMENT, LOW, SINCE, LONGEST_US = 1, 2, 3, 4, 86400000000
local moves = {}

local function debtAfter(elapsedUs, debt, perMicro)
  if elapsedUs <= 0 then return debt end
  if elapsedUs >= debt / perMicro then return 0 end
  return debt - elapsedUs * perMicro
end

local function debtAt(meter, state, now)
  return debtAfter(now - state[MOMENT], state[DEBT], meter.perMicro)
end

local function keptUs(debt, perMicro, fillUs)
  if debt == 0 then return 0 end
  local paidOffUs = perMicro == 0 and LONGEST_US or ceil(debt / perMicro)
  return max(paidOffUs, fillUs) + fillUs
end

local function inTokensOf(token, debt, oldToken)
  local whole = floor(debt / oldToken)
  local rest = debt - whole * oldToken
  local part = rest * token < 2 ^ 53 and ceil(rest * token / oldToken) or floor(rest / oldToken * token) + 1
  return whole * token + min(token, part)
end

local function inWholeUnits(token, debt, oldToken)
  local whole = floor(debt / oldToken)
  return whole * token + max(0, floor((debt - whole * oldToken) / oldToken * token) - 1)
end

local function isNew(meter, state, now)
  return state[DEBT] == 0 or now >= moves.idleAt(meter, state)
end

function moves.delay(meter, state, now, cost)
  if cost > meter.largest then return huge end
  if cost == 0 then return 0 end
  local missing = debtAt(meter, state, now) + cost * meter.token - meter.capacity
  if missing <= 0 then return 0 end
  return max(0, state[MOMENT] - now) + ceil(missing / meter.perMicro)
end

local function write(meter, state, moment, debt)
  local last, before = state[MOMENT], min(debt, debtAt(meter, state, moment))
  local low = min(state[LOW], before)
  if moment > last and 2 * low < before then
    low, state[SINCE] = before, last
  elseif state[SINCE] > moment then
    state[SINCE] = moment
  end
  state[DEBT], state[MOMENT], state[LOW] = debt, moment, low
end

function moves.take(meter, state, now, cost, delay)
  local moment = max(now + delay, state[MOMENT])
  local fresh = meter.startsEmpty == 1 and isNew(meter, state, now)
  local debt = fresh and meter.capacity or min(meter.capacity, debtAt(meter, state, moment) + cost * meter.token)
  local brimful = delay > 0 and meter.capacity - debt < meter.perMicro
  write(meter, state, moment, brimful and max(debt, meter.capacity - meter.token + 1) or debt)
end

local function unpaid(meter, state, now, units, moment, changedAt)
  if moment >= now or moment >= state[MOMENT] then return units end
  local least = moment > changedAt and units - (now - moment) * meter.perMicro or 0
  local low = moment >= state[SINCE] and state[LOW] or 0
  return min(units, max(0, least, low))
end

function moves.giveBack(meter, state, now, cost, moment, changedAt)
  local last = state[MOMENT]
  local at = meter.waits == 1 and now or max(now, last)
  local debt = debtAt(meter, state, at) + max(0, last - at) * meter.perMicro
  local units = cost * meter.token
  local back = unpaid(meter, state, at, units, moment, changedAt)
  if back == 0 then return end
  state[LOW] = max(0, state[LOW] - units)
  write(meter, state, at, max(0, debt - back))
end

function moves.remaining(meter, state, now)
  return max(0, floor((meter.capacity - debtAt(meter, state, now)) / meter.token))
end

function moves.inherit(meter, old, oldScale, now)
  local debt, moment = old[DEBT], old[MOMENT]
  local oldToken, oldPerMicro, oldFillUs = oldScale[2], oldScale[3], oldScale[4]
  if now >= moment + keptUs(debt, oldPerMicro, oldFillUs) then return { 0, 0, 0, 0 } end
  local ahead = max(0, moment - now) * oldPerMicro
  local owed = inTokensOf(meter.token, debtAfter(now - moment, debt, oldPerMicro) + ahead, oldToken)
  local left = debtAfter(now - moment, debt, oldPerMicro)
  local isRaised = 2 * old[LOW] < left
  local low = inWholeUnits(meter.token, isRaised and left or min(left, old[LOW]), oldToken)
  return { max(owed, meter.startsEmpty), now, low, min(now, isRaised and moment or old[SINCE]) }
end

function moves.longest(meter, oldScale, leftUs)
  if meter.perMicro == 0 then return LONGEST_US end
  local tokens = (oldScale[5] + leftUs * oldScale[3]) / oldScale[2] + 1
  return ceil(tokens * meter.token / meter.perMicro) + 2 * meter.fillUs
end

function moves.idleAt(meter, state)
  return state[MOMENT] + keptUs(state[DEBT], meter.perMicro, meter.fillUs)
end

return moves`,
}
