import { z } from 'diana-limiter/schema'
import { idOf, showKey } from './callers.ts'
import { type Operation, operation } from './operation.ts'
import { count, flag, milliseconds, moment, ruleId } from './shapes.ts'

const refusal = z
  .object({
    at: moment,
    rule: z.string().describe('empty if no rule refused, but the gateway itself or a list of callers'),
    caller: z.string().describe('the id of the caller, as in /callers'),
    key: z.string(),
    masked: z.boolean(),
    reason: z.string(),
    method: z.string(),
    path: z.string(),
    limit: z.number().optional(),
    periodMs: z.number().optional(),
    remaining: z.number().optional().describe('at that moment'),
    retryAfterMs: milliseconds.describe('the same call would have passed so much later; null if no moment is known'),
    unsaid: count.describe('refusals of this rule since the one before it in this list'),
  })
  .meta({ title: 'RefusedCall' })

export const refusalOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/refusals',
    summary:
      'The last refused calls, the newest first: a sample of at most five a second for each rule, with the numbers of that moment. Masked unless asked.',
    query: z.object({
      rule: ruleId.optional(),
      search: z
        .string()
        .max(256)
        .optional()
        .describe('a part of the path, or of a value by which the caller is counted'),
      top: z.numberInText().int().min(1).max(1000).default(100),
      unmask: flag.default(false),
    }),
    answer: z.object({ refusals: z.array(refusal) }),
    run: async ({ query }, { processes }) => {
      const { rule, search, top, unmask } = query
      const found = await processes.refusals({ count: top, rule, search: search === '' ? undefined : search })
      return {
        refusals: found.map(({ by, key, ip: _, ...refused }) => ({
          ...refused,
          caller: idOf({ rule: refused.rule, key }),
          key: showKey(key, by, unmask),
          masked: !unmask && by.length > 0,
        })),
      }
    },
  }),
]
