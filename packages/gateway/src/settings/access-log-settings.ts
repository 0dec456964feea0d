import { z } from 'diana-limiter/schema'

/** The fields that are logged of each call, and where. */
export interface AccessLogSettings {
  readonly format: 'json' | 'combined'
  /** `stdout`, `stderr` or a file. */
  readonly to: string
  /** The share of calls that are logged, of those with a status below 400. */
  readonly sample: number
  /** True if the query of the target and of the referer is logged. */
  readonly query: boolean
  /** Adds what `diana replay` needs to judge calls exactly; values that distinguish callers as they are, or as digests. */
  readonly replay?: 'plain' | 'digest' | undefined
}

export const accessLogSchema: z.Schema<AccessLogSettings> = z.strictObject({
  format: z.enum(['json', 'combined']).default('json').describe('One JSON object per line, or the format of Apache.'),
  to: z
    .string()
    .min(1)
    .max(4096)
    .default('stdout')
    .describe('stdout, stderr, or a file as seen from this file; default: stdout.'),
  sample: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('The share of calls that are logged; those with a status of 400 and above always are; default: 1.'),
  replay: z
    .enum(['plain', 'digest'])
    .optional()
    .describe('Adds what diana replay needs to judge calls exactly; accounts and devices as they are, or as digests.'),
  query: z.boolean().default(true).describe('false leaves out queries, which may hold secrets; default: true.'),
})
