import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CALENDAR_UNITS, type CalendarUnit } from '../../common/calendar-unit.ts'
import { readCalendar } from './read-calendar.ts'

type Table = readonly (readonly [
  title: string,
  unit: CalendarUnit,
  zone: string,
  anchor: number | string | undefined,
  at: string,
  start: string,
  end: string,
])[]

/** The period of a moment: begins, ends; all moments in UTC. */
const clockChanges: Table = [
  [
    'Berlin, 23 hours',
    'day',
    'Europe/Berlin',
    undefined,
    '2026-03-29T12:00Z',
    '2026-03-28T23:00Z',
    '2026-03-29T22:00Z',
  ],
  [
    'Berlin, 25 hours',
    'day',
    'Europe/Berlin',
    undefined,
    '2026-10-25T12:00Z',
    '2026-10-24T22:00Z',
    '2026-10-25T23:00Z',
  ],
  [
    'Berlin, a week of 167 hours',
    'week',
    'Europe/Berlin',
    undefined,
    '2026-03-25T12:00Z',
    '2026-03-22T23:00Z',
    '2026-03-29T22:00Z',
  ],
  [
    'Berlin, October',
    'month',
    'Europe/Berlin',
    undefined,
    '2026-10-15T12:00Z',
    '2026-09-30T22:00Z',
    '2026-10-31T23:00Z',
  ],
  [
    'New York, 23 hours',
    'day',
    'America/New_York',
    undefined,
    '2026-03-08T12:00Z',
    '2026-03-08T05:00Z',
    '2026-03-09T04:00Z',
  ],
  [
    'New York, 25 hours',
    'day',
    'America/New_York',
    undefined,
    '2026-11-01T12:00Z',
    '2026-11-01T04:00Z',
    '2026-11-02T05:00Z',
  ],
  [
    'Lord Howe, half an hour',
    'day',
    'Australia/Lord_Howe',
    undefined,
    '2026-10-03T20:00Z',
    '2026-10-03T13:30Z',
    '2026-10-04T13:00Z',
  ],
  [
    'São Paulo, midnight is skipped',
    'day',
    'America/Sao_Paulo',
    undefined,
    '2018-11-04T12:00Z',
    '2018-11-04T03:00Z',
    '2018-11-05T02:00Z',
  ],
  [
    'São Paulo, the hour before midnight comes twice',
    'day',
    'America/Sao_Paulo',
    undefined,
    '2019-02-17T02:30Z',
    '2019-02-16T02:00Z',
    '2019-02-17T03:00Z',
  ],
  [
    'Beirut, midnight is skipped',
    'day',
    'Asia/Beirut',
    undefined,
    '2026-03-29T10:00Z',
    '2026-03-28T22:00Z',
    '2026-03-29T21:00Z',
  ],
  [
    'St. John’s, midnight comes twice',
    'day',
    'America/St_Johns',
    undefined,
    '2010-11-07T02:45Z',
    '2010-11-07T02:30Z',
    '2010-11-08T03:30Z',
  ],
  [
    'Apia, the day before the one that was skipped',
    'day',
    'Pacific/Apia',
    undefined,
    '2011-12-30T09:59Z',
    '2011-12-29T10:00Z',
    '2011-12-30T10:00Z',
  ],
  [
    'Apia, the day after the one that was skipped',
    'day',
    'Pacific/Apia',
    undefined,
    '2011-12-30T10:00Z',
    '2011-12-30T10:00Z',
    '2011-12-31T10:00Z',
  ],
  [
    'Apia, a month that begins with the day that was skipped',
    'month',
    'Pacific/Apia',
    30,
    '2012-01-01T00:00Z',
    '2011-12-30T10:00Z',
    '2012-01-29T10:00Z',
  ],
]

const monthEnds: Table = [
  ['anchor 31 in January', 'month', 'UTC', 31, '2026-02-01T00:00Z', '2026-01-31T00:00Z', '2026-02-28T00:00Z'],
  ['anchor 31 in February', 'month', 'UTC', 31, '2026-02-28T00:00Z', '2026-02-28T00:00Z', '2026-03-31T00:00Z'],
  ['anchor 31 in April', 'month', 'UTC', 31, '2026-05-01T00:00Z', '2026-04-30T00:00Z', '2026-05-31T00:00Z'],
  ['anchor 30 in February', 'month', 'UTC', 30, '2026-03-01T00:00Z', '2026-02-28T00:00Z', '2026-03-30T00:00Z'],
  ['anchor 29 in a leap year', 'month', 'UTC', 29, '2028-02-29T00:00Z', '2028-02-29T00:00Z', '2028-03-29T00:00Z'],
  ['anchor 29 in another year', 'month', 'UTC', 29, '2026-03-01T00:00Z', '2026-02-28T00:00Z', '2026-03-29T00:00Z'],
  [
    'the last moment before the anchor',
    'month',
    'UTC',
    15,
    '2026-07-14T23:59:59.999Z',
    '2026-06-15T00:00Z',
    '2026-07-15T00:00Z',
  ],
  ['February of a leap year', 'month', 'UTC', undefined, '2028-02-29T23:59Z', '2028-02-01T00:00Z', '2028-03-01T00:00Z'],
  [
    'February of a year without a leap day',
    'month',
    'UTC',
    undefined,
    '2100-02-28T23:59Z',
    '2100-02-01T00:00Z',
    '2100-03-01T00:00Z',
  ],
  ['a leap year', 'year', 'UTC', undefined, '2028-12-31T23:59Z', '2028-01-01T00:00Z', '2029-01-01T00:00Z'],
  ['a year from a leap day', 'year', 'UTC', '02-29', '2028-02-29T00:00Z', '2028-02-29T00:00Z', '2029-02-28T00:00Z'],
  [
    'a year from a leap day that is not there',
    'year',
    'UTC',
    '02-29',
    '2027-03-01T00:00Z',
    '2027-02-28T00:00Z',
    '2028-02-29T00:00Z',
  ],
  ['a tax year', 'year', 'Europe/London', '04-06', '2026-04-05T22:00Z', '2025-04-05T23:00Z', '2026-04-05T23:00Z'],
  ['a week from Monday', 'week', 'UTC', undefined, '2026-11-18T00:00Z', '2026-11-16T00:00Z', '2026-11-23T00:00Z'],
  ['a week from Sunday', 'week', 'UTC', 'sunday', '2026-11-18T00:00Z', '2026-11-15T00:00Z', '2026-11-22T00:00Z'],
  ['a week across 1970', 'week', 'UTC', 'monday', '1970-01-01T00:00Z', '1969-12-29T00:00Z', '1970-01-05T00:00Z'],
]

describe.each([
  ['with changes of the clock', clockChanges],
  ['of months and years that differ in length', monthEnds],
])('calendar periods %s', (_, table) => {
  it.each(table)(
    '%s: the %s of %s with anchor %s at %s is from %s to %s',
    (_title, unit, zone, anchor, at, start, end) => {
      const period = readCalendar(unit, { zone, anchor }).at(Date.parse(at) * 1000)
      const seen = [period.start, period.end].map(us => new Date(us / 1000).toISOString())
      expect(seen).toEqual([start, end].map(text => new Date(text).toISOString()))
    },
  )
})

const STEP_MS = 900_000

/** Where periods begin in a stretch of time, found by reading the date every quarter of an hour. */
function beginnings(
  unit: CalendarUnit,
  zone: string,
  anchor: number | undefined,
  fromMs: number,
  toMs: number,
): number[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' })
  const labelOf = (at: number): string => {
    const date = format.format(at)
    const [year, month, day] = date.split('-').map(Number) as [number, number, number]
    if (unit === 'day') return date
    if (unit === 'year') return String(year)
    if (unit === 'week') {
      const noon = Date.parse(`${date}T12:00Z`)
      return new Date(noon - ((new Date(noon).getUTCDay() + 6) % 7) * 86_400_000).toISOString()
    }
    const length = new Date(Date.UTC(year, month, 0)).getUTCDate()
    const months = year * 12 + month - (day >= Math.min(anchor ?? 1, length) ? 0 : 1)
    return String(months).padStart(6, '0')
  }
  const found: number[] = []
  let latest = labelOf(fromMs)
  for (let at = fromMs + STEP_MS; at <= toMs; at += STEP_MS) {
    const label = labelOf(at)
    if (label > latest) {
      found.push(at)
      latest = label
    }
  }
  return found
}

/** Periods from a moment on, each asked for by a moment in the one before. */
function periods(unit: CalendarUnit, zone: string, anchor: number | undefined, fromMs: number, toMs: number): number[] {
  const calendar = readCalendar(unit, { zone, anchor })
  const found: number[] = []
  for (let at = calendar.at(fromMs * 1000).end; at <= toMs * 1000; at = calendar.at(at).end) found.push(at / 1000)
  return found
}

describe('calendar periods beside a calendar that is read step by step', () => {
  const zones = Intl.supportedValuesOf('timeZone')
  const years = fc.integer({ min: 1971, max: 2037 })

  it('periods of random zones and years begin where the date changes', () => {
    const property = fc.property(
      ...[
        fc.constantFrom(...zones),
        fc.constantFrom(...CALENDAR_UNITS),
        fc.integer({ min: 1, max: 31 }),
        years,
        fc.integer({ min: 0, max: 11 }),
      ],
      (zone, unit, day, year, month) => {
        const from = Date.UTC(year, month, 1)
        const to = from + 40 * 86_400_000
        const anchor = unit === 'month' ? day : undefined
        expect(periods(unit, zone, anchor, from, to)).toEqual(beginnings(unit, zone, anchor, from, to))
      },
    )
    fc.assert(property, { numRuns: randomRuns(60) })
  })

  it('a period contains the moment it was asked for, and its neighbors begin and end with it', () => {
    const at = fc.integer({ min: 0, max: 4_000_000_000_000 })
    const property = fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom(...CALENDAR_UNITS),
      at,
      (zone, unit, atMs) => {
        const calendar = readCalendar(unit, { zone })
        const { start, end } = calendar.at(atMs * 1000)
        expect(atMs * 1000).toBeGreaterThanOrEqual(start)
        expect(atMs * 1000).toBeLessThan(end)
        expect(readCalendar(unit, { zone }).at(start)).toEqual({ start, end })
        expect(readCalendar(unit, { zone }).at(end - 1)).toEqual({ start, end })
        expect(calendar.at(end).start).toBe(end)
        expect(calendar.at(start - 1).end).toBe(start)
      },
    )
    fc.assert(property, { numRuns: randomRuns(100) })
  })
})

describe('options of calendar periods', () => {
  it.each([
    [
      'month',
      { zone: 'Europe/Berln' },
      '"Europe/Berln" is not a time zone that is known here: did you mean Europe/Berlin?',
    ],
    ['month', { zone: 'new york' }, '"new york" is not a time zone that is known here: did you mean America/New_York?'],
    [
      'month',
      { zone: 'nowhere' },
      '"nowhere" is not a time zone that is known here: write a name such as Europe/Berlin or UTC',
    ],
    [
      'month',
      { anchor: 32 },
      'of a month is the day on which it begins, from 1 to 31, not 32; months that are shorter begin with their last day',
    ],
    ['month', { anchor: 0 }, 'from 1 to 31, not 0'],
    ['month', { anchor: 'monday' }, 'from 1 to 31, not "monday"'],
    ['week', { anchor: 1 }, 'of a week is the day on which it begins, such as monday, not 1'],
    ['year', { anchor: '02-30' }, 'of a year is the month and the day on which it begins, such as 04-06, not "02-30"'],
    ['year', { anchor: '13-01' }, 'not "13-01"'],
  ] as const)('a %s with %o is refused with a remedy', (unit, options, message) => {
    expect(() => readCalendar(unit, options)).toThrow(message)
  })
})
