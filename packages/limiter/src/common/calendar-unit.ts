/** The calendar periods that a limit can name. */
export const CALENDAR_UNITS = ['day', 'week', 'month', 'year'] as const

export type CalendarUnit = (typeof CALENDAR_UNITS)[number]

const DAY_MS = 86_400_000

/** The longest periods, apart from changes of the clock, as headers and reports state them. */
export const USUAL_MS: Readonly<Record<CalendarUnit, number>> = {
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  year: 366 * DAY_MS,
}

export function isCalendarUnit(text: string): text is CalendarUnit {
  return (CALENDAR_UNITS as readonly string[]).includes(text)
}
