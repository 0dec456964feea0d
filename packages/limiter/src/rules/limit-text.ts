import type { Limit } from '../algorithms/algorithm.ts'
import { CALENDAR_UNITS, isCalendarUnit, USUAL_MS } from '../common/calendar-unit.ts'
import { formatDuration, guessDuration, parseDuration } from '../common/duration.ts'
import { show } from './show.ts'

/** The largest count of a limit. */
export const MOST = 1e12
/** The text of a rate: a count and a period. */
export const RATE_PATTERN: RegExp = /^(\d{1,13})\/(\d{0,12}(?:ms|s|m|h|d)|day|week|month|year)$/

/** Reads `100/s`, `20/100ms`, `1000/month`; undefined if it cannot be read or counted. */
export function parseRate(text: string): Limit | undefined {
  const [, digits, period = ''] = RATE_PATTERN.exec(text) ?? []
  if (isCalendarUnit(period)) {
    return Number(digits) > MOST ? undefined : { count: Number(digits), periodMs: USUAL_MS[period], unit: period }
  }
  const periodMs = parseDuration(/^\d/.test(period) ? period : `1${period}`)
  return periodMs === undefined || Number(digits) > MOST ? undefined : { count: Number(digits), periodMs }
}

/** True if a limit as a rule has it, one of its levels, or one that depends on the caller, is per calendar period. */
export function namesCalendar(limit: unknown): boolean {
  if (typeof limit === 'object' && limit !== null && !Array.isArray(limit)) {
    const { values, default: standard } = limit as { readonly values?: unknown; readonly default?: unknown }
    const stated = typeof values === 'object' && values !== null ? Object.values(values) : []
    return [standard, ...stated].some(one => namesCalendar(limitIn(one)))
  }
  return [limit].flat().some(one => typeof one === 'string' && CALENDAR_UNITS.some(unit => one.endsWith(`/${unit}`)))
}

/** Finds the limit in what a rule states: one that depends on the caller may have options of its own beside it. */
function limitIn(stated: unknown): unknown {
  return typeof stated === 'object' && stated !== null ? (stated as { readonly limit?: unknown }).limit : stated
}

/** Says what is wrong with a bare count, for an algorithm that takes one. */
export function explainCount(input: unknown, name: string): string {
  if (input === undefined || input === null) return 'is missing: write how many, such as limit: 50'
  const text = typeof input === 'string' ? input : ''
  const count = /^\d{1,13}/.exec(text)?.[0]
  if (count === text && count) return `${show(input)} must be a number: write ${count} without quotes`
  if (count && parseRate(text)) return `${show(input)} is a rate, and ${name} takes a bare count: write ${count}`
  return `must be a whole number from 0 to ${MOST}, not ${show(input)}`
}

/** Says what is wrong with a value that is not a rate. */
export function explainRate(input: unknown): string {
  if (input === undefined || input === null) return 'is missing: write a count and a period, such as limit: 100/s'
  if (typeof input === 'number' && Number.isInteger(input) && input >= 0) {
    return `${show(input)} has no period: write ${input}/s, ${input}/m or another <count>/<period>`
  }
  const perM = typeof input === 'string' ? /^(\d{1,13})\/(\d*)M$/.exec(input) : null
  if (perM) {
    const [, count, times] = perM
    const months = Number(times || 1) === 1 ? `${count}/month` : `${count}/${30 * Number(times)}d`
    return `${show(input)} is not a limit: did you mean ${count}/${times}m, for minutes, or ${months}, for months?`
  }
  const guess = typeof input === 'string' ? guessRate(input) : undefined
  if (guess !== undefined) return `${show(input)} is not a limit: did you mean ${guess}?`
  const remedy = `a whole count up to ${MOST} and a period from 1ms to 366d, such as 100/s or 20/100ms`
  return `must be <count>/<period>, not ${show(input)}: write ${remedy}`
}

const COUNT = '([\\d_,]{1,16}(?:\\.\\d{1,3})?(?:e\\d{1,2})?) {0,3}([kmb]|thousand|million)?'
const CALLS = `(?: {0,3}(?:r|reqs?|requests?|calls?|hits?|times))?`
const NEAR_RATE = /* @__PURE__ */ new RegExp(
  `^ {0,3}${COUNT}${CALLS} {0,3}(?:\\/|(?:per|in|every|each|an?)\\b) {0,3}(.{1,20})$`,
  'i',
)
const RATE_UNIT = /* @__PURE__ */ new RegExp(`^ {0,3}${COUNT} {0,3}rp([smhd])$`, 'i')
const multiples: Readonly<Record<string, number>> = { k: 1e3, thousand: 1e3, m: 1e6, million: 1e6, b: 1e9 }

/** Guesses what a person meant by something close to a rate: `100 / s`, `5/sec`, `1_000 per minute`, `1.5/s`, `1k/s`, `100 rpm`. */
function guessRate(text: string): string | undefined {
  const near = NEAR_RATE.exec(text) ?? RATE_UNIT.exec(text)
  if (near === null) return undefined
  const [, digits = '', multiple = '', per = ''] = near
  const count = Number((Number(digits.replace(/[_,]/g, '')) * (multiples[multiple.toLowerCase()] ?? 1)).toPrecision(15))
  const unit = /^(?:1 )?(week|month|year)s?$/i.exec(per.trim())?.[1]?.toLowerCase()
  const perUnit = unit && `${count}/${unit}`
  if (perUnit && parseRate(perUnit)) return perUnit
  const period = guessDuration(per)
  if (!period) return undefined
  // 1.5/s is 15/10s
  const scale = [1, 10, 100, 1000].find(factor => Number.isInteger(Number((count * factor).toPrecision(15))))
  const periodMs = parseDuration(period)! * (scale ?? Number.NaN)
  const guess = `${Math.round(count * (scale ?? 1))}/${formatDuration(periodMs).replace(/^1(?=\D)/, '')}`
  return guess !== text && parseRate(guess) ? guess : undefined
}

/** Returns a limit as rules write it: 100/s, 1000/month, 50. */
export function formatLimit({ count, periodMs, unit }: Limit): string {
  return periodMs === 0 ? String(count) : `${count}/${unit ?? formatDuration(periodMs).replace(/^1(?=[a-z])/, '')}`
}
