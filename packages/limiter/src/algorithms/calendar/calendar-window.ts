import { CALENDAR_UNITS, type CalendarUnit } from '../../common/calendar-unit.ts'
import type {
  Limit,
  Meter,
  MeterMemory,
  MeterMigration,
  MeterRate,
  MeterRedis,
  PassResult,
  TimedNumbers,
} from '../algorithm.ts'
import { MOST_DEBT } from '../algorithm.ts'
import type { Envelope } from '../envelope.ts'
import type { Calendar } from './calendar.ts'

/*
 * Calendar window: a fixed window whose windows are days, weeks, months or years of a time zone.
 *
 *   |#####...|##......|####.........|       windows are as long as the calendar has them
 *   1 Feb    1 Mar    1 Apr
 *
 * A state has the bounds of its window, so that most calls need no calendar: as long as a window lasts, its end is one comparison.
 * Processes whose time zone data differ count in one window, then: the one that opened it says when it ends. One that sees the end a
 * little later goes on with the count that it finds, until then.
 *
 * When zone or anchor change, what was used in the window before is used in the one that is now.
 */
const START = 0
const COUNT = 1
const STOP = 2

/** A count that is higher by this is of a window to come, and no call passes before that one begins. */
const SHUT = 2 ** 40

/** So much later than others a process with other time zone data may see the end of a period. */
const LATE_US = 4 * 3_600_000_000
/** Changes of the clock make a period longer by less. */
const LONGER_US = 26 * 3_600_000_000

export class CalendarWindow implements Meter, MeterRate, MeterMigration, MeterMemory {
  readonly slots = 3
  readonly maxWaitUs = 0
  readonly rate: MeterRate = this
  readonly migrate: MeterMigration = this
  readonly memory: MeterMemory = this
  readonly redis: MeterRedis
  readonly scale: readonly number[]
  readonly perUs: number
  readonly reportUs = 100_000
  readonly envelope: Envelope
  readonly #count: number
  readonly #calendar: Calendar
  #start = 0
  #stop = 0

  /** `identity` is that of the calendar: those of other units, zones and anchors have another one. */
  constructor({ count, periodMs }: Limit, unit: CalendarUnit, calendar: Calendar, identity: string) {
    const usualUs = periodMs * 1000
    this.#count = count
    this.#calendar = calendar
    const longestUs = usualUs + LONGER_US
    this.perUs = count / longestUs
    this.scale = [longestUs, CALENDAR_UNITS.indexOf(unit), ...hashOf(identity)]
    this.redis = {
      lua: { name: 'calendar-window' },
      numbers: { count, longestUs },
      numbersAt: now => this.#numbersAt(now),
    }
    const shape = {
      kind: 'clock-window',
      units: count,
      periodUs: longestUs,
      startOf: (at: number) => calendar.at(at).start,
    } as const
    this.envelope = { largest: count, ceiling: shape, floor: shape }
  }

  /** The beginnings of four periods, the second of them that of the period of `now`. */
  #numbersAt(now: number): TimedNumbers {
    const { start, end } = this.#calendar.at(now)
    const before = this.#calendar.at(start - 1).start
    const after = this.#calendar.at(end).end
    return { numbers: { b1: before, b2: start, b3: end, b4: after }, from: start, until: end }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    if (cost === 0) return 0
    const used = this.#open(state, at, now)
    return used + cost > this.#count ? this.#stop - now : 0
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    this.record(state, at, now, cost, delay)
  }

  record(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    const used = this.#open(state, at, now)
    if (used === Number.POSITIVE_INFINITY) {
      state[at + COUNT] = state[at + COUNT]! + cost
      return
    }
    const isLater = now + delay >= this.#stop
    if (isLater) this.#use(now + delay)
    state[at + START] = this.#start
    state[at + COUNT] = isLater ? SHUT + cost : used + cost
    state[at + STOP] = this.#stop
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    const used = this.#open(state, at, now)
    const counted = Math.min(cost, this.#count * MOST_DEBT - used)
    if (counted <= 0) return
    state[at + START] = this.#start
    state[at + COUNT] = used + counted
    state[at + STOP] = this.#stop
  }

  pass(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean {
    const used = this.#open(state, at, now)
    const left = this.#count - used - cost
    if (left < 0) {
      result.remaining = Math.max(0, this.#count - used)
      result.idleAt = this.idleAt(state, at)
      result.delay = cost > this.#count ? Number.POSITIVE_INFINITY : this.#stop - now
      return false
    }
    state[at + START] = this.#start
    state[at + COUNT] = used + cost
    state[at + STOP] = this.#stop
    result.remaining = left
    result.idleAt = this.#stop
    return true
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    // whether a window of another calendar, which may have ended by then, was counted on is not known
    if (moment <= changedAt) return
    // what was counted in a window that has ended is forgotten already
    if (moment < state[at + START]! || now >= state[at + STOP]!) return
    const count = state[at + COUNT]!
    const shut = count >= SHUT ? SHUT : 0
    state[at + COUNT] = shut + Math.max(0, count - shut - cost)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, this.#count - this.#open(state, at, now))
  }

  inherit(old: ArrayLike<number>, _oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [start, count, stop] = [old[START]!, old[COUNT]!, old[STOP]!]
    if (count === 0 || now >= stop) return
    const isShut = count >= SHUT && now < start
    this.#use(isShut ? start : now)
    state[at + START] = isShut ? start : this.#start
    state[at + COUNT] = isShut ? count : count % SHUT
    state[at + STOP] = this.#stop
  }

  endsAt(state: Float64Array, at: number, now: number): number {
    this.#open(state, at, now)
    return this.#stop
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + COUNT] === 0 ? 0 : state[at + STOP]!
  }

  /** Finds the window of a key at `now`, and returns what is used in it; Infinity if no call passes before it ends. */
  #open(state: Float64Array, at: number, now: number): number {
    const count = state[at + COUNT]!
    const stop = state[at + STOP]!
    // a clock that steps back stays in the window it had reached
    if (count > 0 && now < stop) {
      this.#start = state[at + START]!
      this.#stop = stop
      if (count < SHUT) return count
      if (now >= this.#start) return count - SHUT
      this.#stop = this.#start
      return Number.POSITIVE_INFINITY
    }
    this.#use(now)
    if (count === 0) return 0
    return this.#start < stop && this.#stop - stop <= LATE_US ? count % SHUT : 0
  }

  #use(moment: number): void {
    const { start, end } = this.#calendar.at(moment)
    this.#start = start
    this.#stop = end
  }
}

/** Two whole numbers that differ for texts that differ, for all practical purposes. */
function hashOf(text: string): [number, number] {
  let [one, other] = [0x811c9dc5, 0x1b873593]
  for (let i = 0; i < text.length; i++) {
    one = Math.imul(one ^ text.charCodeAt(i), 0x01000193)
    other = Math.imul(other ^ text.charCodeAt(i), 0x85ebca6b)
  }
  return [one >>> 0, other >>> 0]
}
