import * as z from '../shapes/index.ts'
import { DURATION_PATTERN, durationFault, parseDuration } from './duration.ts'

/** A duration in a rule, read as milliseconds. */
export const duration: z.Schema<number, string> = z
  .string({ error: issue => durationFault(issue.input) })
  .regex(DURATION_PATTERN, { abort: true, error: issue => durationFault(issue.input) })
  .transform((text, context) => {
    const ms = parseDuration(text)
    if (ms === undefined) context.addIssue({ code: 'custom', message: durationFault(text) })
    return ms ?? z.NEVER
  })
