import * as z from 'zod'
import type { Algorithm, Limit } from '../../algorithms/algorithm.ts'
import { CALENDAR_UNITS, isCalendarUnit, USUAL_MS } from '../../common/calendar-unit.ts'
import { formatDuration, guessDuration, parseDuration } from '../../common/duration.ts'
import { show } from '../show.ts'

const MOST = 1e12
const RATE_PATTERN = /^(\d{1,13})\/(\d{0,12}(?:ms|s|m|h|d)|day|week|month|year)$/

/** The limit as an algorithm's rules write it: `100/s`, or a bare count for concurrency. */
export function limitOf(algorithm: Algorithm): z.ZodType<Limit, string | number> {
  if (algorithm.limit === 'count') return countOf(algorithm.name)
  return algorithm.hasCalendar ? rate : fixedRateOf(algorithm.name)
}

/** Reads `100/s`, `20/100ms`, `1000/month`; undefined if it cannot be read or counted. */
export function parseRate(text: string): Limit | undefined {
  const [, digits, period = ''] = RATE_PATTERN.exec(text) ?? []
  if (isCalendarUnit(period)) {
    return Number(digits) > MOST ? undefined : { count: Number(digits), periodMs: USUAL_MS[period], unit: period }
  }
  const periodMs = parseDuration(/^\d/.test(period) ? period : `1${period}`)
  return periodMs === undefined || Number(digits) > MOST ? undefined : { count: Number(digits), periodMs }
}

const rate: z.ZodType<Limit, string> = z
  .string({ error: issue => explainRate(issue.input) })
  .regex(RATE_PATTERN, { abort: true, error: issue => explainRate(issue.input) })
  .transform((text, context) => {
    const limit = parseRate(text)
    if (limit === undefined) context.addIssue({ code: 'custom', message: explainRate(text) })
    return limit ?? z.NEVER
  })

/** For algorithms that count no calendar periods. */
function fixedRateOf(name: string): z.ZodType<Limit, string> {
  return rate.superRefine(({ count, periodMs, unit }, context) => {
    if (unit === undefined) return
    const message = `per ${unit} is a calendar period, which ${name} does not count: set algorithm: fixed-window`
    context.addIssue({ code: 'custom', message: `${message}, or write ${count}/${formatDuration(periodMs)}` })
  })
}

/** Whether a limit as a rule has it, one of its levels, or one that depends on the caller, is per calendar period. */
export function namesCalendar(limit: unknown): boolean {
  if (typeof limit === 'object' && limit !== null && !Array.isArray(limit)) {
    const { values, default: standard } = limit as { readonly values?: unknown; readonly default?: unknown }
    const stated = typeof values === 'object' && values !== null ? Object.values(values) : []
    return [standard, ...stated].some(one => namesCalendar(limitIn(one)))
  }
  return [limit].flat().some(one => typeof one === 'string' && CALENDAR_UNITS.some(unit => one.endsWith(`/${unit}`)))
}

/** A limit that depends on the caller may have options of its own beside it. */
function limitIn(stated: unknown): unknown {
  return typeof stated === 'object' && stated !== null ? (stated as { readonly limit?: unknown }).limit : stated
}

/** A limit as rules write it: 100/s, 1000/month, 50. */
export function formatLimit({ count, periodMs, unit }: Limit): string {
  return periodMs === 0 ? String(count) : `${count}/${unit ?? formatDuration(periodMs).replace(/^1(?=[a-z])/, '')}`
}

function countOf(name: string): z.ZodType<Limit, number> {
  const error = (issue: { readonly input: unknown }) => explainCount(issue.input, name)
  return z
    .int({ error })
    .min(0, { error })
    .max(MOST, { error })
    .transform(count => ({ count, periodMs: 0 }))
}

function explainCount(input: unknown, name: string): string {
  if (input === undefined || input === null) return 'is missing: write how many, such as limit: 50'
  const text = typeof input === 'string' ? input : ''
  const count = /^\d{1,13}/.exec(text)?.[0]
  if (count === text && count) return `${show(input)} must be a number: write ${count} without quotes`
  if (count && parseRate(text)) return `${show(input)} is a rate, and ${name} takes a bare count: write ${count}`
  return `must be a whole number from 0 to ${MOST}, not ${show(input)}`
}

function explainRate(input: unknown): string {
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

/** What a person meant by something close to a rate: `100 / s`, `5/sec`, `1_000 per minute`, `1.5/s`. */
function guessRate(text: string): string | undefined {
  const near = /^ {0,3}([\d_,]{1,16}(?:\.\d{1,3})?(?:e\d{1,2})?) {0,3}(?:\/|per\b) {0,3}(.{1,20})$/i.exec(text)
  const unit = near && /^(?:1 )?(week|month|year)s?$/i.exec(near[2]!.trim())?.[1]?.toLowerCase()
  const perUnit = unit && `${Number(near[1]!.replace(/[_,]/g, ''))}/${unit}`
  if (perUnit && parseRate(perUnit)) return perUnit
  const period = near && guessDuration(near[2]!)
  if (!period) return undefined
  const count = Number(near[1]!.replace(/[_,]/g, ''))
  // 1.5/s is 15/10s
  const scale = [1, 10, 100, 1000].find(factor => Number.isInteger(Number((count * factor).toPrecision(15))))
  const periodMs = parseDuration(period)! * (scale ?? Number.NaN)
  const guess = `${Math.round(count * (scale ?? 1))}/${formatDuration(periodMs).replace(/^1(?=\D)/, '')}`
  return guess !== text && parseRate(guess) ? guess : undefined
}
