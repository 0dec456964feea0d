import { type Call, DianaError } from 'diana-limiter'
import { adminOf, callOfKey, commentLine, type Override } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { findCaller, idOf, showKey } from './callers.ts'
import { fromParts, toCall } from './explain.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { call, count, moment, ruleId } from './shapes.ts'

/** A caller of a rule: by the id of a row of /callers, by their value of the rule's one dimension, or by a call of theirs. */
const who = {
  rule: ruleId,
  caller: z.string().max(64).optional(),
  key: z.string().min(1).max(8192).optional(),
  call: call.optional(),
}

const overrideShape = z
  .object({
    id: z.string(),
    rule: z.string(),
    key: z.string(),
    limit: z.string(),
    until: moment.optional().describe('left out if it has no end'),
    setAt: moment,
    setBy: z.string().optional(),
    reason: z.string().optional(),
  })
  .meta({ title: 'Override' })

export const overrideOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/overrides',
    summary: 'The limits that operators have given single callers, up to 1,000.',
    answer: z.object({ overrides: z.array(overrideShape) }),
    refusals: { 503: 'Redis cannot be asked' },
    run: async (_, context) => {
      const overrides = await refusing(adminOf(context.limiter).overrides(), context)
      return { overrides: overrides.map(one => show(one, context)) }
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
      setBy: z
        .string()
        .max(128)
        .optional()
        .describe('who has set it, for the record; a user who is known by name is named instead'),
      reason: z.string().max(512).optional(),
    }),
    answer: overrideShape,
    refusals: { 404: 'there is no such rule, or caller', 503: 'Redis cannot be asked' },
    run: async ({ body, identity }, context) => {
      const { rule, limit, until } = body
      const setBy = identity.user ?? lineOf(body.setBy)
      const reason = lineOf(body.reason)
      const caller = await whoOf(body, context)
      return show(
        await refusing(adminOf(context.limiter).setOverride(rule, caller, { limit, until, setBy, reason }), context),
        context,
      )
    },
  }),
  operation({
    method: 'DELETE',
    path: '/overrides/{id}',
    summary: 'Ends the override of a caller: they have the limit of their plan or the default again.',
    answer: z.object({ ended: z.literal(true) }),
    refusals: { 404: 'there is no such override', 503: 'Redis cannot be asked' },
    run: async ({ id }, context) => {
      const { limiter } = context
      const override = (await refusing(adminOf(limiter).overrides(), context)).find(one => idOf(one) === id)
      if (!override) throw new Refusal(404, 'There is no such override.')
      await refusing(adminOf(limiter).removeOverride(override.rule, override), context)
      return { ended: true }
    },
  }),
  operation({
    method: 'POST',
    path: '/credits',
    summary:
      'Gives one caller of a rule with `credit: true` permits beside the limit: calls that the limit refuses use them up.',
    body: z.strictObject({ ...who, permits: z.number().describe('a whole number, 1 or more') }),
    answer: z.object({ rule: z.string(), key: z.string(), credit: count.describe('what the caller has now') }),
    refusals: { 404: 'there is no such rule, or caller', 503: 'Redis cannot be asked' },
    run: async ({ body }, context) => {
      const { limiter } = context
      const { rule, permits } = body
      const caller = await whoOf(body, context)
      const credit = await refusing(limiter.grant(rule, caller, permits), context)
      const by = limiter.rules.find(({ id }) => id === rule)?.by ?? []
      return { rule, key: showKey(adminOf(limiter).keyOf(rule, caller), by, true), credit }
    },
  }),
]

async function whoOf(
  { rule, caller, key, call: asked }: z.output<z.ObjectSchema<typeof who>>,
  { limiter, processes }: AdminContext,
): Promise<Call | string> {
  if (!limiter.rules.some(({ id }) => id === rule)) throw new Refusal(404, 'There is no such rule.')
  if (caller !== undefined) {
    const found = await findCaller(processes, caller)
    const known = found?.rule === rule ? callOfKey(found.key, found.by) : undefined
    if (!known) throw new Refusal(404, 'There is no such caller: name them by key or call.')
    return known
  }
  if (key !== undefined) return key
  if (asked === undefined) throw new Refusal(400, 'Name the caller: by key or call.')
  return toCall(fromParts(asked), asked.ip, limiter)
}

/** Writes text for other operators: on one line, without what cannot be seen. */
function lineOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : commentLine(text)
}

/** Reports what the limiter does not accept as the fault of the question, and that Redis is away as such. */
async function refusing<T>(asked: Promise<T>, { limiter }: AdminContext): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof DianaError && error.code === 'BAD_CALL') throw new Refusal(400, `${error.message}.`)
    const { store } = limiter.status()
    if (store?.what === undefined) throw error
    throw new Refusal(503, `This is kept in Redis, which cannot be asked (${store.what}): ask again when it is back.`)
  }
}

function show(override: Override, { limiter }: AdminContext): object {
  const { rule: id, key, ...rest } = override
  const by = limiter.rules.find(one => one.id === id)?.by ?? []
  return { id: idOf(override), rule: id, key: showKey(key, by, true), ...rest }
}
