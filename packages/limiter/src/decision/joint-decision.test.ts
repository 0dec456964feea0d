import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import type { Verdict } from '../verdict.ts'

let limiter: Limiter
let nowMs = 1_000_000
afterEach(() => limiter.close())

async function limit(...rules: RuleOptions[]): Promise<void> {
  limiter = await createLimiter({ rules, clock: () => nowMs })
}

const call = (attributes: Record<string, string>) => ({ method: 'POST', path: '/', attributes })

function together(...calls: [attributes: Record<string, string>, cost?: number][]): readonly Verdict[] {
  return limiter.decideTogether(
    calls.map(([attributes, cost = 1]) => ({ call: call(attributes), cost })),
  ) as readonly Verdict[]
}

async function left(rule: string, attributes: Record<string, string>): Promise<number> {
  const { decisions } = await limiter.peek(call(attributes), { cost: 0 })
  return decisions.find(decision => decision.rule === rule)!.remaining
}

describe('calls that are decided together', () => {
  it('one refused call keeps every other call of the request from being counted', async () => {
    await limit(
      { id: 'user', by: 'attribute:user', match: { attribute: { user: '*' } }, limit: '5/m' },
      { id: 'plan', by: 'attribute:plan', match: { attribute: { plan: ['free', 'trial-*'] } }, limit: '1/m' },
    )
    expect(together([{ user: 'ann' }], [{ plan: 'free' }]).map(one => one.allowed)).toEqual([true, true])
    const refused = together([{ user: 'ann' }], [{ plan: 'free' }])
    expect(refused.map(one => one.allowed)).toEqual([true, false])
    expect(refused[1]).toMatchObject({ rule: 'plan', reason: 'limit' })
    expect(await left('user', { user: 'ann' })).toBe(4)
    expect(together([{ user: 'ann' }], [{ plan: 'paid' }]).map(one => one.allowed)).toEqual([true, true])
    expect(await left('user', { user: 'ann' })).toBe(3)
    expect(together([{ plan: 'trial-7' }])[0]!.decisions).toHaveLength(1)
  })

  it('a rule that two calls meet with one key is charged once, by the highest cost', async () => {
    await limit({ id: 'user', by: 'attribute:user', limit: '10/m' })
    expect(together([{ user: 'ann' }, 2], [{ user: 'ann', path: '/' }, 3]).map(one => one.allowed)).toEqual([
      true,
      true,
    ])
    expect(await left('user', { user: 'ann' })).toBe(7)
    together([{ user: 'ann' }], [{ user: 'bob' }, 4])
    expect(await left('user', { user: 'ann' })).toBe(6)
    expect(await left('user', { user: 'bob' })).toBe(6)
  })

  it('a call of cost 0 is only asked whether it would pass', async () => {
    await limit({ id: 'user', by: 'attribute:user', limit: '2/m' })
    expect(together([{ user: 'ann' }, 0], [{ user: 'bob' }]).map(one => one.allowed)).toEqual([true, true])
    together([{ user: 'ann' }, 2])
    expect(together([{ user: 'ann' }, 0], [{ user: 'bob' }]).map(one => one.allowed)).toEqual([false, true])
    expect(await left('user', { user: 'bob' })).toBe(1)
  })

  it('random requests are decided as a model of all or nothing decides them', async () => {
    const names = fc.constantFrom('a', 'b', 'c')
    const part = fc.tuple(fc.record({ user: names }), fc.integer({ min: 0, max: 3 }))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(part, { minLength: 1, maxLength: 4 }), { maxLength: 30 }), async requests => {
        nowMs += 600_000
        await limit({ id: 'user', by: 'attribute:user', algorithm: 'fixed-window', limit: '7/m' })
        const used = new Map<string, number>()
        for (const request of requests) {
          const wanted = new Map<string, number>()
          for (const [{ user }, cost] of request) wanted.set(user, Math.max(wanted.get(user) ?? 0, cost))
          const fits = request.every(([{ user }, cost]) => {
            const most = cost === 0 ? 1 : wanted.get(user)!
            return (used.get(user) ?? 0) + most <= 7
          })
          expect(together(...request).every(one => one.allowed)).toBe(fits)
          if (fits) for (const [user, cost] of wanted) used.set(user, (used.get(user) ?? 0) + cost)
        }
        for (const [user, count] of used) expect(await left('user', { user })).toBe(7 - count)
        await limiter.close()
      }),
      { numRuns: randomRuns(60) },
    )
  })
})
