import { type Call, callOfKey, parseDuration } from 'diana-limiter'
import { z } from 'zod'
import type { Block } from '../blocks.ts'
import { Refusal } from '../refusal.ts'
import { findCaller, showKey } from './callers.ts'
import { fromParts, toCall } from './explain.ts'
import { type Desk, type Operation, operation } from './operation.ts'
import { call, moment, ruleId } from './shapes.ts'

/** Whom: by the id of a row of /callers, by his value of the rule's one dimension, or by a call of his. */
const who = {
  rule: ruleId.optional().describe('needed unless caller is given'),
  caller: z.string().max(64).optional(),
  key: z.string().min(1).max(8192).optional(),
  call: call.optional(),
}

const blockShape = z.object({ id: z.string(), rule: z.string(), key: z.string(), since: moment, until: moment })

export const blockOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/blocks',
    summary: 'Who was blocked through this API and still is.',
    answer: z.object({ blocks: z.array(blockShape) }),
    run: (_, { blocks }) => ({ blocks: blocks.list(Date.now()).map(show) }),
  }),
  operation({
    method: 'POST',
    path: '/blocks',
    summary: 'Refuses a caller by one rule for a time; the rule must allow it by `block:`.',
    body: z.strictObject({ ...who, for: z.string().max(32).describe('a duration such as 10m') }),
    answer: blockShape,
    refusals: { 404: 'there is no such caller' },
    run: async ({ body }, desk) => {
      const found = await find(body, desk)
      const ms = parseDuration(body.for)
      if (ms === undefined) throw new Refusal(400, 'for: say how long, such as 10m.')
      await desk.limiter.block(found.rule, found.who, ms)
      const since = Date.now()
      return show(desk.blocks.add({ ...found, since, until: since + ms }))
    },
  }),
  operation({
    method: 'DELETE',
    path: '/blocks/{id}',
    summary: 'Lets a blocked caller in again.',
    answer: z.object({ ended: z.literal(true) }),
    refusals: { 404: 'there is no such block' },
    run: async ({ id }, { limiter, blocks }) => {
      const block = blocks.find(id)
      if (!block) throw new Refusal(404, 'There is no such block.')
      await limiter.unblock(block.rule, block.who)
      blocks.remove(id)
      return { ended: true }
    },
  }),
  operation({
    method: 'POST',
    path: '/pardon',
    summary: 'Forgets what one rule has counted for a caller.',
    body: z.strictObject(who),
    answer: z.object({ pardoned: z.literal(true) }),
    refusals: { 404: 'there is no such caller' },
    run: async ({ body }, desk) => {
      const { rule, who } = await find(body, desk)
      const by = desk.limiter.rules.find(({ id }) => id === rule)?.by ?? []
      await desk.limiter.reset(rule, typeof who === 'string' ? callOfValue(who, by) : who)
      return { pardoned: true }
    },
  }),
]

type Asked = z.output<z.ZodObject<typeof who>>

async function find(
  asked: Asked,
  { limiter, processes }: Desk,
): Promise<Pick<Block, 'rule' | 'who' | 'key' | 'caller'>> {
  if (asked.caller !== undefined) {
    const caller = await findCaller(processes, asked.caller)
    if (!caller) throw new Refusal(404, 'There is no such caller: ask for the callers again.')
    const told = callOfKey(caller.key, caller.by)
    if (!told) throw new Refusal(400, 'This caller is only known by a digest: say whom by a call of his.')
    return { rule: caller.rule, who: told, key: showKey(caller.key, caller.by, false), caller: asked.caller }
  }
  const { rule, key } = asked
  if (rule === undefined) throw new Refusal(400, 'rule: say by which rule.')
  const known = limiter.rules.find(({ id }) => id === rule)
  if (!known) throw new Refusal(404, 'There is no such rule.')
  if (key !== undefined) return { rule, who: key, key: showKey(key, known.by, false) }
  if (asked.call === undefined) throw new Refusal(400, 'Say whom: by caller, key or call.')
  return { rule, who: toCall(fromParts(asked.call), asked.call.ip, limiter), key: 'the caller of a call' }
}

function callOfValue(value: string, by: readonly string[]): Call {
  const [name, ...more] = by
  if (name === undefined || more.length > 0) {
    throw new Refusal(400, 'The rule does not count by one dimension: say whom by a call.')
  }
  const call = { method: '', path: '/' }
  return name === 'ip' ? { ...call, ip: value } : { ...call, attributes: { [name]: value } }
}

function show({ id, rule, key, since, until }: Block): object {
  return { id, rule, key, since, until }
}
