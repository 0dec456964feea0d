import type { Algorithm, Limit } from '../../algorithms/algorithm.ts'
import { formatDuration } from '../../common/duration.ts'
import * as z from '../../shapes/index.ts'
import { explainCount, explainRate, MOST, parseRate, RATE_PATTERN } from '../limit-text.ts'

/** Returns the limit as an algorithm's rules write it: `100/s`, or a bare count for concurrency. */
export function limitOf(algorithm: Algorithm): z.Schema<Limit, string | number> {
  if (algorithm.limit === 'count') return countOf(algorithm.name)
  return algorithm.hasCalendar ? rate : fixedRateOf(algorithm.name)
}

const rate: z.Schema<Limit, string> = z
  .string({ error: issue => explainRate(issue.input) })
  .regex(RATE_PATTERN, { abort: true, error: issue => explainRate(issue.input) })
  .transform((text, context) => {
    const limit = parseRate(text)
    if (limit === undefined) context.addIssue({ code: 'custom', message: explainRate(text) })
    return limit ?? z.NEVER
  })

/** Makes the schema for algorithms that count no calendar periods. */
function fixedRateOf(name: string): z.Schema<Limit, string> {
  return rate.superRefine(({ count, periodMs, unit }, context) => {
    if (unit === undefined) return
    const message = `per ${unit} is a calendar period, which ${name} does not count: set algorithm: fixed-window`
    context.addIssue({ code: 'custom', message: `${message}, or write ${count}/${formatDuration(periodMs)}` })
  })
}

function countOf(name: string): z.Schema<Limit, number> {
  const error = (issue: { readonly input: unknown }) => explainCount(issue.input, name)
  return z
    .int({ error })
    .min(0, { error })
    .max(MOST, { error })
    .transform(count => ({ count, periodMs: 0 }))
}
