import type { CalendarUnit } from '../../common/calendar-unit.ts'
import { InvalidLimitError } from '../algorithm.ts'
import { Calendar } from './calendar.ts'
import { Zone } from './zone.ts'

/** The options of a rule that say where calendar periods begin. */
export interface CalendarOptions {
  /** The time zone of calendar periods, such as `Europe/Berlin`; default `UTC`. */
  readonly zone?: string | undefined
  /** Where calendar periods begin: a day of the month, a weekday, or a month and a day such as `04-06`. */
  readonly anchor?: number | string | undefined
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const MONDAY = 1

/** The calendar of a rule; throws an InvalidLimitError if there is none. */
export function readCalendar(unit: CalendarUnit, { zone = 'UTC', anchor }: CalendarOptions): Calendar {
  return new Calendar({ unit, zone: readZone(zone), weekday: MONDAY, month: 0, day: 1, ...readAnchor(unit, anchor) })
}

function readZone(name: string): Zone {
  try {
    return new Zone(name)
  } catch {
    const guess = guessZone(name)
    const remedy = guess === undefined ? 'write a name such as Europe/Berlin or UTC' : `did you mean ${guess}?`
    throw new InvalidLimitError('zone', `${JSON.stringify(name)} is not a time zone that is known here: ${remedy}`)
  }
}

/** The zone that a person meant: the city alone, other capitals or spaces, or the longest common beginning. */
function guessZone(name: string): string | undefined {
  const wanted = name.trim().toLowerCase().replaceAll(' ', '_')
  const names = Intl.supportedValuesOf('timeZone')
  const city = names.find(one => one.toLowerCase() === wanted || one.toLowerCase().endsWith(`/${wanted}`))
  if (city !== undefined) return city
  const least = wanted.indexOf('/') + 3
  let best: string | undefined
  let most = wanted.includes('/') ? least - 1 : Number.POSITIVE_INFINITY
  for (const one of names) {
    const length = commonLength(one.toLowerCase(), wanted)
    if (length > most) [best, most] = [one, length]
  }
  return best
}

function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

function readAnchor(
  unit: CalendarUnit,
  anchor: string | number | undefined,
): { weekday?: number; month?: number; day?: number } {
  if (anchor === undefined) return {}
  switch (unit) {
    case 'day':
      // of the other levels of the rule
      return {}
    case 'week': {
      const weekday = WEEKDAYS.indexOf(String(anchor).toLowerCase())
      if (weekday >= 0) return { weekday }
      throw new InvalidLimitError(
        'anchor',
        `of a week is the day on which it begins, such as monday, not ${say(anchor)}`,
      )
    }
    case 'month':
      if (typeof anchor === 'number' && Number.isInteger(anchor) && anchor >= 1 && anchor <= 31) return { day: anchor }
      throw new InvalidLimitError(
        'anchor',
        `of a month is the day on which it begins, from 1 to 31, not ${say(anchor)}; months that are shorter begin with their last day`,
      )
    case 'year': {
      const [, month, day] = /^(\d\d)-(\d\d)$/.exec(String(anchor)) ?? []
      // in a leap year
      const length = new Date(Date.UTC(2024, Number(month), 0)).getUTCDate()
      if (Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= length) {
        return { month: Number(month) - 1, day: Number(day) }
      }
      const message = `of a year is the month and the day on which it begins, such as 04-06, not ${say(anchor)}`
      throw new InvalidLimitError('anchor', message)
    }
  }
}

function say(anchor: string | number): string {
  return typeof anchor === 'string' ? JSON.stringify(anchor.slice(0, 60)) : String(anchor)
}
