import type { CalendarUnit } from '../common/calendar-unit.ts'
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
import { CalendarWindow } from './calendar/calendar-window.ts'
import { type CalendarOptions, readCalendar } from './calendar/read-calendar.ts'
import type { Envelope } from './envelope.ts'

export interface FixedWindowOptions extends CalendarOptions {
  /** Where windows begin; default `clock`. */
  readonly align?: 'clock' | 'first-call' | undefined
}

/*
 * Fixed window, the plain counter: time is cut into windows, each admits `count` and then nothing until it ends.
 *
 *   |#####....|##.......|####.....|        two full windows may meet at their edge: up to 2 * count within a moment.
 *   0         P        2P        3P        If that matters, use sliding-window.
 *
 * align: clock       windows begin at whole multiples of the period
 * align: first-call  a window begins with the call that opens it
 *
 * Only the latest window with calls is kept. Calls that wait are counted ahead, into windows to come: while the
 * latest is one of those, all before it are full. When a rule changes, the count stays and is compared with the new limit.
 */
const START = 0
const COUNT = 1
/** More than any limit: no call passes before the window ends. */
const FULL = 2 ** 40

export const fixedWindow: Algorithm = {
  name: 'fixed-window',
  limit: 'rate',
  hasCalendar: true,
  options: ({ z }) => ({
    align: z.enum(['clock', 'first-call']).optional().describe('where windows begin; default: clock'),
    zone: z.string().min(1).max(64).optional().describe('the time zone of calendar periods; default: UTC'),
    anchor: z
      .union([z.int(), z.string().max(64)])
      .optional()
      .describe(
        'where calendar periods begin: a day of the month, a weekday, or a month and a day; default: 1, monday, 01-01',
      ),
  }),
  checkLevels(limits, { zone, anchor }: FixedWindowOptions): void {
    const units = limits.flatMap(({ unit }) => unit ?? [])
    if (zone !== undefined && units.length === 0) {
      const message = 'is for calendar periods: write limit: 1000/day, week, month or year, or leave zone out'
      throw new InvalidLimitError('zone', message)
    }
    if (anchor !== undefined && units.every(unit => unit === 'day')) {
      const message = 'is for calendar periods: write limit: 1000/week, month or year, or leave anchor out'
      throw new InvalidLimitError('anchor', message)
    }
  },
  meter(limit: Limit, options: FixedWindowOptions, waitOptions?: WaitOptions): Meter {
    const maxWaitUs = maxWaitUsOf(waitOptions)
    if (limit.unit !== undefined) return calendarMeter(limit, limit.unit, options, maxWaitUs)
    return new FixedWindow(limit, options.align !== 'first-call', maxWaitUs)
  },
}

function calendarMeter(limit: Limit, unit: CalendarUnit, options: FixedWindowOptions, maxWaitUs: number): Meter {
  const { align, zone = 'UTC', anchor = '' } = options
  if (align === 'first-call') {
    throw new InvalidLimitError(
      'align',
      `first-call is not for calendar periods, which begin by the calendar: leave align out`,
    )
  }
  if (maxWaitUs > 0) {
    const message = 'wait is not for calendar periods, which take days to end: write refuse'
    throw new InvalidLimitError('whenFull', `${message}, or put the calendar limit into a rule of its own`)
  }
  return new CalendarWindow(limit, unit, readCalendar(unit, options), `${unit} ${zone} ${anchor}`)
}

class FixedWindow implements Meter, MeterRate, MeterMigration, MeterMemory {
  readonly slots = 2
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
  readonly #aligned: boolean
  readonly #waits: boolean

  constructor(limit: Limit, aligned: boolean, maxWaitUs: number) {
    this.#count = limit.count
    this.#periodUs = limit.periodMs * 1000
    this.#aligned = aligned
    this.#waits = maxWaitUs > 0
    this.maxWaitUs = maxWaitUs
    const flags = { aligned: aligned ? 1 : 0, waits: maxWaitUs > 0 ? 1 : 0 }
    this.perUs = limit.count / this.#periodUs
    this.windowUs = this.#periodUs
    this.reportUs = windowReportUs(this.#periodUs) && Math.min(100_000, this.#periodUs / 20)
    this.envelope = envelopeOf(limit.count, this.#periodUs, aligned)
    this.scale = [this.#periodUs, flags.aligned, flags.waits]
    this.redis = { lua: { name: 'fixed-window' }, numbers: { count: this.#count, periodUs: this.#periodUs, ...flags } }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.#count) return Number.POSITIVE_INFINITY
    const start = state[at + START]!
    const used = state[at + COUNT]!
    // a new window begins, and is empty
    if (cost === 0 || used === 0 || now >= start + this.#periodUs) return 0
    if (used + cost > this.#count) return start + this.#periodUs - now
    return this.#isAhead(start, now) ? start - now : 0
  }

  take(state: Float64Array, at: number, now: number, cost: number, delay: number): void {
    const latest = this.#window(state, at, now)
    const window = this.#used(state, at, latest) + cost > this.#count ? latest + this.#periodUs : latest
    // a call that waits longer, because of another level, is counted in the window in which it passes
    const later = Math.floor((now + delay - window) / this.#periodUs) * this.#periodUs
    const passing = window + Math.max(0, later)
    state[at + COUNT] = this.#used(state, at, passing) + cost
    state[at + START] = passing
  }

  record(state: Float64Array, at: number, now: number, cost: number, delay: number, carries: boolean): void {
    let window = this.#window(state, at, now)
    let used = this.#used(state, at, window) % FULL
    if (carries && used + cost > this.#count && cost <= this.#count) {
      window += this.#periodUs
      used = 0
    }
    const later = Math.max(0, Math.floor((now + delay - window) / this.#periodUs)) * this.#periodUs
    state[at + START] = window + later
    // no call passes before a window to come has ended, unless calls wait for it
    const isShut = window + later > now && !this.#waits
    state[at + COUNT] = (later > 0 ? 0 : used) + cost + (isShut ? FULL : 0)
  }

  overdraw(state: Float64Array, at: number, now: number, cost: number): void {
    const window = this.#window(state, at, now)
    const used = this.#used(state, at, window)
    const counted = Math.min(cost, this.#count * MOST_DEBT - used)
    if (counted <= 0) return
    state[at + START] = window
    state[at + COUNT] = used + counted
  }

  pass(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean {
    const periodUs = this.#periodUs
    const start = state[at + START]!
    const kept = state[at + COUNT]!
    const isOver = kept === 0 || now >= start + periodUs
    const window = isOver ? this.#windowFrom(now) : start
    const used = isOver ? cost : kept + cost
    const left = this.#count - used
    const isAhead = this.#isAhead(window, now)
    if (left < 0 || isAhead) {
      result.remaining = isAhead ? 0 : Math.max(0, left + cost)
      result.idleAt = kept === 0 ? 0 : start + periodUs
      result.delay = cost > this.#count ? Number.POSITIVE_INFINITY : (left < 0 ? window + periodUs : window) - now
      return false
    }
    state[at + START] = window
    state[at + COUNT] = used
    result.remaining = left
    result.idleAt = window + periodUs
    return true
  }

  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt = -1): void {
    // whether a window of another period, which may have ended by then, was counted on is not known
    if (moment <= changedAt) return
    const start = state[at + START]!
    const ahead = this.#isAhead(start, now) ? Math.ceil((start - now) / this.#periodUs) : 0
    // what was counted in a window that has ended is forgotten already
    if (moment < start - ahead * this.#periodUs || now >= start + this.#periodUs) return
    const left = state[at + COUNT]! - cost
    // if the latest window becomes empty, the one before it is the latest, and full
    const back = left > 0 ? 0 : Math.min(ahead, 1 + Math.floor(-left / Math.max(1, this.#count)))
    state[at + START] = start - back * this.#periodUs
    state[at + COUNT] = Math.max(0, left + back * this.#count)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    const window = this.#window(state, at, now)
    return this.#isAhead(window, now) ? 0 : Math.max(0, this.#count - this.#used(state, at, window))
  }

  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void {
    const [oldPeriodUs = 0, oldAligned, oldWaits] = oldScale
    const [start, count] = [old[START]!, old[COUNT]!]
    const end = start + oldPeriodUs
    if (count === 0 || now >= end) return
    const isAhead = count > FULL / 2 || (oldWaits === 1 && start > now)
    const isAlike = oldPeriodUs === this.#periodUs && oldAligned === this.scale[1]
    if (isAlike && (!isAhead || this.#waits)) {
      state[at + START] = start
      state[at + COUNT] = count
    } else if (isAhead) {
      // calls wait up to the end of that window, and how many in each one before it is not known
      state[at + START] = this.#aligned ? this.#windowOf(end - 1) : Math.max(start, end - this.#periodUs)
      state[at + COUNT] = FULL
    } else {
      // in which part of the window the calls came is not known, so they count in the one that is now
      const latest = Math.max(now, start)
      const goesOn = !this.#aligned && latest < start + this.#periodUs
      state[at + START] = goesOn ? start : this.#aligned ? this.#windowOf(latest) : latest
      state[at + COUNT] = count
    }
  }

  endsAt(state: Float64Array, at: number, now: number): number {
    const isOver = now >= this.idleAt(state, at)
    return isOver && !this.#aligned ? 0 : this.#window(state, at, now) + this.#periodUs
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + COUNT] === 0 ? 0 : state[at + START]! + this.#periodUs
  }

  /** The start of the latest window with calls, or of the window of `now`. */
  #window(state: Float64Array, at: number, now: number): number {
    // a clock that steps back stays in the window it had reached
    if (state[at + COUNT]! > 0 && now < state[at + START]! + this.#periodUs) return state[at + START]!
    return this.#windowFrom(now)
  }

  #windowFrom(now: number): number {
    return this.#aligned ? this.#windowOf(now) : now
  }

  #windowOf(now: number): number {
    return Math.floor(now / this.#periodUs) * this.#periodUs
  }

  #used(state: Float64Array, at: number, window: number): number {
    return window === state[at + START] ? state[at + COUNT]! : 0
  }

  /** Whether calls wait for a window to begin; if calls never wait, the clock has stepped back. */
  #isAhead(window: number, now: number): boolean {
    return this.#waits && window > now
  }
}

/** Windows that begin with a call are no shorter than the period, so an interval touches at most one more than fit into it. */
function envelopeOf(units: number, periodUs: number, aligned: boolean): Envelope {
  const kind = aligned ? 'clock-window' : 'window'
  const floor = { kind, units, periodUs } as const
  const ceiling = aligned ? floor : ({ kind: 'bucket', units: 2 * units, perUs: units / periodUs } as const)
  if (aligned) return { largest: units, ceiling, floor }
  // the first call begins a window, and the others come just before its end
  const most = (lengthUs: number): number =>
    units === 0
      ? 0
      : Math.max(units * Math.ceil(lengthUs / periodUs), units - 1 + units * Math.ceil((lengthUs - 1) / periodUs))
  return { largest: units, ceiling, floor, most }
}
