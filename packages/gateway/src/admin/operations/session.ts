import { z } from 'zod'
import { type Operation, operation } from './operation.ts'
import { moment } from './shapes.ts'

export const sessionOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/session',
    summary: 'What the token of this request may do: everything, or read without the documents.',
    answer: z.object({ role: z.enum(['operator', 'viewer']) }),
    run: ({ role }) => ({ role }),
  }),
  operation({
    method: 'GET',
    path: '/audit',
    summary: 'The last changes that were made through this API since the gateway started, the newest first.',
    query: z.object({ top: z.coerce.number().int().min(1).max(1000).default(100) }),
    answer: z.object({
      changes: z.array(
        z.object({
          at: moment,
          operation: z.string(),
          subject: z.string(),
          from: z.string(),
          comment: z.string().optional(),
        }),
      ),
    }),
    run: ({ query }, { audit }) => ({ changes: audit.read(query.top) }),
  }),
]
