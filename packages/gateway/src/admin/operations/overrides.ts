import { type Call, DianaError } from 'diana-limiter'
import { adminOf, type Override } from 'diana-limiter/admin'
import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { idOf, showKey } from './callers.ts'
import { fromParts, toCall } from './explain.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { call, moment, ruleId } from './shapes.ts'

/** A caller of a rule: by their value of the rule's one dimension, or by a call of theirs. */
const who = { rule: ruleId, key: z.string().min(1).max(8192).optional(), call: call.optional() }

const overrideShape = z.object({
  id: z.string(),
  rule: z.string(),
  key: z.string(),
  limit: z.string(),
  until: moment.optional().describe('left out if it has no end'),
  setAt: moment,
  setBy: z.string().optional(),
  reason: z.string().optional(),
})

export const overrideOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/overrides',
    summary: 'The limits that operators have given single callers, up to 1,000.',
    answer: z.object({ overrides: z.array(overrideShape) }),
    run: async (_, context) => {
      return { overrides: (await adminOf(context.limiter).overrides()).map(one => show(one, context)) }
    },
  }),
  operation({
    method: 'POST',
    path: '/overrides',
    summary: 'Gives one caller of a rule with `overrides: true` another limit, in all processes within a second.',
    body: z.strictObject({
      ...who,
      limit: z.string().min(1).max(32).describe('such as 5000/h; 0/h refuses all calls'),
      until: moment.optional().describe('when it ends; left out, it has no end'),
      setBy: z.string().max(128).optional().describe('who has set it, for the record'),
      reason: z.string().max(512).optional(),
    }),
    answer: overrideShape,
    refusals: { 404: 'there is no such rule' },
    run: async ({ body }, context) => {
      const { rule, limit, until, setBy, reason } = body
      const caller = whoOf(body, context)
      return show(
        await refusing(adminOf(context.limiter).setOverride(rule, caller, { limit, until, setBy, reason })),
        context,
      )
    },
  }),
  operation({
    method: 'DELETE',
    path: '/overrides/{id}',
    summary: 'Ends the override of a caller: they have the limit of their plan or the default again.',
    answer: z.object({ ended: z.literal(true) }),
    refusals: { 404: 'there is no such override' },
    run: async ({ id }, { limiter }) => {
      const override = (await adminOf(limiter).overrides()).find(one => idOf(one) === id)
      if (!override) throw new Refusal(404, 'There is no such override.')
      await refusing(adminOf(limiter).removeOverride(override.rule, override))
      return { ended: true }
    },
  }),
]

function whoOf(
  { rule, key, call: asked }: z.output<z.ZodObject<typeof who>>,
  { limiter }: AdminContext,
): Call | string {
  if (!limiter.rules.some(({ id }) => id === rule)) throw new Refusal(404, 'There is no such rule.')
  if (key !== undefined) return key
  if (asked === undefined) throw new Refusal(400, 'Name the caller: by key or call.')
  return toCall(fromParts(asked), asked.ip, limiter)
}

/** What the limiter does not accept is the fault of the question. */
async function refusing<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof DianaError && error.code === 'BAD_CALL') throw new Refusal(400, `${error.message}.`)
    throw error
  }
}

function show(override: Override, { limiter }: AdminContext): object {
  const { rule: id, key, ...rest } = override
  const by = limiter.rules.find(one => one.id === id)?.by ?? []
  return { id: idOf(override), rule: id, key: showKey(key, by, true), ...rest }
}
