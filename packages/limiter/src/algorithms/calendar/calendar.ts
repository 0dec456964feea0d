import type { CalendarUnit } from '../../common/calendar-unit.ts'
import type { Zone } from './zone.ts'

/*
 * Calendar periods: days, weeks, months and years of a time zone. A period is known by its first day; it begins with the first moment
 * of that day and ends where the next one begins, so that periods neither overlap nor leave gaps, however clocks are changed:
 *
 *   Berlin, 29 to 31 March 2026      |--- 23 hours ---|---- 24 hours ----|         UTC 23:00, 22:00, 22:00
 *
 * A month that is shorter than its anchor begins with its last day: anchor 31 is 31 January, 28 February, 31 March.
 */

/** From `start` until before `end`, in whole microseconds. */
export interface Period {
  readonly start: number
  readonly end: number
}

/** Where periods begin: a weekday from 0, Sunday; a day of the month; a month from 0 and a day. */
export interface CalendarTerms {
  readonly unit: CalendarUnit
  readonly zone: Zone
  readonly weekday: number
  readonly month: number
  readonly day: number
}

/** So many periods are kept, the one that was asked for last first. */
const KEPT = 4

export class Calendar {
  readonly #terms: CalendarTerms
  readonly #known: Period[] = []

  constructor(terms: CalendarTerms) {
    this.#terms = terms
  }

  /** The period of a moment. */
  at(now: number): Period {
    const [last] = this.#known
    if (last !== undefined && now >= last.start && now < last.end) return last
    return this.#find(now)
  }

  #find(now: number): Period {
    const place = this.#known.findIndex(({ start, end }) => now >= start && now < end)
    const period = place < 0 ? this.#compute(now) : this.#known.splice(place, 1)[0]!
    this.#known.unshift(period)
    this.#known.length = Math.min(this.#known.length, KEPT)
    return period
  }

  #compute(now: number): Period {
    const { zone } = this.#terms
    let first = firstDayOf(zone.dayAt(now / 1000), this.#terms)
    let start = zone.startOfDay(first) * 1000
    for (;;) {
      first = nextFirstDay(first, this.#terms)
      const end = zone.startOfDay(first) * 1000
      // a clock that was set back over midnight shows a day that is over
      if (now < end) return { start, end }
      start = end
    }
  }
}

/** The first day of the period of a day. */
function firstDayOf(day: number, terms: CalendarTerms): number {
  switch (terms.unit) {
    case 'day':
      return day
    case 'week':
      // 1970-01-01 was a Thursday
      return day - ((((day + 4 - terms.weekday) % 7) + 7) % 7)
    case 'month': {
      const date = dateOf(day)
      const here = dayOf(date.getUTCFullYear(), date.getUTCMonth(), terms.day)
      return here <= day ? here : dayOf(date.getUTCFullYear(), date.getUTCMonth() - 1, terms.day)
    }
    case 'year': {
      const year = dateOf(day).getUTCFullYear()
      const here = dayOf(year, terms.month, terms.day)
      return here <= day ? here : dayOf(year - 1, terms.month, terms.day)
    }
  }
}

/** The first day of the period after that which begins with a day. */
function nextFirstDay(first: number, terms: CalendarTerms): number {
  const date = dateOf(first)
  switch (terms.unit) {
    case 'day':
      return first + 1
    case 'week':
      return first + 7
    case 'month':
      return dayOf(date.getUTCFullYear(), date.getUTCMonth() + 1, terms.day)
    case 'year':
      return dayOf(date.getUTCFullYear() + 1, terms.month, terms.day)
  }
}

const DAY_MS = 86_400_000

function dateOf(day: number): Date {
  return new Date(day * DAY_MS)
}

/** A day of a month, or its last one; counted from 1970-01-01. */
function dayOf(year: number, month: number, day: number): number {
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  return Date.UTC(year, month, Math.min(day, length)) / DAY_MS
}
