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
 * The debt is kept in whole units (a token is `token` units), so nothing is ever rounded. A call that waits moves the
 * state on to the moment it will pass, and the next one waits behind it: first come, first served, without a queue.
 */
const DEBT = 0
const MOMENT = 1
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
  readonly slots = 2
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly scale: readonly number[]
  readonly #token: number
  readonly #perMicro: number
  readonly #capacity: number
  readonly #largest: number
  readonly #startsEmpty: boolean
  /** An emptied bucket is full again after so long; 0 where that does not matter. */
  readonly #fillUs: number

  constructor(shape: BucketShape, { token, perMicro }: Rate, periodUs: number) {
    this.patienceUs = shape.ahead === 0 ? 0 : Math.min(shape.timeoutUs, Math.ceil((shape.ahead * token) / perMicro))
    this.#token = token
    this.#perMicro = perMicro
    this.#capacity = shape.capacity * token
    this.#largest = shape.largest
    this.#startsEmpty = shape.startsEmpty
    this.#fillUs = shape.startsEmpty && perMicro > 0 ? Math.ceil(this.#capacity / perMicro) : 0
    this.scale = [periodUs, token, perMicro, this.#fillUs, this.#capacity]
    this.numbers = {
      token,
      perMicro,
      capacity: this.#capacity,
      largest: shape.largest,
      startsEmpty: shape.startsEmpty ? 1 : 0,
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
    const moment = now + delay
    const fresh = this.#startsEmpty && this.#isNew(state, at, now)
    // a call larger than the bucket has been leaking while it waited, down to the brim
    const debt = fresh ? this.#capacity : Math.min(this.#capacity, this.#debt(state, at, moment) + cost * this.#token)
    // whoever waited leaves less than a microsecond's worth, and no token of it, lest another pass before him
    const brimful = delay > 0 && this.#capacity - debt < this.#perMicro
    state[at + DEBT] = brimful ? Math.max(debt, this.#capacity - this.#token + 1) : debt
    state[at + MOMENT] = Math.max(moment, state[at + MOMENT]!)
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
    state[at + DEBT] = debt
    state[at + MOMENT] = now
    told.remaining = Math.floor(left / this.#token)
    told.idleAt = now + Math.ceil(debt / this.#perMicro)
    return true
  }

  giveBack(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    const last = state[at + MOMENT]!
    // what was expected to be paid off by the moment of a call that will not come is still owed now
    const ahead = Math.max(0, last - now) * this.#perMicro
    // time may have paid for an earlier call already, and what it paid is not there twice
    const paid = moment === last ? 0 : Math.max(0, now - moment) * this.#perMicro
    const back = Math.max(0, cost * this.#token - paid)
    state[at + DEBT] = Math.max(0, this.#debt(state, at, now) + ahead - back)
    state[at + MOMENT] = now
  }

  drain(state: Float64Array, at: number, now: number): void {
    state[at + DEBT] = this.#capacity
    state[at + MOMENT] = Math.max(now, state[at + MOMENT]!)
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

const twin: Twin = {
  name: 'bucket',
  pass: `
local DEBT, MOMENT = 1, 2
local perMicro, elapsedUs, debt = meter.perMicro, now - state[MOMENT], state[DEBT]
if elapsedUs >= debt / perMicro then debt = 0 else debt = debt - elapsedUs * perMicro end
debt = debt + cost * meter.token
local left = meter.capacity - debt
if left < 0 or elapsedUs < 0 or meter.startsEmpty == 1 or cost > meter.largest then return nil end
state[DEBT], state[MOMENT] = debt, now
return floor(left / meter.token), now + ceil(debt / perMicro)`,
  lua: `
local DEBT, MOMENT, LONGEST_US = 1, 2, 86400000000
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

function moves.take(meter, state, now, cost, delay)
  local moment = now + delay
  local fresh = meter.startsEmpty == 1 and isNew(meter, state, now)
  local debt = fresh and meter.capacity or min(meter.capacity, debtAt(meter, state, moment) + cost * meter.token)
  local brimful = delay > 0 and meter.capacity - debt < meter.perMicro
  state[DEBT] = brimful and max(debt, meter.capacity - meter.token + 1) or debt
  state[MOMENT] = max(moment, state[MOMENT])
end

function moves.giveBack(meter, state, now, cost, moment)
  local last = state[MOMENT]
  local ahead = max(0, last - now) * meter.perMicro
  local paid = moment == last and 0 or max(0, now - moment) * meter.perMicro
  local back = max(0, cost * meter.token - paid)
  state[DEBT] = max(0, debtAt(meter, state, now) + ahead - back)
  state[MOMENT] = now
end

function moves.remaining(meter, state, now)
  return max(0, floor((meter.capacity - debtAt(meter, state, now)) / meter.token))
end

function moves.inherit(meter, old, oldScale, now)
  local debt, moment = old[DEBT], old[MOMENT]
  local oldToken, oldPerMicro, oldFillUs = oldScale[2], oldScale[3], oldScale[4]
  if now >= moment + keptUs(debt, oldPerMicro, oldFillUs) then return { 0, 0 } end
  local ahead = max(0, moment - now) * oldPerMicro
  local owed = inTokensOf(meter.token, debtAfter(now - moment, debt, oldPerMicro) + ahead, oldToken)
  return { max(owed, meter.startsEmpty), now }
end

function moves.idleAt(meter, state)
  return state[MOMENT] + keptUs(state[DEBT], meter.perMicro, meter.fillUs)
end

return moves`,
}
