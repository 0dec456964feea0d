import { z } from 'diana-limiter/schema'
import { type Operation, operation } from './operation.ts'
import { moment } from './shapes.ts'

const change = {
  at: moment,
  operation: z.string(),
  subject: z.string(),
  from: z.string().describe('The address of the client.'),
  who: z.string().describe('The name of the user, or which token was given.'),
  via: z.enum(['open', 'token', 'proxy', 'oidc', 'none']).describe('How they were recognized.'),
  role: z.enum(['operator', 'viewer', 'none']),
  comment: z.string().optional().describe('Why it was made.'),
}
const made = z.object(change).meta({ title: 'Change' })
const refused = z
  .object({ ...change, refused: z.string().describe('Why nothing was changed.') })
  .meta({ title: 'RefusedChange' })

export const sessionOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/session',
    summary: 'Who makes this request, and what they may do: everything, or read without the documents.',
    answer: z
      .object({
        role: z.enum(['operator', 'viewer']),
        user: z.string().optional().describe('Left out if no user is named: a token has no name.'),
        via: z
          .enum(['open', 'token', 'proxy', 'oidc'])
          .describe('By a token, a user that a proxy or a signed token names; open if nothing is asked for.'),
        logoutUrl: z.string().optional().describe('Where a user signs out.'),
      })
      .meta({ title: 'Session' }),
    run: ({ identity: { role, user, via } }, { logoutUrl }) => ({
      ...{ role, via },
      ...(user !== undefined && { user }),
      ...(user !== undefined && logoutUrl !== undefined && { logoutUrl }),
    }),
  }),
  operation({
    method: 'GET',
    path: '/audit',
    summary:
      'The last changes that were made through this API, and the last requests that were refused; the newest first.',
    query: z.object({ top: z.numberInText().int().min(1).max(1000).default(100) }),
    answer: z.object({ changes: z.array(made), refused: z.array(refused) }).meta({ title: 'Changes' }),
    run: ({ query }, { audit }) => ({ changes: audit.read(query.top), refused: audit.readRefused(query.top) }),
  }),
]
