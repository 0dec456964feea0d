import { parseDuration } from '../common/duration.ts'
import type { SchemaKit } from '../common/option-shape.ts'
import type * as z from '../shapes/index.ts'

/** Returns the schema of text that no message may show, not even when it is wrong. */
export function secretOption({ z }: SchemaKit): z.StringSchema {
  return z
    .string({ error: 'must be text: write it in quotes' })
    .max(8192, 'must be at most 8192 characters long')
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
}

/** Returns the options of Diana's credentials for a config center; each may also come from the environment. */
export function credentialOptions(kit: SchemaKit): {
  readonly username: z.OptionalSchema<z.StringSchema>
  readonly password: z.OptionalSchema<z.StringSchema>
  readonly token: z.OptionalSchema<z.StringSchema>
} {
  return {
    username: kit.z.string().max(1024).optional().describe('default: DIANA_REMOTE_USERNAME'),
    password: secretOption(kit).optional().describe('default: DIANA_REMOTE_PASSWORD'),
    token: secretOption(kit).optional().describe('default: DIANA_REMOTE_TOKEN'),
  }
}

/** Returns the schema of a name inside a config center, such as a key. */
export function nameOption({ z }: SchemaKit): z.StringSchema {
  return z
    .string()
    .min(1)
    .max(1024)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
}

/** Returns the schema of a duration within bounds that has a default. */
export function durationOption(
  { duration }: SchemaKit,
  usual: string,
  bounds: { readonly least: string; readonly most: string },
): z.PrefaultSchema<z.Schema<number, string>> {
  const least = parseDuration(bounds.least)!
  const most = parseDuration(bounds.most)!
  return duration
    .refine(ms => ms >= least && ms <= most, {
      error: `must be from ${bounds.least} to ${bounds.most}`,
    })
    .prefault(usual)
}
