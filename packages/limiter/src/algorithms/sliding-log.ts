import type { Algorithm, Limit, LuaAlgorithm, Meter, WaitOptions } from './algorithm.ts'
import { InvalidLimitError, maxWaitUsOf } from './algorithm.ts'

/*
 * Sliding log: the moment of every admitted call is kept until it has left the window. Exact to the microsecond, at
 * eight bytes a call.
 *
 *          |<------ period ------>|
 *   ..x....|.x...xx......x........|now       count = what lies between
 *
 * The log is a ring of `count` entries, each the moment at which its call leaves. The entry to be written next
 * is the oldest one: a call passes when that one has left, and waits for just that moment if it may.
 * Older calls without an entry, because others wait for them to leave or the limit was lowered, are `dropped`:
 * only their number is kept, for they leave before all others. When a rule changes, the newest calls are kept, as many as
 * the new limit covers, and leave after the new period.
 */
const NEXT = 0
const RING = 1
const LARGEST = 1000
/** The first number of a state is the entry to be written next plus, in steps of this, how many calls were dropped. */
const DROPPED = 1024

export const slidingLog: Algorithm = {
  name: 'sliding-log',
  limit: 'rate',
  options: {},
  meter(limit: Limit, _options: object, waitOptions?: WaitOptions): Meter {
    if (limit.count > LARGEST) {
      throw new InvalidLimitError(
        'limit',
        `keeps every call, so at most ${LARGEST} per period; use algorithm: sliding-window`,
      )
    }
    return new SlidingLog(limit, maxWaitUsOf(waitOptions))
  },
}

class SlidingLog implements Meter {
  readonly slots: number
  readonly needsRelease = false
  readonly lua: LuaAlgorithm = slidingLogLua
  readonly numbers: Readonly<Record<string, number>>
  readonly maxWaitUs: number
  readonly scale: readonly number[]
  readonly perUs: number
  readonly windowUs: number
  readonly #count: number
  readonly #places: number
  readonly #periodUs: number

  constructor(limit: Limit, maxWaitUs: number) {
    // with a limit of 0 one entry remembers when the last call leaves, in case the limit changes
    this.#places = Math.max(1, limit.count)
    this.slots = RING + this.#places
    this.maxWaitUs = maxWaitUs
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.perUs = limit.count / this.#periodUs
    this.windowUs = this.#periodUs
    this.scale = [this.#periodUs]
    this.numbers = { count: this.#count, places: this.#places, periodUs: this.#periodUs }
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
    // if a kept call has left, so have all that were dropped
    const dropped = delay === 0 ? 0 : Math.min(LARGEST, droppedIn(state[at + NEXT]!) + cost)
    state[at + NEXT] = this.#place(state, at, cost) + dropped * DROPPED
  }

  record(state: Float64Array, at: number, now: number, cost: number, delay: number, carries: boolean): void {
    const fitsIn = carries && cost <= this.#count ? this.delay(state, at, now, cost) : 0
    const leaves = Math.max(
      now + Math.max(delay, fitsIn) + this.#periodUs,
      state[at + RING + this.#place(state, at, -1)]!,
    )
    let dropped = this.#isFull(state, at, now) ? droppedIn(state[at + NEXT]!) : 0
    const places = Math.min(cost, this.#places)
    for (let offset = 0; offset < places; offset++) {
      const place = at + RING + this.#place(state, at, offset)
      if (state[place]! > now) dropped++
      state[place] = leaves
    }
    dropped = Math.min(LARGEST, dropped + cost - places)
    state[at + NEXT] = (((state[at + NEXT]! % DROPPED) + places) % this.#places) + dropped * DROPPED
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    if (moment + this.#periodUs <= now) return
    for (let undone = 0; undone < cost && this.#remove(state, at, now, moment); undone++);
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

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const oldPlaces = old.length - RING
    const leavesAt = (age: number): number => old[RING + (((old[NEXT]! % DROPPED) - age + oldPlaces) % oldPlaces)]!
    let dropped = leavesAt(oldPlaces) > now ? droppedIn(old[NEXT]!) : 0
    const known = oldPlaces + Math.min(dropped, Math.max(0, this.#places - oldPlaces))
    dropped -= known - oldPlaces
    for (let age = 1; age <= known; age++) {
      const leaves = leavesAt(Math.min(age, oldPlaces))
      if (leaves <= now) break
      if (age > this.#places) dropped++
      else state[at + RING + this.#places - age] = leaves + this.#periodUs - oldScale[0]!
    }
    state[at + NEXT] = dropped * DROPPED
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + RING + this.#place(state, at, -1)]!
  }

  /** Takes one call admitted at `moment` out of the log; the older ones move up to fill its entry. */
  #remove(state: Float64Array, at: number, now: number, moment: number): boolean {
    const leaves = moment + this.#periodUs
    let offset = this.#places - 1
    while (offset >= 0 && state[at + RING + this.#place(state, at, offset)]! > leaves) offset--
    if (offset < 0 || state[at + RING + this.#place(state, at, offset)] !== leaves) return false
    for (; offset > 0; offset--) {
      state[at + RING + this.#place(state, at, offset)] = state[at + RING + this.#place(state, at, offset - 1)]!
    }
    if (droppedIn(state[at + NEXT]!) > 0) {
      state[at + NEXT] = state[at + NEXT]! - DROPPED
      // a dropped call has an entry again, and leaves no later than the next one
      if (moment <= now) return true
    }
    // the call once overwritten by this one had left by `moment`, and came before all that are still here
    const oldest = at + RING + this.#place(state, at, 0)
    const second = this.#places > 1 ? state[at + RING + this.#place(state, at, 1)]! : moment
    state[oldest] = Math.min(moment, second)
    return true
  }

  #isFull(state: Float64Array, at: number, now: number): boolean {
    return state[at + RING + this.#place(state, at, 0)]! > now
  }

  #place(state: Float64Array, at: number, offset: number): number {
    const place = (state[at + NEXT]! % DROPPED) + offset
    if (place < 0) return place + this.#places
    return place < this.#places ? place : place - this.#places
  }
}

function droppedIn(next: number): number {
  return Math.floor(next / DROPPED)
}

export const slidingLogLua: LuaAlgorithm = {
  name: 'sliding-log',
  lua: `
local NEXT, RING, LARGEST, DROPPED = 1, 2, 1000, 1024
local moves = {}

local function place(meter, state, offset)
  local at = state[NEXT] % DROPPED + offset
  if at < 0 then at = at + meter.places elseif at >= meter.places then at = at - meter.places end
  return RING + at
end

local function remove(meter, state, now, moment)
  local leaves, offset = moment + meter.periodUs, meter.places - 1
  while offset >= 0 and state[place(meter, state, offset)] > leaves do offset = offset - 1 end
  if offset < 0 or state[place(meter, state, offset)] ~= leaves then return false end
  for older = offset, 1, -1 do
    state[place(meter, state, older)] = state[place(meter, state, older - 1)]
  end
  if state[NEXT] >= DROPPED then
    state[NEXT] = state[NEXT] - DROPPED
    if moment <= now then return true end
  end
  local second = meter.places > 1 and state[place(meter, state, 1)] or moment
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
  local dropped = delay == 0 and 0 or min(LARGEST, floor(state[NEXT] / DROPPED) + cost)
  state[NEXT] = place(meter, state, cost) - RING + dropped * DROPPED
end

function moves.record(meter, state, now, cost, delay, carries)
  local fitsIn = carries and cost <= meter.count and moves.delay(meter, state, now, cost) or 0
  local leaves = max(now + max(delay, fitsIn) + meter.periodUs, state[place(meter, state, -1)])
  local dropped = state[place(meter, state, 0)] > now and floor(state[NEXT] / DROPPED) or 0
  local places = min(cost, meter.places)
  for offset = 0, places - 1 do
    local at = place(meter, state, offset)
    if state[at] > now then dropped = dropped + 1 end
    state[at] = leaves
  end
  dropped = min(LARGEST, dropped + cost - places)
  state[NEXT] = (state[NEXT] % DROPPED + places) % meter.places + dropped * DROPPED
end

function moves.refund(meter, state, now, cost, moment)
  if moment + meter.periodUs <= now then return end
  for _ = 1, cost do
    if not remove(meter, state, now, moment) then return end
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

function moves.inherit(meter, old, oldScale, now)
  local state, oldPlaces = { 0 }, old.n - 1
  for offset = 0, meter.places - 1 do state[RING + offset] = 0 end
  local function leavesAt(age) return old[RING + (old[NEXT] % DROPPED - age + oldPlaces) % oldPlaces] end
  local dropped = leavesAt(oldPlaces) > now and floor(old[NEXT] / DROPPED) or 0
  local known = oldPlaces + min(dropped, max(0, meter.places - oldPlaces))
  dropped = dropped - (known - oldPlaces)
  for age = 1, known do
    local leaves = leavesAt(min(age, oldPlaces))
    if leaves <= now then break end
    if age > meter.places then
      dropped = dropped + 1
    else
      state[RING + meter.places - age] = leaves + meter.periodUs - oldScale[1]
    end
  end
  state[NEXT] = dropped * DROPPED
  return state
end

function moves.shift(meter, state, us)
  for offset = 0, meter.places - 1 do state[RING + offset] = max(0, state[RING + offset] - us) end
end

function moves.perUs(meter)
  return meter.count / meter.periodUs
end

function moves.idleAt(meter, state)
  return state[place(meter, state, -1)]
end

return moves`,
}
