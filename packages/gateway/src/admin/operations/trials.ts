import { adminOf } from 'diana-limiter/admin'
import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { type Operation, operation } from './operation.ts'
import { moment, ruleId, ruleText } from './shapes.ts'

const trial = z.object({ id: z.string(), rule: z.string(), text: z.string(), since: moment })

export const trialOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/trials',
    summary: 'The rules on trial.',
    answer: z.object({ trials: z.array(trial) }),
    run: (_, { limiter }) => ({ trials: adminOf(limiter).trials }),
  }),
  operation({
    method: 'POST',
    path: '/trials',
    summary:
      'Runs a changed rule in shadow beside the real one, in memory and counted in this process only, until it is deleted; its figures stand under its id.',
    body: z.strictObject({ rule: ruleId.regex(/^[\w.-]{1,64}$/), text: ruleText }),
    answer: trial,
    refusals: { 422: 'it cannot be used; `mistakes` say where and why' },
    run: ({ body }, { limiter, live }) => {
      const { mistakes } = adminOf(limiter).documents.checkRule(body.text)
      if (mistakes.length > 0) throw new Refusal(422, mistakes[0]!.message, { mistakes })
      const started = adminOf(limiter).startTrial(body.rule, body.text)
      live.tellRules()
      return started
    },
  }),
  operation({
    method: 'DELETE',
    path: '/trials/{id}',
    summary: 'Ends a trial.',
    answer: z.object({ ended: z.literal(true) }),
    refusals: { 404: 'there is no such trial' },
    run: ({ id }, { limiter, live }) => {
      if (!adminOf(limiter).endTrial(id)) throw new Refusal(404, 'There is no such trial.')
      live.tellRules()
      return { ended: true }
    },
  }),
]
