import { z } from 'diana-limiter/schema'

/** Milliseconds since 1970. */
export const moment: z.NumberSchema = z.number().min(0).describe('milliseconds since 1970')
export const count: z.NumberSchema = z.int().min(0)

/** JSON has no infinity: null is a moment that cannot be named. */
export const milliseconds: z.NullableSchema<z.NumberSchema> = z.number().min(0).nullable()

export const ruleId: z.StringSchema = z.string().min(1).max(80)
export const where: z.EnumSchema<'local' | 'remote'> = z.enum(['local', 'remote']).meta({ title: 'Where' })
export const text: z.StringSchema = z.string().max(1024 * 1024)
/** One rule: no longer than can be read between two calls. */
export const ruleText: z.StringSchema = z.string().max(16_384)
/** The reason for a change: for the audit log and beside the version that it replaces. */
export const comment: z.OptionalSchema<z.StringSchema> = z
  .string()
  .max(2000)
  .optional()
  .describe('why: kept with the change, on one line of at most 300 characters')
export const version: z.StringSchema = z.string().max(256)

/** A flag in a query. */
export const flag: z.Schema<boolean, string> = z
  .enum(['true', 'false', '1', '0'])
  .transform(word => word === 'true' || word === '1')

/** A call in parts; the path may carry a query. */
export const call: z.ObjectSchema<{
  method: z.StringSchema
  path: z.StringSchema
  headers: z.DefaultSchema<z.RecordSchema<z.StringSchema, z.StringSchema>>
  ip: z.OptionalSchema<z.StringSchema>
}> = z.strictObject({
  method: z.string().min(1).max(256),
  path: z.string().min(1).max(16_384),
  headers: z.record(z.string().max(256), z.string().max(16_384)).default({}),
  ip: z.string().max(64).optional(),
})

export const mistake: z.ObjectSchema = z
  .object({ line: count, column: count, rule: z.string().optional(), message: z.string() })
  .meta({ title: 'Mistake' })

/** The change of one rule. */
export const ruleChange: z.Schema = z
  .object({ id: z.string(), change: z.enum(['added', 'changed', 'removed']) })
  .meta({ title: 'RuleChange' })

/** A rule document as it stands at its source. */
export const ruleDocument: z.Schema = z
  .object({
    text: z.string(),
    version,
    name: z.string(),
    writable: z.boolean(),
    reason: z.string().optional().describe('Why it cannot be written.'),
  })
  .meta({ title: 'RuleDocument' })

/** The outcomes of calls. */
export const counts: z.ObjectSchema<{
  allowed: z.NumberSchema
  refused: z.NumberSchema
  waited: z.NumberSchema
  shadowRefused: z.NumberSchema
}> = z.object({ allowed: count, refused: count, waited: count, shadowRefused: count }).meta({ title: 'Counts' })

/** One number per step of time. */
export const curve: z.Schema = z
  .array(z.number().nullable())
  .meta({ title: 'Curve', description: 'One number per step, oldest first; null if nothing is known of it.' })

/** The findings of an adaptive rule. */
export const estimate: z.Schema = z
  .object({
    limit: z.number(),
    inFlight: z.number(),
    perSecond: z.number().describe('Answers per second that the service can give; 0 if it is not known yet.'),
    baseMs: z.number().describe('The time of an answer while nothing waits; 0 if it is not known yet.'),
    latencyMs: z.number().describe('The time of an answer lately; 0 if it is not known yet.'),
    limiting: z.boolean().describe('Whether the service is overloaded, so that calls are held at the limit.'),
  })
  .meta({ title: 'Estimate' })

/** The unit of a limit per calendar period. */
export const unit: z.Schema = z
  .enum(['day', 'week', 'month', 'year'])
  .meta({ title: 'Unit' })
  .optional()
  .describe('Set if the period is one of the calendar.')
