import { createHmac, randomBytes } from 'node:crypto'
import { describeKey, type KeyPart, maskCaller, type TopCaller } from 'diana-limiter'
import { z } from 'zod'
import type { Processes } from '../processes.ts'
import { type Operation, operation } from './operation.ts'
import { count, moment, ruleId } from './shapes.ts'

const salt = randomBytes(16)
const flag = z.enum(['true', 'false', '1', '0']).transform(word => word === 'true' || word === '1')

export const callerOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/callers',
    summary:
      'Who was refused most, in bounded memory: a caller was refused at most `atMost` times, at least `atMost - error`. Masked unless asked.',
    query: z.object({
      rule: ruleId.optional(),
      top: z.coerce.number().int().min(1).max(1000).default(20),
      unmask: flag.default(false),
    }),
    answer: z.object({
      callers: z.array(
        z.object({
          id: z.string().describe('for blocking and resetting, also while masked; good as long as this process runs'),
          rule: z.string(),
          key: z.string(),
          masked: z.boolean(),
          refused: count,
          atMost: count,
          error: count,
          lastAt: moment,
          blockedUntil: moment.optional(),
        }),
      ),
    }),
    run: async ({ query }, { limiter, processes, blocks }) => {
      const found = await processes.callers(query.top, query.rule)
      const blocked = found.length === 0 ? [] : await limiter.blocks()
      const now = Date.now()
      const until = new Map(blocked.map(block => [idOf(block), blocks.untilOf(idOf(block), now, block.leftMs)]))
      return {
        callers: found.map(caller => {
          const blockedUntil = until.get(idOf(caller))
          return { ...describe(caller, query.unmask), ...(blockedUntil === undefined ? {} : { blockedUntil }) }
        }),
      }
    },
  }),
]

/** The caller that was told under an id. */
export async function findCaller(processes: Processes, id: string): Promise<TopCaller | undefined> {
  return (await processes.callers(Number.MAX_SAFE_INTEGER)).find(caller => idOf(caller) === id)
}

export function idOf({ rule, key }: Pick<TopCaller, 'rule' | 'key'>): string {
  return createHmac('sha256', salt).update(rule).update('\0').update(key, 'utf16le').digest('base64url').slice(0, 16)
}

/** A caller's key in words, dimension by dimension. */
export function showKey(key: string, by: readonly string[], unmask: boolean): string {
  const parts = Object.entries(describeKey(key, by))
  if (parts.length === 0) return 'all calls together'
  return parts.map(([name, part]) => `${name}=${showPart(part, unmask)}`).join(' ')
}

function describe(caller: TopCaller, unmask: boolean): object {
  const { rule, by, key, refused, error, lastAt } = caller
  const masked = !unmask && by.length > 0
  return { id: idOf(caller), rule, key: showKey(key, by, unmask), masked, refused, atMost: refused, error, lastAt }
}

function showPart({ countedBy, value }: KeyPart, unmask: boolean): string {
  if (countedBy === 'absence') return '(none)'
  const shown = unmask ? value : maskCaller(value)
  return countedBy === 'address' ? `(address ${shown})` : shown
}
