import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { type Operation, operation } from './operation.ts'
import { count, moment, ruleChange, where } from './shapes.ts'

const replaced = z
  .object({
    id: z.string(),
    at: moment.describe('when it was replaced, in milliseconds since 1970'),
    from: z.string().describe('the address that the change came from'),
    who: z.string().describe('the name of the user, or which token was given'),
    comment: z.string().optional().describe('why it was replaced'),
    rules: z.array(ruleChange).describe('what the change that replaced it did to the rules, at most 20 of them'),
    changed: count.describe('how many rules it added, changed and removed'),
  })
  .meta({ title: 'Version' })

export const versionOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/versions',
    role: 'operator',
    summary: 'The versions of a document that were replaced through this API, the newest first.',
    query: z.object({ where: where.default('local') }),
    answer: z.object({ versions: z.array(replaced) }),
    run: ({ query }, { versions }) => ({
      versions: versions.of(query.where).map(({ id, at, by }) => ({ id, at, ...by })),
    }),
  }),
  operation({
    method: 'GET',
    path: '/versions/{id}',
    role: 'operator',
    summary: 'The text of a version that was replaced.',
    answer: z.object({ at: moment, text: z.string() }),
    refusals: { 404: 'it is not known, or no longer' },
    run: ({ id }, { versions }) => {
      const found = versions.find(id)
      if (!found) throw new Refusal(404, 'This version is not known here, or no longer.')
      return { at: found.at, text: found.text }
    },
  }),
]
