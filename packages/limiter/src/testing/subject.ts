import assert from 'node:assert/strict'
import type { Limit, Meter, WaitOptions } from '../algorithms/algorithm.ts'
import { readCalendar } from '../algorithms/calendar/read-calendar.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingLog } from '../algorithms/sliding-log.ts'
import { slidingWindow } from '../algorithms/sliding-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { warmUp } from '../algorithms/warm-up.ts'
import { CALENDAR_UNITS, USUAL_MS } from '../common/calendar-unit.ts'
import {
  alignedOracle,
  bucketOracle,
  intervalOracle,
  logOracle,
  type Numbers,
  nginxOracle,
  type Oracle,
  windowOracle,
} from './oracle.ts'
import { type Dice, limitFrom, pick } from './walk.ts'

/** A call that was let through. */
export interface Admission {
  readonly moment: number
  readonly cost: number
}

/** A meter to walk over, and its promises. */
export interface Subject {
  readonly limit: Limit
  readonly meter: Meter
  /** The largest cost that ever fits, or is tried. */
  readonly most: number
  /** Throws if more was admitted than the limit allows. */
  assertBound(admitted: readonly Admission[]): void
  /** The simplest implementation with the same answers, if there is one. */
  readonly oracle?: Oracle | undefined
}

/** Makes a subject out of random numbers; `timeoutUs` undefined refuses what does not fit. */
export type SubjectMaker = (limit: Dice, options: Dice, timeoutUs: number | undefined) => Subject

const LARGEST = 60_000_000

export const subjects: Readonly<Record<string, SubjectMaker>> = {
  'fixed-window': (dice, _options, timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const periodUs = limit.periodMs * 1000
    return {
      ...{ limit, most: limit.count, meter: fixedWindow.meter(limit, {}, waitOptions(timeoutUs)) },
      oracle: windowOracle({ count: limit.count, periodUs, maxWaitUs: timeoutUs }, true),
      assertBound: admitted => {
        for (const { moment } of admitted) {
          const start = moment - (moment % periodUs)
          assertFew(admitted, start, start + periodUs, limit.count)
        }
      },
    }
  },

  // calls by a calendar never wait
  'fixed-window of the calendar': ([count = 0, period = 0], [zone = 0, anchor = 0]) => {
    const unit = pick(CALENDAR_UNITS, period)
    const limit = { ...limitFrom([count]), periodMs: USUAL_MS[unit], unit }
    const options = {
      zone: pick(['UTC', 'America/Sao_Paulo', 'Europe/Berlin', 'Asia/Kathmandu', 'Pacific/Apia'], zone),
      anchor: { day: undefined, week: 'friday', month: 1 + (anchor % 31), year: '02-29' }[unit],
    }
    const calendar = readCalendar(unit, options)
    return {
      ...{ limit, most: limit.count, meter: fixedWindow.meter(limit, options) },
      assertBound: admitted => {
        for (const { moment } of admitted) {
          const { start, end } = calendar.at(moment)
          assertFew(admitted, start, end, limit.count)
        }
      },
    }
  },

  'fixed-window from the first call': (dice, _options, timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const periodUs = limit.periodMs * 1000
    return {
      ...{ limit, most: limit.count, meter: fixedWindow.meter(limit, { align: 'first-call' }, waitOptions(timeoutUs)) },
      oracle: windowOracle({ count: limit.count, periodUs, maxWaitUs: timeoutUs }, false),
      // two windows may meet at their edge, three may not
      assertBound: admitted => assertWindowBound(admitted, 2 * limit.count, periodUs),
    }
  },

  'sliding-window': (dice, [segments = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const periodUs = limit.periodMs * 1000
    // so that what waits can be counted
    const mostAhead = Math.floor(LARGEST / limit.count) - 1
    const patient = waitOptions(Math.min(timeoutUs, mostAhead * periodUs))
    const meter = slidingWindow.meter(limit, { segments: pick([10, 10, 2, 3, 7, 100], segments) }, patient)
    return {
      ...{ limit, meter, most: limit.count },
      assertBound: admitted => assertWindowBound(admitted, limit.count, periodUs),
    }
  },

  'sliding-log': (dice, _options, timeoutUs = 0) => {
    const limit = limitFrom(dice, 1000)
    const periodUs = limit.periodMs * 1000
    return {
      ...{ limit, most: limit.count, meter: slidingLog.meter(limit, {}, waitOptions(timeoutUs)) },
      oracle: logOracle({ count: limit.count, periodUs, maxWaitUs: timeoutUs }),
      assertBound: admitted => assertWindowBound(admitted, limit.count, periodUs),
    }
  },

  'token-bucket': (dice, [burstDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([limit.count, 1, 2, 3, 17, limit.count * 3], burstDie)
    const numbers = { count: limit.count, periodUs: limit.periodMs * 1000, maxWaitUs: timeoutUs }
    return {
      ...{ limit, most: burst, meter: tokenBucket.meter(limit, { burst }, waitOptions(timeoutUs)) },
      oracle: isCountedExactly(numbers, burst) ? bucketOracle(numbers, burst) : undefined,
      assertBound: admitted => assertBucketBound(admitted, burst, limit),
    }
  },

  'token-bucket that starts empty': (dice, [burstDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([limit.count, 1, 2, 3, 17, limit.count * 3], burstDie)
    return {
      ...{ limit, most: burst, meter: tokenBucket.meter(limit, { burst, start: 'empty' }, waitOptions(timeoutUs)) },
      assertBound: admitted => assertBucketBound(admitted, burst, limit),
    }
  },

  'token-bucket by intervals': (dice, [burstDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([limit.count, 1, 2, 3, 17, limit.count * 3], burstDie)
    const numbers = { count: limit.count, periodUs: limit.periodMs * 1000, maxWaitUs: timeoutUs }
    return {
      ...{ limit, most: burst, meter: tokenBucket.meter(limit, { burst, refill: 'interval' }, waitOptions(timeoutUs)) },
      oracle: intervalOracle(numbers, burst),
      assertBound: admitted => assertIntervalBound(admitted, burst, limit),
    }
  },

  'token-bucket by intervals that starts empty': (dice, [burstDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([limit.count, 1, 2, 3, 17, limit.count * 3], burstDie)
    const options = { burst, refill: 'interval', start: 'empty' }
    return {
      ...{ limit, most: burst, meter: tokenBucket.meter(limit, options, waitOptions(timeoutUs)) },
      assertBound: admitted => assertIntervalBound(admitted, burst, limit),
    }
  },

  'token-bucket by the clock': (dice, [burstDie = 0, startDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([limit.count, 1, 2, 3, 17, limit.count * 3], burstDie)
    const start = pick(['full', 'full', 'empty'], startDie)
    const periodUs = limit.periodMs * 1000
    return {
      ...{ limit, most: burst },
      meter: tokenBucket.meter(limit, { burst, start, refill: 'aligned' }, waitOptions(timeoutUs)),
      oracle:
        start === 'full' ? alignedOracle({ count: limit.count, periodUs, maxWaitUs: timeoutUs }, burst) : undefined,
      assertBound: admitted => assertAlignedBound(admitted, burst, limit),
    }
  },

  'leaky-bucket': (dice, [burstDie = 0, delayDie = 0], timeoutUs) => {
    const limit = limitFrom(dice, LARGEST)
    const burst = pick([0, 1, 2, 5, 30, limit.count], burstDie)
    const delay = timeoutUs === undefined ? burst : Math.min(burst, pick([0, 1, 3, burst], delayDie))
    const numbers = { count: limit.count, periodUs: limit.periodMs * 1000, maxWaitUs: 0 }
    const options = timeoutUs === undefined ? { burst } : { burst, delay }
    return {
      // nginx has no timeout: a call waits if the queue has room
      ...{ limit, most: burst + 1, meter: leakyBucket.meter(limit, options, timeoutUs === undefined ? undefined : {}) },
      // and it rounds moments to its units, where these do not come out even
      oracle: numbers.periodUs % limit.count === 0 ? nginxOracle(numbers, burst, delay) : undefined,
      assertBound: admitted => assertBucketBound(admitted, burst + 1, limit),
    }
  },

  'warm-up': (dice, [warmUpDie = 0, coldDie = 0], timeoutUs = 0) => {
    const limit = limitFrom(dice, 1000)
    const options = { warmUp: pick([1, 100, 4000, 600_000], warmUpDie), coldFactor: pick([3, 2, 10, 1.5], coldDie) }
    return {
      ...{ limit, most: 5, meter: warmUp.meter(limit, options, waitOptions(timeoutUs)) },
      assertBound: admitted => assertPaced(admitted, limit),
    }
  },
}

function waitOptions(timeoutUs: number): WaitOptions | undefined {
  return timeoutUs === 0 ? undefined : { timeoutUs }
}

/** Doubles represent a bucket's numbers exactly up to here; and of several tokens in a microsecond some are lost in waiting. */
function isCountedExactly({ count, periodUs, maxWaitUs }: Numbers, burst: number): boolean {
  const tokens = 2 * burst + Math.ceil((maxWaitUs * count) / periodUs)
  return tokens * periodUs <= 2 ** 52 && (maxWaitUs === 0 || count <= periodUs)
}

function assertFew(admitted: readonly Admission[], from: number, to: number, most: number): void {
  const inside = admitted.filter(({ moment }) => moment >= from && moment < to)
  const total = inside.reduce((sum, { cost }) => sum + cost, 0)
  assert.ok(total <= most, `${total} of ${most} from ${from} to ${to}`)
}

/** Allows at most `count` in any half-open interval of the period. */
function assertWindowBound(admitted: readonly Admission[], count: number, periodUs: number): void {
  for (const { moment } of admitted) assertFew(admitted, moment, moment + periodUs, count)
}

/** Allows at most burst + rate * t in any interval t, in whole numbers. */
function assertBucketBound(admitted: readonly Admission[], burst: number, limit: Limit): void {
  const periodUs = BigInt(limit.periodMs * 1000)
  for (const [from, { moment: start }] of admitted.entries()) {
    let total = 0n
    for (const { moment, cost } of admitted.slice(from)) {
      total += BigInt(cost)
      const most = BigInt(burst) * periodUs + BigInt(moment - start) * BigInt(limit.count)
      assert.ok(total * periodUs <= most, `${total} with a burst of ${burst} within ${moment - start} µs`)
    }
  }
}

/** Allows at most burst + count for every period begun in an interval. */
function assertIntervalBound(admitted: readonly Admission[], burst: number, { count, periodMs }: Limit): void {
  for (const [from, { moment: start }] of admitted.entries()) {
    let total = 0
    for (const { moment, cost } of admitted.slice(from)) {
      total += cost
      const most = burst + count * Math.ceil((moment - start) / (periodMs * 1000))
      assert.ok(total <= most, `${total} of ${most} with a burst of ${burst} within ${moment - start} µs`)
    }
  }
}

/** Allows at most burst + count for every end of a period in an interval. */
function assertAlignedBound(admitted: readonly Admission[], burst: number, { count, periodMs }: Limit): void {
  const periodOf = (moment: number): number => Math.floor(moment / (periodMs * 1000))
  for (const [from, { moment: start }] of admitted.entries()) {
    let total = 0
    for (const { moment, cost } of admitted.slice(from)) {
      total += cost
      const most = burst + count * (periodOf(moment) - periodOf(start))
      assert.ok(total <= most, `${total} of ${most} with a burst of ${burst} within ${moment - start} µs`)
    }
  }
}

/** Allows a call only after a pause as long as the previous call costs at the full rate; a billionth is lost in doubles. */
function assertPaced(admitted: readonly Admission[], limit: Limit): void {
  for (const [i, { moment, cost }] of admitted.slice(0, -1).entries()) {
    const pauseUs = admitted[i + 1]!.moment - moment
    const leastUs = (cost * limit.periodMs * 1000) / limit.count
    assert.ok(pauseUs >= leastUs * (1 - 1e-9), `${pauseUs} µs after a call of cost ${cost}`)
  }
}
