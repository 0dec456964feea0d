import { createHmac, randomBytes } from 'node:crypto'
import { describeKey, type KeyPart, type Limiter } from 'diana-limiter'
import { type CallerUsage, maskCaller, Timeline } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import type { Processes } from '../processes.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { count, flag, milliseconds, moment, ruleId } from './shapes.ts'

const salt = randomBytes(16)
/** The number of callers whose distance to the limit is read before they are sorted by it. */
const mostSorted = 500
const mostCallers = 1000

const caller = z
  .object({
    id: z.string().describe('for blocking and resetting, also while masked; good as long as this process runs'),
    rule: z.string(),
    key: z.string(),
    masked: z.boolean(),
    calls: count.describe('of the last ten minutes, passed or not'),
    callsError: count.describe('calls may differ by this much in 19 of 20 cases; 0 if every call is read'),
    refused: count.describe('of the last ten minutes, by this rule'),
    refusedError: count.describe('refused may differ by this much in 19 of 20 cases; 0 if every refusal is read'),
    atMost: count,
    error: count.describe('what may have come before the caller was found, in addition'),
    firstAt: moment,
    lastAt: moment,
    refusedAt: moment.optional().describe('the last refusal'),
    blockedUntil: moment.optional(),
    canBlock: z.boolean().describe('whether the rule has `block`'),
    limit: z.number().optional().describe('of the level of the rule that has least left'),
    periodMs: z.number().optional(),
    remaining: z.number().optional().describe('exact at this moment; left out if the caller is known by a digest only'),
    resetAfterMs: milliseconds.optional(),
    timeline: z.object({
      stepMs: z.number(),
      calls: z.array(count),
      refused: z.array(count),
    }),
  })
  .meta({ title: 'Caller' })

export const callerOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/callers',
    summary:
      'Who calls, by rule, in bounded memory: what they did in the last ten minutes, and how far they are from the limit. Masked unless asked.',
    query: z.object({
      rule: ruleId.optional(),
      show: z.enum(['refused', 'all']).default('refused').describe('only those who were refused, or every caller'),
      search: z.string().max(256).optional().describe('a part of a value by which a caller is counted'),
      sort: z.enum(['refused', 'calls', 'used']).default('refused').describe('used: who is nearest to the limit first'),
      top: z.numberInText().int().min(1).max(mostCallers).default(20),
      unmask: flag.default(false),
    }),
    answer: z.object({ callers: z.array(caller) }),
    run: async ({ query }, context) => {
      const { rule, show, search, sort, top, unmask } = query
      const isByUse = sort === 'used'
      const found = await context.processes.callers({
        ...{ rule, refused: show === 'refused', search: search === '' ? undefined : search },
        ...{ count: isByUse ? mostSorted : top, sort: isByUse ? 'calls' : sort },
      })
      const described = await describeCallers(found, context, unmask)
      if (!isByUse) return { callers: described }
      const used = ({ limit, remaining }: Distance) =>
        limit === undefined || remaining === undefined ? -1 : limit > 0 ? 1 - remaining / limit : 1
      return { callers: described.sort((a, b) => used(b) - used(a)).slice(0, top) }
    },
  }),
]

/** Returns the caller that was reported under an id. */
export async function findCaller(processes: Processes, id: string): Promise<CallerUsage | undefined> {
  return (await processes.callers({ count: Number.MAX_SAFE_INTEGER })).find(caller => idOf(caller) === id)
}

export function idOf({ rule, key }: Pick<CallerUsage, 'rule' | 'key'>): string {
  return createHmac('sha256', salt).update(rule).update('\0').update(key, 'utf16le').digest('base64url').slice(0, 16)
}

/** Returns a caller's key in words, dimension by dimension. */
export function showKey(key: string, by: readonly string[], unmask: boolean): string {
  const parts = Object.entries(describeKey(key, by))
  if (parts.length === 0) return 'all calls together'
  return parts.map(([name, part]) => `${name}=${showPart(part, unmask)}`).join(' ')
}

async function describeCallers(found: readonly CallerUsage[], { limiter, blocks }: AdminContext, unmask: boolean) {
  const now = Date.now()
  const blocked = found.length === 0 ? [] : await limiter.blocks()
  const until = new Map(blocked.map(block => [idOf(block), blocks.untilOf(idOf(block), now, block.leftMs)]))
  const rules = new Map(limiter.rules.map(rule => [rule.id, rule]))
  const distances = await Promise.all(found.map(caller => distanceOf(caller, limiter)))
  return found.map((caller, i) => {
    const { rule, by, key, calls, callsError, refused, refusedError, missed, firstAt, lastAt, refusedAt, timeline } =
      caller
    const id = idOf(caller)
    const blockedUntil = until.get(id)
    return {
      ...{ id, rule, key: showKey(key, by, unmask), masked: !unmask && by.length > 0 },
      ...{ calls, callsError, refused, refusedError, atMost: refused + refusedError + missed, error: missed },
      ...{ firstAt, lastAt },
      ...(refusedAt > 0 && { refusedAt }),
      ...(blockedUntil !== undefined && { blockedUntil }),
      canBlock: rules.get(rule)?.block !== undefined,
      ...distances[i],
      timeline: { stepMs: Timeline.stepMs, ...timeline },
    }
  })
}

interface Distance {
  readonly limit?: number
  readonly periodMs?: number
  readonly remaining?: number
  readonly resetAfterMs?: number | null
}

/** Returns what a caller has left of the rule at this moment; nothing if it cannot be asked. */
async function distanceOf({ rule, key }: CallerUsage, limiter: Limiter): Promise<Distance> {
  try {
    const { decisions } = await limiter.peek({ key }, { rule })
    const tightest = decisions.filter(one => one.rule === rule).sort((a, b) => left(a) - left(b))[0]
    if (!tightest) return {}
    const { limit, periodMs, remaining, resetAfterMs } = tightest
    return { limit, periodMs, remaining, resetAfterMs: Number.isFinite(resetAfterMs) ? resetAfterMs : null }
  } catch {
    // known by a digest only, or the rule is gone
    return {}
  }
}

const left = ({ limit, remaining }: { readonly limit: number; readonly remaining: number }) =>
  limit > 0 ? remaining / limit : 0

function showPart({ countedBy, value }: KeyPart, unmask: boolean): string {
  if (countedBy === 'absence') return '(none)'
  const shown = unmask ? value : maskCaller(value)
  return countedBy === 'address' ? `(address ${shown})` : shown
}
