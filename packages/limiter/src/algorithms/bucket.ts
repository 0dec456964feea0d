import type { Limit, Meter, Twin } from './algorithm.ts'
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

export interface BucketShape {
  /** Tokens that may be taken at once. */
  readonly capacity: number
  /** Tokens that may be taken ahead of time by calls that wait. */
  readonly ahead: number
  /** The largest cost one call may have. */
  readonly largest: number
  readonly patienceUs: number
  /** A new key begins with its first call paid for and nothing left. */
  readonly startsEmpty: boolean
}

export function bucketMeter(limit: Limit, shape: BucketShape): Meter {
  if (limit.count === 0) return new Bucket({ ...shape, capacity: 0, largest: 0 }, { token: 1, perMicro: 1 })
  const tokens = shape.capacity + shape.ahead + shape.largest
  const rate = exactRate(limit.count, limit.periodMs * 1000, tokens)
  if (rate === undefined) {
    throw new Misfit('limit', 'is too slow for so large a bucket; use a shorter period or a smaller burst')
  }
  return new Bucket(shape, rate)
}

class Bucket implements Meter {
  readonly slots = 2
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly #token: number
  readonly #perMicro: number
  readonly #capacity: number
  readonly #largest: number
  readonly #startsEmpty: boolean
  /** An emptied bucket is full again after so long. */
  readonly #fillUs: number

  constructor(shape: BucketShape, { token, perMicro }: Rate) {
    this.patienceUs = shape.patienceUs
    this.#token = token
    this.#perMicro = perMicro
    this.#capacity = shape.capacity * token
    this.#largest = shape.largest
    this.#startsEmpty = shape.startsEmpty
    this.#fillUs = Math.ceil(this.#capacity / perMicro)
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

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, Math.floor((this.#capacity - this.#debt(state, at, now)) / this.#token))
  }

  idleAt(state: Float64Array, at: number): number {
    const paidOff = Math.ceil(state[at + DEBT]! / this.#perMicro)
    if (!this.#startsEmpty || paidOff === 0) return state[at + MOMENT]! + paidOff
    // a bucket that starts empty must be remembered while full, or staying away would be the way to lose it
    return state[at + MOMENT]! + Math.max(paidOff, this.#fillUs) + this.#fillUs
  }

  #debt(state: Float64Array, at: number, now: number): number {
    const debt = state[at + DEBT]!
    const elapsed = now - state[at + MOMENT]!
    if (elapsed <= 0) return debt
    // the first test keeps the product below within exact integers
    if (elapsed >= debt / this.#perMicro) return 0
    return debt - elapsed * this.#perMicro
  }

  #isNew(state: Float64Array, at: number, now: number): boolean {
    return state[at + DEBT] === 0 || now >= this.idleAt(state, at)
  }
}

const twin: Twin = {
  name: 'bucket',
  lua: `
local DEBT, MOMENT = 1, 2
local moves = {}

local function debtAt(meter, state, now)
  local debt, elapsed = state[DEBT], now - state[MOMENT]
  if elapsed <= 0 then return debt end
  if elapsed >= debt / meter.perMicro then return 0 end
  return debt - elapsed * meter.perMicro
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

function moves.idleAt(meter, state)
  local paidOff = ceil(state[DEBT] / meter.perMicro)
  if meter.startsEmpty == 1 and paidOff > 0 then paidOff = max(paidOff, meter.fillUs) + meter.fillUs end
  return state[MOMENT] + paidOff
end

return moves`,
}
