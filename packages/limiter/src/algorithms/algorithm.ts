import type { CalendarUnit } from '../common/calendar-unit.ts'
import type { OptionShape } from '../common/option-shape.ts'
import type { Ending, Estimate } from './adaptive/estimator.ts'
import type { Envelope } from './envelope.ts'

/** Windows shorter than this are not leased: each report would come too late. */
const SHORTEST_LEASED_US = 500_000
/** The part of a window by which reports may come late. */
const REPORTED_WITHIN = 0.02

/** For how long the used permits of a window may go unreported: see `MeterRate.reportUs`. */
export function windowReportUs(windowUs: number): number | undefined {
  return windowUs < SHORTEST_LEASED_US ? undefined : Math.min(500_000, windowUs * REPORTED_WITHIN)
}

/** What becomes of what was used beyond a reservation: it is charged beyond the limit, or up to the limit. */
export type Overrun = 'debt' | 'clip'

/** No more than so many times the limit is counted of what was used beyond it. */
export const MOST_DEBT = 100

/** How many in how long; a period of 0 is a bare count, for concurrency. */
export interface Limit {
  readonly count: number
  /** For a calendar period, how long it is at most, apart from changes of the clock. */
  readonly periodMs: number
  /** Set if the period is one of the calendar. */
  readonly unit?: CalendarUnit | undefined
}

/** A limit and the options that go with it. */
export interface Terms {
  readonly limit: Limit
  readonly options: Readonly<Record<string, unknown>>
}

/** One process among `size` that share a limit: the `rank`th, from 0. A rank that is not known is `size`, which no process has. */
export interface Part {
  readonly rank: number
  readonly size: number
}

/** How long a rule lets a call wait: not at all when absent; `timeoutUs` absent leaves the bound to the algorithm. */
export interface WaitOptions {
  readonly timeoutUs?: number | undefined
}

const DEFAULT_WAIT_US = 1_000_000

/** The longest that a call waits if the algorithm has no bound of its own. */
export function maxWaitUsOf(waitOptions: WaitOptions | undefined): number {
  return waitOptions ? (waitOptions.timeoutUs ?? DEFAULT_WAIT_US) : 0
}

/**
 * One way of counting. It knows no clock, no store and no rule: it turns a limit into a meter.
 * `options` are its own options in a rule.
 */
export interface Algorithm {
  readonly name: string
  /** 'rate' reads limits like 100/s, 'count' reads bare counts like 50. */
  readonly limit: 'rate' | 'count'
  readonly options: OptionShape
  /** It counts also in days, weeks, months and years of the calendar: limits that have a `unit`. */
  readonly hasCalendar?: boolean | undefined
  /** Throws an InvalidLimitError if options do not fit the limits of a rule, all of them together. */
  checkLevels?(limits: readonly Limit[], options: Readonly<Record<string, unknown>>): void
  /** Throws an InvalidLimitError if it cannot count these numbers. */
  meter(limit: Limit, options: Readonly<Record<string, unknown>>, waitOptions?: WaitOptions): Meter
  /**
   * The share of one process among several, which together may not admit more than the limit; undefined if nothing
   * is left for it. Without this, the count is divided and the options stay.
   */
  part?(limit: Limit, options: Readonly<Record<string, unknown>>, part: Part): Terms | undefined
}

/**
 * One limit, ready to count. A key's state is `slots` numbers from `at` on; all zeros is a key never seen, and a key
 * forgotten after `idleAt` is answered as before. Moments and durations are whole microseconds.
 *
 * The members up to `idleAt` are required. The others are groups, each for one purpose: a meter without a group counts as well, and
 * docs/extending.md says what it then cannot do. A class that has the members of a group is the group itself: `readonly rate = this`.
 */
export interface Meter {
  readonly slots: number
  /** The longest delay a call is admitted with; 0 refuses calls that cannot pass at once. */
  readonly maxWaitUs: number
  /**
   * How long until `cost` fits, seen from `now`; Infinity when no moment can be named. Changes nothing. `priority` is the rank of
   * the call's level, from 0 for the lowest to 1 for the highest.
   */
  delay(state: Float64Array, at: number, now: number, cost: number, priority?: number): number
  /** Counts `cost` as admitted at `now + delay`, where `delay` is no shorter than `delay()` just returned. */
  take(state: Float64Array, at: number, now: number, cost: number, delay: number, priority?: number): void
  /**
   * Takes back what was counted as admitted at `moment`: exactly if it came last, never more than time has left of it
   * otherwise. The limit is what it is since `changedAt`, if it was changed.
   */
  refund(state: Float64Array, at: number, now: number, cost: number, moment: number, changedAt?: number): void
  /** The largest cost that would pass at once. */
  remaining(state: Float64Array, at: number, now: number, priority?: number): number
  /** The moment from which this state equals that of a key never seen. */
  idleAt(state: Float64Array, at: number): number
  /** Describes how time frees the permits that were taken. */
  readonly rate?: MeterRate | undefined
  /** Set if a charge lasts until it is refunded, and time frees nothing. */
  readonly held?: MeterHeld | undefined
  /** Counts what it has not judged: the state of another limit, calls that were admitted elsewhere, and debts. */
  readonly migrate?: MeterMigration | undefined
  /** For speed and space in this process. */
  readonly memory?: MeterMemory | undefined
  /** For counting in Redis. */
  readonly redis?: MeterRedis | undefined
}

/** How time frees what was taken. */
export interface MeterRate {
  /** How much it admits in a microsecond in the long run. */
  readonly perUs: number
  /** The most that can ever pass at once, if that is another number than the count of the limit. */
  readonly most?: number | undefined
  /** For how long a call counts, if each call leaves that long after it was counted, or earlier; a rate without this refills. */
  readonly windowUs?: number | undefined
  /**
   * For how long permits that were used may go unreported when the limit is nearly reached, in microseconds: reports that come late count
   * calls as of a later moment. The permits of a meter without this are not leased.
   */
  readonly reportUs?: number | undefined
  /** Bounds of what it admits if the moments of calls are not known exactly; a meter without this has none. */
  readonly envelope?: Envelope | undefined
  /** Set if a key gains from the moment at which it is first seen. */
  readonly start?: MeterStart | undefined
  /** For a meter whose count ends all at once: when; 0 if that is not known yet. No permit is leased beyond that moment. */
  endsAt?(state: Float64Array, at: number, now: number): number
  /** Takes all that is left at `now`, fractions of a permit too; a meter without this knows no fractions. */
  drain?(state: Float64Array, at: number, now: number): void
}

/** A key gains from the moment at which it is first seen, and is remembered for longer than until all is back. */
export interface MeterStart {
  /** Stores that moment for a call that is not admitted. Returns false if the key is known already. */
  begin(state: Float64Array, at: number, now: number): boolean
  /** The moment at which all that was taken is back. */
  fullAt(state: Float64Array, at: number): number
}

/** A charge lasts until it is refunded. */
export interface MeterHeld {
  /** Set if the limit is found by watching the calls. */
  readonly learns?: MeterLearning | undefined
}

/**
 * For a meter that finds its limit: what it refuses is refused because of overload, and in shadow it counts also the calls that it would
 * refuse, since it learns from all calls that a service gets.
 */
export interface MeterLearning {
  /** The call that was counted as admitted at `moment` has ended; it is not refunded then. */
  end(state: Float64Array, at: number, now: number, cost: number, moment: number, ending: Ending): void
  estimate(state: Float64Array, at: number, now: number): Estimate
}

/** Counts what the meter has not judged. */
export interface MeterMigration {
  /**
   * The units of the numbers of a state, the period in microseconds first; states of another scale are inherited. All meters of an
   * algorithm have as many numbers.
   */
  readonly scale: readonly number[]
  /**
   * Writes the state that `old`, kept by a meter of this algorithm with another scale, amounts to: what was used stays
   * used, nothing is reset or refilled. `state` is all zeros before.
   */
  inherit(old: ArrayLike<number>, oldScale: readonly number[], state: Float64Array, at: number, now: number): void
  /**
   * Counts a call that another version of the rule has admitted to pass at `now + delay`, whether or not it fits here; what does not
   * fit is counted as late as it does if `carries` is true. A meter without this counts it with `take`.
   */
  record?(state: Float64Array, at: number, now: number, cost: number, delay: number, carries: boolean): void
  /**
   * For a window: counts calls that were admitted at `moment`, which may be before others that are counted already, whether or not they
   * fit. They leave a period after that moment, or later.
   */
  insert?(state: Float64Array, at: number, now: number, cost: number, moment: number): void
  /**
   * Counts at `now` what was used beyond the limit: no call passes before time has freed as much, and `remaining` is 0 until then. What
   * is counted is at most `MOST_DEBT` times the limit. A meter without this counts up to the limit.
   */
  overdraw?(state: Float64Array, at: number, now: number, cost: number): void
}

/** For speed and space in this process. */
export interface MeterMemory {
  /**
   * `delay`, `take`, `remaining` and `idleAt` in one: takes a call that passes at once and returns true, or changes nothing; reports
   * what is left then. `cost` is 1 or more.
   */
  pass(state: Float64Array, at: number, now: number, cost: number, result: PassResult): boolean
  /**
   * So many of the numbers are always stored, the first ones; the others only while the first of them is not 0, and are all 0
   * otherwise. All of them are stored if this is left out.
   */
  readonly coreSlots?: number | undefined
}

/** For counting in Redis. */
export interface MeterRedis {
  /** The moves of the meter in Lua. */
  readonly lua: LuaAlgorithm
  /** The numbers that they need. */
  readonly numbers: Readonly<Record<string, number>>
  /** More numbers, if they are others at other moments. */
  numbersAt?(now: number): TimedNumbers
}

/** A meter of blocks: its costs set a moment instead of adding up. No rule names it as its algorithm. */
export interface Block extends Meter {
  /** The cost that refuses calls for `us` microseconds. */
  costLasting(us: number): number
}

/** Numbers that are the same from a moment until before another one. */
export interface TimedNumbers {
  readonly numbers: Readonly<Record<string, number>>
  readonly from: number
  readonly until: number
}

/** What `pass` reports of a key. */
export interface PassResult {
  /** Only if the call does not pass at once. */
  delay: number
  remaining: number
  idleAt: number
}

/**
 * A meter's methods in Lua, for counting in Redis: the body of a function that returns a table of functions with the names and
 * the meaning of the methods above. `meter` holds the meter's `numbers` by name, `state` its slots counted from 1, and `state.n`
 * how many they are; floor, ceil, max, min and huge can be used without `math.`. Every number is a double, as here.
 *
 * Required: `delay(meter, state, now, cost)`, `take(meter, state, now, cost, delay)`, `remaining(meter, state, now)`,
 * `idleAt(meter, state)` and `refund(meter, state, now, cost, moment, changedAt)`. Optional: `begin(meter, state, now)`,
 * `fullAt(meter, state)`, `endsAt(meter, state, now)`, `record(meter, state, now, cost, delay, carries)`, `overdraw(meter, state, now, cost)`,
 * `insert(meter, state, now, cost, moment)`,
 * `perUs(meter)`; `shift(meter, state, us)`, which
 * moves a state back in time when the clock has stepped back; `inherit(meter, old, oldScale, now)`, which returns a new
 * state; `longest(meter, oldScale, leftUs)`, for how long a state may matter that was inherited from one that mattered for
 * `leftUs` (left out: that and the period).
 *
 * `take` may return three numbers of the state that it leaves, which are then not asked for: what remains, `idleAt`, and `fullAt` if
 * that is another moment. With nothing returned, Redis runs `remaining`, `idleAt` and `fullAt` after it.
 *
 * The functions live as long as Redis keeps the library: what they keep in variables of their own, all calls share.
 */
export interface LuaAlgorithm {
  /** Identifies the text: two algorithms with one name must not differ. */
  readonly name: string
  /** Left out: that of Diana's own algorithm of this name. */
  readonly lua?: string | undefined
}

/** Numbers that an algorithm cannot count; `field` is the option of the rule to point at. */
export class InvalidLimitError extends Error {
  readonly field: string

  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** What a meter can admit at once to a key that has used nothing. */
export function capacityOf(meter: Meter, now = 0): number {
  return meter.rate?.most ?? meter.remaining(new Float64Array(meter.slots), 0, now)
}

/** The moment at which all that a key has taken is back. */
export function fullAt(meter: Meter, state: Float64Array, at: number): number {
  const start = meter.rate?.start
  return start === undefined ? meter.idleAt(state, at) : start.fullAt(state, at)
}
