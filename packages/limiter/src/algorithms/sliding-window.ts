import type {
  Algorithm,
  Limit,
  Meter,
  MeterMemory,
  MeterMigration,
  MeterRate,
  MeterRedis,
  PassResult,
  WaitOptions,
} from './algorithm.ts'
import { InvalidLimitError, MOST_DEBT, maxWaitUsOf, windowReportUs } from './algorithm.ts'
import type { Envelope } from './envelope.ts'
import { Packing, shareOut } from './numbers/packing.ts'

export interface SlidingWindowOptions {
  /** How finely the window is cut; default 10. */
  readonly segments?: number | undefined
}

/*
 * Sliding window: never more than `count` in any interval of the period, in one number per segment and a few more.
 *
 * Admitted calls are gathered into segments, oldest first. Of a segment three things are kept: how many calls it has,
 * when the last of them came, and how far they ran ahead of an even pace (`lead`, in microseconds):
 *
 *        |<------------- period ------------->|
 *    [ 12 | 30 | 7 | 1 | 25 | 25 ]            now
 *      ^ leaving: min(12, (lead + last - edge) / gap) of them can still be inside
 *
 * `gap` is period / count, and the lead is a leaky bucket over the segment's calls: each adds a gap, time takes away.
 * So no more than (lead + last - x) / gap of the calls can have come at x or later, and a segment leaves the window bit
 * by bit instead of whole. A burst of `count` leaves at one moment, exactly one period later; a steady caller gets
 * its limit to within a percent or two. Counting is always on the safe side: calls whose moment is not known stay counted.
 *
 * The newest segment is open, and its three numbers are kept as they are. Once closed a segment only loses calls, so its
 * numbers are packed into one, rounded once.
 *
 * When a rule changes, the segments stay, and each leaves whole: their leads were measured in other gaps. A longer
 * window knows only the calls that were still in the shorter one.
 */
/** The calls of all segments. */
const HELD = 0
/** How many segments are closed. */
const CLOSED = 1
/** The open segment; without calls there is no segment at all. */
const LAST = 2
const CALLS = 3
const LEAD = 4
/** The closed ones. */
const SEGMENTS = 5
const LARGEST = 2 ** 26 - 1

export const slidingWindow: Algorithm = {
  name: 'sliding-window',
  limit: 'rate',
  options: ({ z }) => ({
    segments: z.int().min(2).max(100).optional().describe('how finely the window is cut; default: 10'),
  }),
  meter(limit: Limit, options: SlidingWindowOptions, waitOptions?: WaitOptions): Meter {
    const { segments = 10 } = options
    const maxWaitUs = maxWaitUsOf(waitOptions)
    const windowsAhead = Math.ceil(maxWaitUs / (limit.periodMs * 1000))
    const most = limit.count * (1 + windowsAhead)
    if (limit.count > LARGEST) {
      throw new InvalidLimitError('limit', `must not be above ${LARGEST} per period here; use algorithm: token-bucket`)
    }
    if (most > LARGEST) {
      throw new InvalidLimitError(
        'limit',
        'lets too many calls wait at once; use a shorter queue.timeout or algorithm: token-bucket',
      )
    }
    const periodUs = limit.periodMs * 1000
    const packing = new Packing(shareOut(most, periodUs + maxWaitUs, periodUs))
    return new SlidingWindow(limit, segments, maxWaitUs, packing)
  },
}

class SlidingWindow implements Meter, MeterRate, MeterMigration, MeterMemory {
  readonly slots: number
  readonly maxWaitUs: number
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly memory: MeterMemory = this
  readonly redis: MeterRedis
  readonly scale: readonly number[]
  readonly perUs: number
  readonly windowUs: number
  readonly reportUs: number | undefined
  readonly envelope: Envelope
  readonly #count: number
  readonly #periodUs: number
  readonly #segments: number
  readonly #segmentUs: number
  readonly #gapUs: number
  readonly #packing: Packing

  constructor(limit: Limit, segments: number, maxWaitUs: number, packing: Packing) {
    this.slots = SEGMENTS + segments - 1
    this.maxWaitUs = maxWaitUs
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.#segments = segments
    this.#segmentUs = this.#periodUs / segments
    this.#gapUs = Math.max(1, Math.floor(this.#periodUs / Math.max(1, limit.count)))
    this.#packing = packing
    const { tickUs, ticks, room, stepUs, leads } = packing.numbers
    this.perUs = limit.count / this.#periodUs
    this.windowUs = this.#periodUs
    this.reportUs = windowReportUs(this.#periodUs)
    const window = { kind: 'window', units: limit.count, periodUs: this.#periodUs } as const
    // a call stays until the last one of its segment leaves, and a segment that could not be closed is twice as long
    const longestUs = this.#periodUs + 2 * this.#segmentUs + tickUs
    this.envelope = { largest: limit.count, ceiling: window, floor: { ...window, periodUs: longestUs } }
    this.scale = [this.#periodUs, this.#gapUs, tickUs, ticks, room, stepUs, leads]
    const numbers = {
      ...{ count: this.#count, periodUs: this.#periodUs, maxWaitUs, segments, segmentUs: this.#segmentUs },
      ...{ gapUs: this.#gapUs, spanUs: packing.spanUs, tickUs, ticks, room, stepUs, leads },
    }
    this.redis = { lua: { name: 'sliding-window' }, numbers }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    let excess = state[at + HELD]! + cost - this.#count
    if (excess <= 0) return 0
    const newest = state[at + LAST]!
    const end = at + SEGMENTS + state[at + CLOSED]!
    // a segment whose last call was rounded up may seem to leave after the first calls of the next one
    let before = 0
    for (let segment = at + SEGMENTS; segment < end; segment++) {
      const packed = state[segment]!
      const calls = this.#packing.callsOf(packed)
      const last = this.#packing.lastOf(packed, newest)
      if (excess <= calls) {
        const freeAt = this.#freeAt(last, calls - excess, this.#packing.leadOf(packed))
        return Math.max(0, freeAt - now, before - now)
      }
      excess -= calls
      before = last + this.#periodUs
    }
    const freeAt = this.#freeAt(newest, state[at + CALLS]! - excess, state[at + LEAD]!)
    return Math.max(0, freeAt - now, before - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    this.#forget(state, at, now)
    const last = state[at + LAST]!
    const calls = state[at + CALLS]!
    // a clock that steps back counts its calls at the moment it had reached
    const moment = Math.max(last, now + delay)
    if (delay > this.maxWaitUs) this.#bringForward(state, at, moment)
    state[at + HELD] = state[at + HELD]! + cost
    state[at + LAST] = moment
    if (calls === 0 || this.#isCut(state, at, last, moment)) {
      if (calls > 0) this.#close(state, at, Math.max(last, moment - this.#packing.spanUs))
      state[at + CALLS] = cost
      state[at + LEAD] = cost * this.#gapUs
      return
    }
    state[at + CALLS] = calls + cost
    state[at + LEAD] = Math.max(0, state[at + LEAD]! - (moment - last)) + cost * this.#gapUs
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    this.#forget(state, at, now)
    const counted = Math.min(cost, this.#count * MOST_DEBT - state[at + HELD]!)
    if (counted > 0) this.take(state, at, now, counted, 0)
  }

  insert(state: Float64Array, at: number, now: number, cost: number, moment: number): void {
    this.#forget(state, at, now)
    const newest = state[at + LAST]!
    if (moment >= newest) {
      this.take(state, at, moment, cost, 0)
      return
    }
    const end = at + SEGMENTS + state[at + CLOSED]!
    let segment = at + SEGMENTS
    while (segment < end && this.#packing.lastOf(state[segment]!, newest) < moment) segment++
    const isOpen = segment === end
    const last = isOpen ? newest : this.#packing.lastOf(state[segment]!, newest)
    const calls = isOpen ? state[at + CALLS]! : this.#packing.callsOf(state[segment]!)
    const lead = isOpen ? state[at + LEAD]! : this.#packing.leadOf(state[segment]!)
    state[at + HELD] = state[at + HELD]! + cost
    if (this.#isBetween(state, at, moment, last) && cost <= this.#packing.mostCalls) {
      state.copyWithin(segment + 1, segment, end)
      state[segment] = this.#packing.pack(Math.max(moment, newest - this.#packing.spanUs), cost, cost * this.#gapUs)
      state[at + CLOSED] = state[at + CLOSED]! + 1
    } else if (isOpen || calls + cost > this.#packing.mostCalls) {
      const ahead = (state[at + CALLS]! + cost) * this.#gapUs - (newest - moment)
      state[at + LEAD] = Math.max(state[at + LEAD]!, Math.min(state[at + LEAD]! + cost * this.#gapUs, ahead))
      state[at + CALLS] = state[at + CALLS]! + cost
    } else {
      // none of the calls after `moment` has come earlier than before
      const ahead = Math.max(lead, Math.min(lead + cost * this.#gapUs, (calls + cost) * this.#gapUs - (last - moment)))
      state[segment] = this.#packing.pack(last, calls + cost, ahead)
    }
  }

  pass(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean {
    const delay = state[at + HELD]! + cost <= this.#count ? 0 : this.delay(state, at, now, cost)
    if (delay === 0) this.take(state, at, now, cost, 0)
    result.delay = delay
    result.remaining = this.remaining(state, at, now)
    result.idleAt = this.idleAt(state, at)
    return delay === 0
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    // whether it was still in the window when the period changed is not known
    if (moment <= changedAt || moment + this.#periodUs <= now) return
    // a call that is counted later than it came is in a later segment, and so is one if those before it have too few calls
    for (let left = cost; left > 0 && state[at + CALLS]! > 0 && state[at + LAST]! >= moment; ) {
      left -= this.#undo(state, at, left, moment)
    }
  }

  /** Takes calls out of the first segment that may have calls of `moment`; returns how many it had. */
  #undo(state: Float64Array, at: number, cost: number, moment: number): number {
    const end = at + SEGMENTS + state[at + CLOSED]!
    const newest = state[at + LAST]!
    // the moment of a closed segment may be rounded up to that of the newest call, which is in the open one; if it is rounded
    // up to that of another call, an older call is taken out, and the other one stays counted for longer than necessary
    let segment = newest === moment ? end : at + SEGMENTS
    while (segment < end && this.#packing.lastOf(state[segment]!, newest) < moment) segment++
    const isOpen = segment === end
    const calls = isOpen ? state[at + CALLS]! : this.#packing.callsOf(state[segment]!)
    const undone = Math.min(cost, calls)
    state[at + HELD] = state[at + HELD]! - undone
    if (isOpen && undone === calls) this.#reopen(state, at)
    else if (isOpen) {
      state[at + CALLS] = calls - undone
      // only the last calls can be distinguished from the others, with their share of the lead
      if (newest === moment) state[at + LEAD] = state[at + LEAD]! - undone * this.#gapUs
    } else if (undone === calls) this.#drop(state, at, segment, 1)
    else state[segment] = this.#packing.without(state[segment]!, undone)
    return undone
  }

  remaining(state: Float64Array, at: number, now: number): number {
    const end = at + SEGMENTS + state[at + CLOSED]!
    let free = this.#count - state[at + HELD]!
    for (let segment = at + SEGMENTS; segment < end; segment++) {
      const packed = state[segment]!
      const calls = this.#packing.callsOf(packed)
      const untilLast = this.#packing.lastOf(packed, state[at + LAST]!) + this.#periodUs - now
      // none of them can have left, and then none of the later ones
      if (untilLast > calls * this.#gapUs) return Math.max(0, free)
      const left = this.#left(untilLast, calls, this.#packing.leadOf(packed))
      free += left
      if (left < calls) return Math.max(0, free)
    }
    const untilLast = state[at + LAST]! + this.#periodUs - now
    return Math.max(0, free + this.#left(untilLast, state[at + CALLS]!, state[at + LEAD]!))
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [oldPeriodUs = 0, oldGapUs, tickUs = 1, ticks = 1, room = 1, stepUs = 1, leads = 1] = oldScale
    const packing = new Packing({ tickUs, ticks, room, stepUs, leads })
    const newest = old[LAST]!
    const open = old[CLOSED]!
    const lastOf = (place: number): number => (place === open ? newest : packing.lastOf(old[SEGMENTS + place]!, newest))
    const periodUs = Math.min(oldPeriodUs, this.#periodUs)
    let first = 0
    while (first <= open && lastOf(first) + periodUs <= now) first++
    // the oldest are merged if the new window has fewer segments
    const surplus = Math.max(0, open + 1 - first - this.#segments)
    let merged = 0
    for (let place = first; place <= open; place++) {
      const isOpen = place === open
      const calls = isOpen ? old[CALLS]! : packing.callsOf(old[SEGMENTS + place]!)
      const lead = isOpen ? old[LEAD]! : packing.leadOf(old[SEGMENTS + place]!)
      merged += calls
      state[at + HELD] = state[at + HELD]! + calls
      // and so are those that are too many for one number
      if (place < first + surplus || (!isOpen && merged > this.#packing.mostCalls)) continue
      state[at + CALLS] = merged
      state[at + LEAD] = oldGapUs === this.#gapUs && merged === calls ? lead : Number.POSITIVE_INFINITY
      state[at + LAST] = newest
      if (!isOpen) this.#close(state, at, Math.max(lastOf(place), newest - this.#packing.spanUs))
      merged = 0
    }
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + CALLS] === 0 ? 0 : state[at + LAST]! + this.#periodUs
  }

  /** Drops the segments that have left the window by now. */
  #forget(state: Float64Array, at: number, now: number): void {
    const closed = state[at + CLOSED]!
    const newest = state[at + LAST]!
    let gone = 0
    while (gone < closed) {
      const packed = state[at + SEGMENTS + gone]!
      if (this.#packing.lastOf(packed, newest) + this.#periodUs > now) break
      state[at + HELD] = state[at + HELD]! - this.#packing.callsOf(packed)
      gone++
    }
    if (gone > 0) this.#drop(state, at, at + SEGMENTS, gone)
    if (gone < closed || newest + this.#periodUs > now) return
    state[at + HELD] = 0
    state[at + LAST] = 0
    state[at + CALLS] = 0
    state[at + LEAD] = 0
  }

  #drop(state: Float64Array, at: number, segment: number, count: number): void {
    const end = at + SEGMENTS + state[at + CLOSED]!
    state.copyWithin(segment, segment + count, end)
    state.fill(0, end - count, end)
    state[at + CLOSED] = state[at + CLOSED]! - count
  }

  #close(state: Float64Array, at: number, last: number): void {
    const closed = state[at + CLOSED]!
    state[at + SEGMENTS + closed] = this.#packing.pack(last, state[at + CALLS]!, state[at + LEAD]!)
    state[at + CLOSED] = closed + 1
  }

  /** The open segment has lost all its calls: the one before it is the newest again. */
  #reopen(state: Float64Array, at: number): void {
    const closed = Math.max(0, state[at + CLOSED]! - 1)
    const packed = state[at + SEGMENTS + closed]!
    // if no segment is closed this is 0, and has no meaning
    const calls = this.#packing.callsOf(packed)
    state[at + LAST] = calls === 0 ? 0 : this.#packing.lastOf(packed, state[at + LAST]!)
    state[at + CALLS] = calls
    state[at + LEAD] = this.#packing.leadOf(packed)
    state[at + SEGMENTS + closed] = 0
    state[at + CLOSED] = closed
  }

  /** What waits for longer than calls are meant to is far ahead of the oldest: those then leave later, not too early. */
  #bringForward(state: Float64Array, at: number, moment: number): void {
    const earliest = moment - this.#packing.spanUs
    const end = at + SEGMENTS + state[at + CLOSED]!
    for (let segment = at + SEGMENTS; segment < end; segment++) {
      const packed = state[segment]!
      if (this.#packing.lastOf(packed, state[at + LAST]!) >= earliest) return
      state[segment] = this.#packing.pack(earliest, this.#packing.callsOf(packed), this.#packing.leadOf(packed))
    }
  }

  /** How many of a segment's calls have surely left the window by now. */
  #left(untilLast: number, calls: number, lead: number): number {
    if (untilLast <= 0) return calls
    // most segments are too recent, and need no division
    if (untilLast > calls * this.#gapUs) return 0
    return Math.max(0, calls - Math.floor((lead + untilLast - 1) / this.#gapUs))
  }

  /** The moment at which all but `rest` of a segment's calls have surely left. */
  #freeAt(last: number, rest: number, lead: number): number {
    const leaves = last + this.#periodUs
    return Math.min(leaves, leaves + lead - (rest + 1) * this.#gapUs)
  }

  /** True if a call has a segment of its own before the one whose last call came at `last`. */
  #isBetween(state: Float64Array, at: number, moment: number, last: number): boolean {
    if (state[at + CLOSED]! + 1 >= this.#segments) return false
    return Math.floor(last / this.#segmentUs) !== Math.floor(moment / this.#segmentUs)
  }

  /** A new segment begins when the clock enters another slice of the window, if the one before can be closed. */
  #isCut(state: Float64Array, at: number, last: number, moment: number): boolean {
    if (state[at + CLOSED]! + 1 >= this.#segments || state[at + CALLS]! > this.#packing.mostCalls) return false
    return Math.floor(last / this.#segmentUs) !== Math.floor(moment / this.#segmentUs)
  }
}
