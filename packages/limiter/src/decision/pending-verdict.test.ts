import { afterEach, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'

const call = { method: 'GET', path: '/orders', ip: '203.0.113.9' }
let limiter: Limiter

afterEach(() => limiter.close())

async function decider(limit: string): Promise<() => Verdict> {
  limiter = await createLimiter({ clock: () => 1_000_000, rules: [] })
  limiter.addRule({ id: 'all', limit, algorithm: 'fixed-window' })
  return () => limiter.decide(call) as Verdict
}

it('decisions that are read later are those of the moment of the call', async () => {
  const decide = await decider('2/m')
  const verdicts = [decide(), decide(), decide()]
  expect(verdicts.map(({ decisions }) => decisions[0])).toMatchObject([
    { allowed: true, remaining: 1, retryAfterMs: 0 },
    { allowed: true, remaining: 0, retryAfterMs: 0 },
    { allowed: false, remaining: 0, retryAfterMs: 20_000 },
  ])
})

it('decisions that are read after a reload are those of the rule that decided', async () => {
  const decide = await decider('2/m')
  const verdict = decide()
  limiter.removeRule('all')
  limiter.addRule({ id: 'all', limit: '7/h', algorithm: 'fixed-window' })
  expect(verdict.decisions).toMatchObject([{ rule: 'all', limit: 2, periodMs: 60_000 }])
  expect(decide().decisions).toMatchObject([{ rule: 'all', limit: 7, periodMs: 3_600_000 }])
})

it('the decisions of a verdict are one list, however often they are read', async () => {
  const verdict = (await decider('2/m'))()
  expect(verdict.decisions).toBe(verdict.decisions)
})

it('JSON of a verdict has its decisions', async () => {
  const verdict = (await decider('2/m'))()
  expect(JSON.parse(JSON.stringify(verdict))).toMatchObject({
    ...{ allowed: true, waitMs: 0, retryAfterMs: 0, holds: false },
    decisions: [{ rule: 'all', limit: 2, remaining: 1 }],
  })
})

it('a check whose call is unusable is rejected and does not throw', async () => {
  await decider('2/m')
  await expect(limiter.check({} as typeof call)).rejects.toThrow('a call needs a method and a path')
})
