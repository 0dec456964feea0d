import { type BlockedCaller, type Call, parseDuration } from 'diana-limiter'
import { adminOf, callOfKey } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { findCaller, idOf, showKey } from './callers.ts'
import { fromParts, toCall } from './explain.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { call, flag, moment, ruleId } from './shapes.ts'

/** A caller: by the id of a row of /callers, by their value of the rule's one dimension, or by a call of theirs. */
const who = {
  rule: ruleId.optional().describe('needed unless caller is given'),
  caller: z.string().max(64).optional(),
  key: z.string().min(1).max(8192).optional(),
  call: call.optional(),
}

const blockShape = z
  .object({
    id: z.string(),
    rule: z.string(),
    key: z.string(),
    since: moment.optional().describe('left out if another process has blocked the caller by hand'),
    until: moment,
  })
  .meta({ title: 'Block' })

export const blockOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/blocks',
    summary:
      'The callers who are blocked now, by a rule or by hand; of a rule counted in Redis, those of the whole fleet.',
    query: z.object({ unmask: flag.default(false) }),
    answer: z.object({ blocks: z.array(blockShape) }),
    run: async ({ query }, context) => {
      const blocked = await context.limiter.blocks()
      return { blocks: blocked.map(one => show(one, context, query.unmask)) }
    },
  }),
  operation({
    method: 'POST',
    path: '/blocks',
    summary: 'Refuses a caller by one rule for a time; the rule must allow it by `block:`.',
    body: z.strictObject({ ...who, for: z.string().max(32).describe('a duration such as 10m') }),
    answer: blockShape,
    refusals: { 404: 'there is no such caller' },
    run: async ({ body }, context) => {
      const { rule, who } = await find(body, context)
      const ms = parseDuration(body.for)
      if (ms === undefined) throw new Refusal(400, 'for: say how long, such as 10m.')
      await context.limiter.block(rule, who, ms)
      const blocked = { rule, key: adminOf(context.limiter).keyOf(rule, who), leftMs: ms }
      const { by = [], count } = context.limiter.rules.find(({ id }) => id === rule) ?? {}
      const since = Date.now()
      const until = since + ms
      context.blocks.add({ rule, by, key: blocked.key, id: idOf(blocked), since, until, isKept: count === 'local' })
      return { ...show(blocked, context), since, until }
    },
  }),
  operation({
    method: 'DELETE',
    path: '/blocks/{id}',
    summary: 'Lets a blocked caller in again, and forgets what the rule has counted for them.',
    answer: z.object({ ended: z.literal(true) }),
    refusals: { 404: 'there is no such block' },
    run: async ({ id }, { limiter, blocks }) => {
      const blocked = (await limiter.blocks()).find(one => idOf(one) === id)
      if (!blocked) throw new Refusal(404, 'There is no such block.')
      await limiter.unblock(blocked.rule, blocked)
      blocks.remove(id)
      return { ended: true }
    },
  }),
  operation({
    method: 'POST',
    path: '/reset',
    summary: 'Forgets what one rule has counted for a caller.',
    body: z.strictObject(who),
    answer: z.object({ reset: z.literal(true) }),
    refusals: { 404: 'there is no such caller' },
    run: async ({ body }, context) => {
      const { rule, who } = await find(body, context)
      const by = context.limiter.rules.find(({ id }) => id === rule)?.by ?? []
      await context.limiter.reset(rule, typeof who === 'string' ? callOfValue(who, by) : who)
      return { reset: true }
    },
  }),
]

type Asked = z.output<z.ObjectSchema<typeof who>>

async function find(
  asked: Asked,
  { limiter, processes }: AdminContext,
): Promise<{ readonly rule: string; readonly who: Call | string }> {
  if (asked.caller !== undefined) {
    const caller = await findCaller(processes, asked.caller)
    if (!caller) throw new Refusal(404, 'There is no such caller: ask for the callers again.')
    const told = callOfKey(caller.key, caller.by)
    if (!told) throw new Refusal(400, 'This caller is only known by a digest: name them by one of their calls.')
    return { rule: caller.rule, who: told }
  }
  const { rule, key } = asked
  if (rule === undefined) throw new Refusal(400, 'rule: say by which rule.')
  if (!limiter.rules.some(({ id }) => id === rule)) throw new Refusal(404, 'There is no such rule.')
  if (key !== undefined) return { rule, who: key }
  if (asked.call === undefined) throw new Refusal(400, 'Say whom: by caller, key or call.')
  return { rule, who: toCall(fromParts(asked.call), asked.call.ip, limiter) }
}

function callOfValue(value: string, by: readonly string[]): Call {
  const [name, ...more] = by
  if (name === undefined || more.length > 0) {
    throw new Refusal(400, 'The rule does not count by one dimension: say whom by a call.')
  }
  const call = { method: '', path: '/' }
  return name === 'ip' ? { ...call, ip: value } : { ...call, attributes: { [name]: value } }
}

function show(blocked: BlockedCaller, { limiter, blocks }: AdminContext, unmask = false): object {
  const { rule: id, key, leftMs } = blocked
  const rule = limiter.rules.find(one => one.id === id)
  const now = Date.now()
  const until = blocks.untilOf(idOf(blocked), now, leftMs)
  const byHand = blocks.find(idOf(blocked))
  // a rule blocks for a time of its own
  const byRule = typeof rule?.block === 'number' ? Math.min(now, until - rule.block) : undefined
  const since = byHand && byHand.until > now ? byHand.since : byRule
  const shown = { id: idOf(blocked), rule: id, key: showKey(key, rule?.by ?? [], unmask), until }
  return since === undefined ? shown : { ...shown, since }
}
