import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const redis = useRedis()

interface RuleTerms {
  readonly by?: string
  readonly limit: string | readonly string[]
  readonly algorithm?: string
}

let walks = 0

/** One limiter that may refuse without asking Redis, and one that judges every call in this process, at one time. */
async function startBoth(terms: readonly RuleTerms[]) {
  const time = { ms: 1_800_000_000_000 + 137 }
  walks++
  const rules = terms.map((rule, i) => ({ id: `walk-${walks}-rule-${i}`, ...rule }) as never)
  const clock = () => time.ms
  const distributed = await createLimiter({ rules, clock, store: { redis: redis.server.client, timeout: '5s' } })
  const local = await createLimiter({ rules, clock })
  const check = async (account: string, cost: number) => {
    const call = { method: 'GET', path: '/', attributes: { account } }
    return await Promise.all([distributed, local].map(limiter => limiter.check(call, { cost }).then(essence)))
  }
  return { time, check, close: () => Promise.all([distributed.close(), local.close()]) }
}

/** All that a filter makes headers and an answer of. */
function essence({ allowed, rule, reason, retryAfterMs, decisions, answer }: Verdict) {
  return { allowed, rule, reason, retryAfterMs, decisions, answer }
}

const limits = fc.constantFrom('1/s', '2/s', '1/h', '3/m', '5/10s')
const rule = fc.record({
  by: fc.constantFrom('account', 'method'),
  algorithm: fc.constantFrom('fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'),
  limit: fc.oneof(limits, fc.uniqueArray(limits, { minLength: 2, maxLength: 3 })),
})
const step = fc.record({
  passMs: fc.constantFrom(0, 0, 1, 130, 333, 800, 4000),
  account: fc.constantFrom('ann', 'bob'),
  cost: fc.constantFrom(1, 1, 1, 2),
})

describe('a refusal from the deny cache', () => {
  it('a refusal from the deny cache has the numbers of the slowest rule, however often the caller comes back', async () => {
    const { time, check, close } = await startBoth([
      { by: 'account', limit: '1/s' },
      { by: 'account', limit: '1/h' },
    ])
    const retries = []
    for (const ms of [0, 100, 100, 300, 499, 2, 700]) {
      time.ms += ms
      const [distributed, local] = await check('ann', 1)
      expect(distributed).toEqual(local)
      retries.push(distributed!.decisions.length)
    }
    expect(retries).toEqual([2, 2, 2, 2, 2, 2, 2])
    await close()
  })

  it('the deny cache answers with the numbers of the store, for random calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(rule, { minLength: 1, maxLength: 3 }),
        fc.array(step, { maxLength: 40 }),
        async (rules, steps) => {
          const { time, check, close } = await startBoth(rules)
          try {
            for (const { passMs, account, cost } of steps) {
              time.ms += passMs
              const [distributed, local] = await check(account, cost)
              expect(distributed).toEqual(local)
            }
          } finally {
            await close()
          }
        },
      ),
      { numRuns: randomRuns(14) },
    )
  })
})
