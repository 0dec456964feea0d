import { z } from 'zod'
import { duration, parseDuration } from '../common/duration.ts'

/** Text that no message may show, not even when it is wrong. */
export const secretOption: z.ZodString = z
  .string({ error: 'must be text: write it in quotes' })
  .max(8192, 'must be at most 8192 characters long')
  .regex(/^\P{Cc}*$/u, 'must not hold control characters')

/** Diana's credentials for a config center; each may also come from the environment. */
export const credentialOptions: {
  readonly username: z.ZodOptional<z.ZodString>
  readonly password: z.ZodOptional<z.ZodString>
  readonly token: z.ZodOptional<z.ZodString>
} = {
  username: z.string().max(1024).optional().describe('default: DIANA_REMOTE_USERNAME'),
  password: secretOption.optional().describe('default: DIANA_REMOTE_PASSWORD'),
  token: secretOption.optional().describe('default: DIANA_REMOTE_TOKEN'),
}

/** A name inside a config center, such as a key. */
export const nameOption: z.ZodString = z
  .string()
  .min(1)
  .max(1024)
  .regex(/^\P{Cc}*$/u, 'must not hold control characters')

/** A duration within bounds that has a default. */
export function durationOption(
  usual: string,
  bounds: { readonly least: string; readonly most: string },
): z.ZodPrefault<z.ZodType<number, string>> {
  const least = parseDuration(bounds.least)!
  const most = parseDuration(bounds.most)!
  return duration
    .refine(ms => ms >= least && ms <= most, {
      error: `must be from ${bounds.least} to ${bounds.most}`,
    })
    .prefault(usual)
}
