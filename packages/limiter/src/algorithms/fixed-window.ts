import { z } from 'zod'
import type { Algorithm, Limit, Meter, Patience, Twin } from './algorithm.ts'

/*
 * Fixed window, the plain counter: time is cut into windows, each admits `count` and then nothing until it ends.
 *
 *   |#####....|##.......|####.....|        two full windows may meet at their edge: up to 2 * count within a moment.
 *   0         P        2P        3P        Where that hurts, take sliding-window.
 *
 * align: clock       windows begin at whole multiples of the period
 * align: first-call  a window begins with the call that opens it
 *
 * Calls that wait are counted ahead, into the windows to come: the count runs on past the limit, each further `count`
 * of them one window later. When a rule changes, the count in the window stays and is held against the new limit.
 */
const START = 0
const COUNT = 1

export const fixedWindow: Algorithm = {
  name: 'fixed-window',
  limit: 'rate',
  options: {
    align: z.enum(['clock', 'first-call']).optional().describe('where windows begin; default: clock'),
  },
  meter(limit: Limit, options: { align?: 'clock' | 'first-call' }, patience?: Patience): Meter {
    const patienceUs = patience ? (patience.timeoutUs ?? 1_000_000) : 0
    return new FixedWindow(limit, options.align !== 'first-call', patienceUs)
  },
}

class FixedWindow implements Meter {
  readonly slots = 2
  readonly held = false
  readonly twin: Twin = twin
  readonly numbers: Readonly<Record<string, number>>
  readonly patienceUs: number
  readonly #count: number
  readonly #periodUs: number
  readonly #aligned: boolean

  constructor(limit: Limit, aligned: boolean, patienceUs: number) {
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.#aligned = aligned
    this.patienceUs = patienceUs
    this.numbers = { count: this.#count, periodUs: this.#periodUs, aligned: aligned ? 1 : 0 }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    const start = this.#start(state, at, now)
    const used = this.#used(state, at, start)
    if (used + cost <= this.#count) return 0
    return Math.max(0, start + this.#windowsAhead(used, cost) * this.#periodUs - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    const start = this.#start(state, at, now)
    const used = this.#used(state, at, start)
    state[at + START] = start
    state[at + COUNT] = (delay === 0 ? used : this.#usedAhead(used, cost, now + delay - start)) + cost
  }

  giveBack(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    const start = this.#start(state, at, now)
    // what was counted in a window that has ended is forgotten already
    if (moment < start) return
    state[at + COUNT] = Math.max(0, this.#used(state, at, start) - cost)
    state[at + START] = start
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, this.#count - this.#used(state, at, this.#start(state, at, now)))
  }

  idleAt(state: Float64Array, at: number): number {
    const windows = Math.ceil(state[at + COUNT]! / Math.max(1, this.#count))
    return state[at + START]! + windows * this.#periodUs
  }

  /** The start of the window that `now` falls in; a clock that steps back stays in the window it had reached. */
  #start(state: Float64Array, at: number, now: number): number {
    const start = state[at + START]!
    const isNew = state[at + COUNT] === 0
    if (!isNew && now < start + this.#periodUs) return start
    if (this.#aligned) return Math.floor(now / this.#periodUs) * this.#periodUs
    if (isNew || now >= this.idleAt(state, at)) return now
    return start + Math.floor((now - start) / this.#periodUs) * this.#periodUs
  }

  /** What is counted in the window from `start` on, and ahead of it. */
  #used(state: Float64Array, at: number, start: number): number {
    const count = state[at + COUNT]!
    const before = state[at + START]!
    if (start <= before || count === 0) return count
    return Math.max(0, count - Math.ceil((start - before) / this.#periodUs) * this.#count)
  }

  /** What must stand in the count for `cost` to fall into the window `sinceStartUs` later, or the first it fits whole. */
  #usedAhead(used: number, cost: number, sinceStartUs: number): number {
    const ahead = Math.max(this.#windowsAhead(used, cost), Math.floor(sinceStartUs / this.#periodUs))
    return Math.max(used, ahead * this.#count)
  }

  /** How many windows later `cost` fits whole. */
  #windowsAhead(used: number, cost: number): number {
    const full = Math.floor(used / this.#count)
    return used + cost <= (full + 1) * this.#count ? full : full + 1
  }
}

const twin: Twin = {
  name: 'fixed-window',
  lua: `
local START, COUNT = 1, 2
local moves = {}

local function startAt(meter, state, now)
  local start, isNew = state[START], state[COUNT] == 0
  if not isNew and now < start + meter.periodUs then return start end
  if meter.aligned == 1 then return floor(now / meter.periodUs) * meter.periodUs end
  if isNew or now >= moves.idleAt(meter, state) then return now end
  return start + floor((now - start) / meter.periodUs) * meter.periodUs
end

local function usedAt(meter, state, start)
  local count, before = state[COUNT], state[START]
  if start <= before or count == 0 then return count end
  return max(0, count - ceil((start - before) / meter.periodUs) * meter.count)
end

local function windowsAhead(meter, used, cost)
  local full = floor(used / meter.count)
  return used + cost <= (full + 1) * meter.count and full or full + 1
end

local function usedAhead(meter, used, cost, sinceStartUs)
  local ahead = max(windowsAhead(meter, used, cost), floor(sinceStartUs / meter.periodUs))
  return max(used, ahead * meter.count)
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  local start = startAt(meter, state, now)
  local used = usedAt(meter, state, start)
  if used + cost <= meter.count then return 0 end
  return max(0, start + windowsAhead(meter, used, cost) * meter.periodUs - now)
end

function moves.take(meter, state, now, cost, delay)
  local start = startAt(meter, state, now)
  local used = usedAt(meter, state, start)
  state[START] = start
  state[COUNT] = (delay == 0 and used or usedAhead(meter, used, cost, now + delay - start)) + cost
end

function moves.giveBack(meter, state, now, cost, moment)
  local start = startAt(meter, state, now)
  if moment < start then return end
  state[COUNT] = max(0, usedAt(meter, state, start) - cost)
  state[START] = start
end

function moves.remaining(meter, state, now)
  return max(0, meter.count - usedAt(meter, state, startAt(meter, state, now)))
end

function moves.idleAt(meter, state)
  local windows = ceil(state[COUNT] / max(1, meter.count))
  return state[START] + windows * meter.periodUs
end

return moves`,
}
