import type { Limiter } from 'diana-limiter'
import { adminOf, type Where } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { conflicts, write } from './documents.ts'
import { type Operation, operation } from './operation.ts'
import { comment, moment, ruleId, ruleText, version } from './shapes.ts'

const trial = z.object({ id: z.string(), rule: z.string(), text: z.string(), since: moment }).meta({ title: 'Trial' })

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
      const { mistakes, id } = adminOf(limiter).documents.checkRule(body.text)
      if (mistakes.length > 0) throw new Refusal(422, mistakes[0]!.message, { mistakes })
      if (id !== body.rule) {
        throw new Refusal(422, `The text is of rule "${id}": write id: ${body.rule}.`, {
          mistakes: [{ line: 1, column: 1, message: `its id must be ${body.rule}` }],
        })
      }
      const started = adminOf(limiter).startTrial(body.rule, body.text)
      live.reportRules()
      return started
    },
  }),
  operation({
    method: 'POST',
    path: '/trials/{id}/accept',
    summary:
      'Puts the text of a trial in force in the place of its rule, in the document that the rule comes from, and ends the trial.',
    body: z.strictObject({
      version: version.optional().describe('the version of the document that was read; the present one unless given'),
      comment,
    }),
    answer: z.object({ version }),
    refusals: { ...conflicts, 404: 'there is no such trial' },
    run: async ({ id, body, from, identity: { who } }, context) => {
      const { limiter, live } = context
      const admin = adminOf(limiter)
      const trial = admin.trials.find(one => one.id === id)
      if (!trial) throw new Refusal(404, 'There is no such trial.')
      const where = documentOf(trial.rule, limiter)
      const version = body.version ?? (await admin.documents.read(where)).version
      const change = (whole: string) => admin.documents.edit(whole, trial.rule, trial.text)
      const written = await write(context, { where, version, from, who, comment: body.comment, change })
      admin.endTrial(id)
      live.reportRules()
      return written
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
      live.reportRules()
      return { ended: true }
    },
  }),
]

/** Returns the document that a rule comes from. */
function documentOf(id: string, limiter: Limiter): Where {
  const remote = limiter.status().sources.find(({ role }) => role === 'remote')?.name
  const origin = limiter.rules.find(rule => rule.id === id)?.origin
  return origin !== undefined && origin === remote ? 'remote' : 'local'
}
