import type { Algorithm, Limit, Meter, Patience, Twin } from './algorithm.ts'
import { Misfit } from './algorithm.ts'

/*
 * Sliding log: the moment of every admitted call is kept until it has left the window. Exact to the microsecond, at
 * eight bytes a call.
 *
 *          |<------ period ------>|
 *   ..x....|.x...xx......x........|now       count = what lies between
 *
 * The log is a ring of `count` places, each holding the moment at which its call leaves. The place to be written next
 * is the oldest one: a call passes when that one has left, and waits for just that moment if it may.
 * When a rule changes its count, the ring has another size and starts anew; a changed period counts from the next call.
 */
const NEXT = 0
const RING = 1
const LARGEST = 1000

export const slidingLog: Algorithm = {
  name: 'sliding-log',
  limit: 'rate',
  options: {},
  meter(limit: Limit, _options: object, patience?: Patience): Meter {
    if (limit.count > LARGEST) {
      throw new Misfit('limit', `keeps every call, so at most ${LARGEST} per period; use algorithm: sliding-window`)
    }
    return slidingLogMeter(limit, patience)
  },
}

export function slidingLogMeter(limit: Limit, patience?: Patience): Meter {
  return new SlidingLog(limit, patience ? (patience.timeoutUs ?? 1_000_000) : 0)
}

class SlidingLog implements Meter {
  readonly slots: number
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly #count: number
  readonly #periodUs: number

  constructor(limit: Limit, patienceUs: number) {
    this.slots = RING + limit.count
    this.patienceUs = patienceUs
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.numbers = { count: this.#count, periodUs: this.#periodUs }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    return Math.max(0, state[at + RING + this.#place(state, at, cost - 1)]! - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    // a clock that steps back must not write a call before the ones already there
    const leaves = Math.max(now + delay + this.#periodUs, state[at + RING + this.#place(state, at, -1)]!)
    for (let place = 0; place < cost; place++) state[at + RING + this.#place(state, at, place)] = leaves
    state[at + NEXT] = this.#place(state, at, cost)
  }

  giveBack(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    if (moment + this.#periodUs <= now) return
    for (let undone = 0; undone < cost && this.#remove(state, at, moment); undone++);
  }

  remaining(state: Float64Array, at: number, now: number): number {
    let [low, high] = [0, this.#count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (state[at + RING + this.#place(state, at, middle)]! <= now) low = middle + 1
      else high = middle
    }
    return low
  }

  idleAt(state: Float64Array, at: number): number {
    return this.#count === 0 ? 0 : state[at + RING + this.#place(state, at, -1)]!
  }

  /** Takes one call admitted at `moment` out of the log; the older ones move up to fill its place. */
  #remove(state: Float64Array, at: number, moment: number): boolean {
    const leaves = moment + this.#periodUs
    let offset = this.#count - 1
    while (offset >= 0 && state[at + RING + this.#place(state, at, offset)]! > leaves) offset--
    if (offset < 0 || state[at + RING + this.#place(state, at, offset)] !== leaves) return false
    for (; offset > 0; offset--) {
      state[at + RING + this.#place(state, at, offset)] = state[at + RING + this.#place(state, at, offset - 1)]!
    }
    // the call once overwritten by this one had left by `moment`, and came before all that are still here
    const oldest = at + RING + this.#place(state, at, 0)
    const second = this.#count > 1 ? state[at + RING + this.#place(state, at, 1)]! : moment
    state[oldest] = Math.min(moment, second)
    return true
  }

  #place(state: Float64Array, at: number, offset: number): number {
    const place = state[at + NEXT]! + offset
    if (place < 0) return place + this.#count
    return place < this.#count ? place : place - this.#count
  }
}

const twin: Twin = {
  name: 'sliding-log',
  lua: `
local NEXT, RING = 1, 2
local moves = {}

local function place(meter, state, offset)
  local at = state[NEXT] + offset
  if at < 0 then at = at + meter.count elseif at >= meter.count then at = at - meter.count end
  return RING + at
end

local function remove(meter, state, moment)
  local leaves, offset = moment + meter.periodUs, meter.count - 1
  while offset >= 0 and state[place(meter, state, offset)] > leaves do offset = offset - 1 end
  if offset < 0 or state[place(meter, state, offset)] ~= leaves then return false end
  for older = offset, 1, -1 do
    state[place(meter, state, older)] = state[place(meter, state, older - 1)]
  end
  local second = meter.count > 1 and state[place(meter, state, 1)] or moment
  state[place(meter, state, 0)] = min(moment, second)
  return true
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  return max(0, state[place(meter, state, cost - 1)] - now)
end

function moves.take(meter, state, now, cost, delay)
  local leaves = max(now + delay + meter.periodUs, state[place(meter, state, -1)])
  for offset = 0, cost - 1 do state[place(meter, state, offset)] = leaves end
  state[NEXT] = place(meter, state, cost) - RING
end

function moves.giveBack(meter, state, now, cost, moment)
  if moment + meter.periodUs <= now then return end
  for _ = 1, cost do
    if not remove(meter, state, moment) then return end
  end
end

function moves.remaining(meter, state, now)
  local low, high = 0, meter.count
  while low < high do
    local middle = floor((low + high) / 2)
    if state[place(meter, state, middle)] <= now then low = middle + 1 else high = middle end
  end
  return low
end

function moves.idleAt(meter, state)
  return meter.count == 0 and 0 or state[place(meter, state, -1)]
end

return moves`,
}
