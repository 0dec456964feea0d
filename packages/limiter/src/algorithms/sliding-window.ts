import { z } from 'zod'
import type { Algorithm, Limit, Meter, Patience, Told, Twin } from './algorithm.ts'
import { longestWaitUs, Misfit } from './algorithm.ts'

/*
 * Sliding window: never more than `count` in any interval of the period, in a few numbers per caller.
 *
 * Admitted calls are gathered into segments, oldest first. Of a segment three things are kept: how many calls it holds,
 * when the last of them came, and how far they ran ahead of an even pace (`lead`, in microseconds):
 *
 *        |<------------- period ------------->|
 *    [ 12 | 30 | 7 | 1 | 25 | 25 ]            now
 *      ^ leaving: min(12, (lead + last - edge) / gap) of them can still be inside
 *
 * `gap` is period / count, and the lead is a leaky bucket over the segment's calls: each adds a gap, time takes away.
 * So no more than (lead + last - x) / gap of the calls can have come at x or later, and a segment leaves the window bit
 * by bit instead of whole. A burst of `count` leaves at one moment, exactly one period later; a steady caller gets
 * its limit to within a percent or two. Counting is always on the safe side: what is not known is held.
 *
 * When a rule changes, the segments stay, and each leaves whole: their leads were measured in other gaps. A longer
 * window knows only the calls that were still in the shorter one.
 */
const HELD = 0
const USED = 1
const SEGMENTS = 2
/** A segment is two numbers: the moment of its last call, and its calls with its lead packed below them. */
const SIZE = 2
const LEADS = 2 ** 26
const LARGEST = LEADS - 1

export const slidingWindow: Algorithm = {
  name: 'sliding-window',
  limit: 'rate',
  options: {
    segments: z.int().min(2).max(100).optional().describe('how finely the window is cut; default: 10'),
  },
  meter(limit: Limit, options: { segments?: number }, patience?: Patience): Meter {
    const { segments = 10 } = options
    const patienceUs = longestWaitUs(patience)
    const windowsAhead = Math.ceil(patienceUs / (limit.periodMs * 1000))
    if (limit.count > LARGEST) {
      throw new Misfit('limit', `must not be above ${LARGEST} per period here; use algorithm: token-bucket`)
    }
    if (limit.count * (1 + windowsAhead) > LARGEST) {
      throw new Misfit(
        'limit',
        'lets too many calls wait at once; use a shorter queue.timeout or algorithm: token-bucket',
      )
    }
    return new SlidingWindow(limit, segments, patienceUs)
  },
}

class SlidingWindow implements Meter {
  readonly slots: number
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly scale: readonly number[]
  readonly #count: number
  readonly #periodUs: number
  readonly #segments: number
  readonly #segmentUs: number
  readonly #gapUs: number
  /** Leads are kept in steps of so many microseconds, so that they fit beside the calls. */
  readonly #stepUs: number

  constructor(limit: Limit, segments: number, patienceUs: number) {
    this.slots = SEGMENTS + segments * SIZE
    this.patienceUs = patienceUs
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.#segments = segments
    this.#segmentUs = this.#periodUs / segments
    this.#stepUs = Math.ceil(this.#periodUs / (LEADS - 1))
    this.#gapUs = Math.max(1, Math.floor(this.#periodUs / Math.max(1, limit.count) / this.#stepUs)) * this.#stepUs
    this.scale = [this.#periodUs, this.#gapUs, this.#stepUs]
    this.numbers = {
      count: this.#count,
      periodUs: this.#periodUs,
      segments,
      segmentUs: this.#segmentUs,
      gapUs: this.#gapUs,
      stepUs: this.#stepUs,
    }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    let excess = state[at + HELD]! + cost - this.#count
    if (excess <= 0) return 0
    let segment = at + SEGMENTS
    let calls = this.#calls(state, segment)
    while (excess > calls) {
      excess -= calls
      segment += SIZE
      calls = this.#calls(state, segment)
    }
    return Math.max(0, this.#freeAt(state, segment, excess, calls) - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    if (state[at + SEGMENTS]! + this.#periodUs <= now) this.#forget(state, at, now)
    state[at + HELD] = state[at + HELD]! + cost
    const used = state[at + USED]!
    const newest = at + SEGMENTS + (used - 1) * SIZE
    const last = used === 0 ? 0 : state[newest]!
    // a clock that steps back counts its calls at the moment it had reached
    const moment = Math.max(last, now + delay)
    if (used === 0 || (used < this.#segments && this.#isCut(last, moment))) {
      state[at + USED] = used + 1
      state[newest + SIZE] = moment
      state[newest + SIZE + 1] = this.#packed(cost, cost * this.#gapUs)
      return
    }
    const lead = this.#lead(state, newest)
    const caughtUp = Math.floor((moment - last) / this.#stepUs) * this.#stepUs
    const calls = this.#calls(state, newest) + cost
    state[newest] = moment
    state[newest + 1] = this.#packed(calls, Math.max(0, lead - caughtUp) + cost * this.#gapUs)
  }

  pass(state: Float64Array, at: number, now: number, cost: number, told: Told): boolean {
    const delay = state[at + HELD]! + cost <= this.#count ? 0 : this.delay(state, at, now, cost)
    if (delay === 0) this.take(state, at, now, cost, 0)
    told.delay = delay
    told.remaining = this.remaining(state, at, now)
    told.idleAt = this.idleAt(state, at)
    return delay === 0
  }

  giveBack(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    if (moment + this.#periodUs <= now) return
    const end = at + SEGMENTS + state[at + USED]! * SIZE
    let segment = at + SEGMENTS
    while (segment < end && state[segment]! < moment) segment += SIZE
    if (segment === end) return
    const calls = this.#calls(state, segment)
    const undone = Math.min(cost, calls)
    state[at + HELD] = state[at + HELD]! - undone
    if (undone < calls) {
      // only the last of a segment's calls can be told apart from the others, and its part of the lead
      const part = segment + SIZE === end && state[segment] === moment ? undone * this.#gapUs : 0
      state[segment + 1] = this.#packed(calls - undone, this.#lead(state, segment) - part)
      return
    }
    this.#drop(state, at, segment, 1)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    const end = at + SEGMENTS + state[at + USED]! * SIZE
    let free = this.#count - state[at + HELD]!
    for (let segment = at + SEGMENTS; segment < end; segment += SIZE) {
      const calls = this.#calls(state, segment)
      // none of them can have left, and then none of the later ones
      if (state[segment]! + this.#periodUs - now > calls * this.#gapUs) break
      const left = this.#left(state, segment, calls, now)
      free += left
      if (left < calls) break
    }
    return Math.max(0, free)
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [oldPeriodUs = 0, oldGapUs, oldStepUs] = oldScale
    const isAlike = oldGapUs === this.#gapUs && oldStepUs === this.#stepUs
    let first = 0
    while (first < old[USED]! && old[SEGMENTS + first * SIZE]! + oldPeriodUs <= now) first++
    // the oldest are put together where the new window has fewer segments
    const surplus = Math.max(0, old[USED]! - first - this.#segments)
    let merged = 0
    for (let place = first; place < old[USED]!; place++) {
      const segment = SEGMENTS + place * SIZE
      const calls = Math.floor(old[segment + 1]! / LEADS)
      merged += calls
      state[at + HELD] = state[at + HELD]! + calls
      if (place < first + surplus) continue
      const target = at + SEGMENTS + state[at + USED]! * SIZE
      state[target] = old[segment]!
      state[target + 1] = isAlike && merged === calls ? old[segment + 1]! : merged * LEADS + LARGEST
      state[at + USED] = state[at + USED]! + 1
      merged = 0
    }
  }

  idleAt(state: Float64Array, at: number): number {
    const used = state[at + USED]!
    return used === 0 ? 0 : state[at + SEGMENTS + (used - 1) * SIZE]! + this.#periodUs
  }

  /** Drops the segments that have left the window by now. */
  #forget(state: Float64Array, at: number, now: number): void {
    const used = state[at + USED]!
    let gone = 0
    while (gone < used && state[at + SEGMENTS + gone * SIZE]! + this.#periodUs <= now) {
      state[at + HELD] = state[at + HELD]! - this.#calls(state, at + SEGMENTS + gone * SIZE)
      gone++
    }
    if (gone > 0) this.#drop(state, at, at + SEGMENTS, gone)
  }

  #drop(state: Float64Array, at: number, segment: number, count: number): void {
    const end = at + SEGMENTS + state[at + USED]! * SIZE
    state.copyWithin(segment, segment + count * SIZE, end)
    state.fill(0, end - count * SIZE, end)
    state[at + USED] = state[at + USED]! - count
  }

  /** How many of a segment's calls have surely left the window by `now`. */
  #left(state: Float64Array, segment: number, calls: number, now: number): number {
    const untilLast = state[segment]! + this.#periodUs - now
    if (untilLast <= 0) return calls
    const inside = Math.floor((this.#lead(state, segment) + untilLast - 1) / this.#gapUs)
    return Math.max(0, calls - inside)
  }

  /** The moment at which `wanted` of a segment's calls have surely left. */
  #freeAt(state: Float64Array, segment: number, wanted: number, calls: number): number {
    const leaves = state[segment]! + this.#periodUs
    const bitByBit = leaves + this.#lead(state, segment) - (calls - wanted + 1) * this.#gapUs
    return Math.min(leaves, bitByBit)
  }

  /** A new segment begins where the clock enters another slice of the window. */
  #isCut(last: number, moment: number): boolean {
    return Math.floor(last / this.#segmentUs) !== Math.floor(moment / this.#segmentUs)
  }

  #calls(state: Float64Array, segment: number): number {
    return Math.floor(state[segment + 1]! / LEADS)
  }

  #lead(state: Float64Array, segment: number): number {
    const steps = state[segment + 1]! - this.#calls(state, segment) * LEADS
    // a lead that has outgrown its place is not known, and such a segment leaves whole
    return steps === LARGEST ? Number.POSITIVE_INFINITY : steps * this.#stepUs
  }

  #packed(calls: number, leadUs: number): number {
    return calls * LEADS + Math.min(LARGEST, leadUs / this.#stepUs)
  }
}

const twin: Twin = {
  name: 'sliding-window',
  lua: `
local HELD, USED, SEGMENTS, SIZE, LEADS, LARGEST = 1, 2, 3, 2, 2 ^ 26, 2 ^ 26 - 1
local moves = {}

local function callsIn(state, segment)
  return floor(state[segment + 1] / LEADS)
end

local function leadOf(meter, state, segment)
  local steps = state[segment + 1] % LEADS
  return steps == LARGEST and huge or steps * meter.stepUs
end

local function packed(meter, calls, leadUs)
  return calls * LEADS + min(LARGEST, leadUs / meter.stepUs)
end

local function endOf(state)
  return SEGMENTS + state[USED] * SIZE
end

local function drop(state, segment, count)
  local stop = endOf(state)
  for at = segment, stop - 1 do
    local from = at + count * SIZE
    state[at] = from < stop and state[from] or 0
  end
  state[USED] = state[USED] - count
end

local function forget(meter, state, now)
  local used, gone = state[USED], 0
  while gone < used and state[SEGMENTS + gone * SIZE] + meter.periodUs <= now do
    state[HELD] = state[HELD] - callsIn(state, SEGMENTS + gone * SIZE)
    gone = gone + 1
  end
  if gone > 0 then drop(state, SEGMENTS, gone) end
end

local function leftOf(meter, state, segment, calls, now)
  local untilLast = state[segment] + meter.periodUs - now
  if untilLast <= 0 then return calls end
  local inside = floor((leadOf(meter, state, segment) + untilLast - 1) / meter.gapUs)
  return max(0, calls - inside)
end

local function freeAt(meter, state, segment, wanted, calls)
  local leaves = state[segment] + meter.periodUs
  return min(leaves, leaves + leadOf(meter, state, segment) - (calls - wanted + 1) * meter.gapUs)
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  local excess = state[HELD] + cost - meter.count
  if excess <= 0 then return 0 end
  local segment = SEGMENTS
  local calls = callsIn(state, segment)
  while excess > calls do
    excess = excess - calls
    segment = segment + SIZE
    calls = callsIn(state, segment)
  end
  return max(0, freeAt(meter, state, segment, excess, calls) - now)
end

function moves.take(meter, state, now, cost, delay)
  if state[USED] > 0 and state[SEGMENTS] + meter.periodUs <= now then forget(meter, state, now) end
  local used, segmentUs, stepUs, moment = state[USED], meter.segmentUs, meter.stepUs, now + delay
  local newest = SEGMENTS + (used - 1) * SIZE
  local last = used == 0 and 0 or state[newest]
  if moment < last then moment = last end
  state[HELD] = state[HELD] + cost
  if used == 0 or (used < meter.segments and floor(last / segmentUs) ~= floor(moment / segmentUs)) then
    state[USED], state[newest + SIZE] = used + 1, moment
    state[newest + SIZE + 1] = packed(meter, cost, cost * meter.gapUs)
    return
  end
  local calls = state[newest + 1]
  local steps = calls % LEADS
  local lead = steps == LARGEST and huge or steps * stepUs
  local caughtUp = floor((moment - last) / stepUs) * stepUs
  local ahead = (max(0, lead - caughtUp) + cost * meter.gapUs) / stepUs
  state[newest] = moment
  state[newest + 1] = calls - steps + cost * LEADS + min(LARGEST, ahead)
end

function moves.pass(meter, state, now, cost)
  local delay = 0
  if state[HELD] + cost > meter.count then delay = moves.delay(meter, state, now, cost) end
  if delay == 0 then moves.take(meter, state, now, cost, 0) end
  local newest = SEGMENTS + (state[USED] - 1) * SIZE
  return delay, moves.remaining(meter, state, now), state[USED] == 0 and 0 or state[newest] + meter.periodUs
end

function moves.giveBack(meter, state, now, cost, moment)
  if moment + meter.periodUs <= now then return end
  local stop, segment = endOf(state), SEGMENTS
  while segment < stop and state[segment] < moment do segment = segment + SIZE end
  if segment == stop then return end
  local calls = callsIn(state, segment)
  local undone = min(cost, calls)
  state[HELD] = state[HELD] - undone
  if undone < calls then
    local part = segment + SIZE == stop and state[segment] == moment and undone * meter.gapUs or 0
    state[segment + 1] = packed(meter, calls - undone, leadOf(meter, state, segment) - part)
  else
    drop(state, segment, 1)
  end
end

function moves.remaining(meter, state, now)
  local free = meter.count - state[HELD]
  for segment = SEGMENTS, endOf(state) - 1, SIZE do
    local untilLast, calls = state[segment] + meter.periodUs - now, callsIn(state, segment)
    -- none of them can have left, and then none of the later ones
    if untilLast >= calls * meter.gapUs + 1 then break end
    local left = leftOf(meter, state, segment, calls, now)
    free = free + left
    if left < calls then break end
  end
  return max(0, free)
end

function moves.inherit(meter, old, oldScale, now)
  local isAlike = oldScale[2] == meter.gapUs and oldScale[3] == meter.stepUs
  local state, first, merged = { 0, 0 }, 0, 0
  for slot = SEGMENTS, meter.slots do state[slot] = 0 end
  while first < old[USED] and old[SEGMENTS + first * SIZE] + oldScale[1] <= now do first = first + 1 end
  local surplus = max(0, old[USED] - first - meter.segments)
  for place = first, old[USED] - 1 do
    local segment = SEGMENTS + place * SIZE
    local calls = callsIn(old, segment)
    merged = merged + calls
    state[HELD] = state[HELD] + calls
    if place >= first + surplus then
      local target = endOf(state)
      state[target] = old[segment]
      state[target + 1] = isAlike and merged == calls and old[segment + 1] or merged * LEADS + LARGEST
      state[USED] = state[USED] + 1
      merged = 0
    end
  end
  return state
end

function moves.idleAt(meter, state)
  local used = state[USED]
  return used == 0 and 0 or state[SEGMENTS + (used - 1) * SIZE] + meter.periodUs
end

return moves`,
}
