import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { adminOf } from '../admin/index.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import type { Verdict } from '../verdict.ts'

const algorithms = ['fixed-window', 'sliding-window', 'token-bucket', 'leaky-bucket'] as const
const dimensions = [undefined, 'account', 'resource', 'ip'] as const

const rule = fc.record({
  algorithm: fc.constantFrom(...algorithms),
  by: fc.constantFrom(...dimensions),
  limit: fc.constantFrom('1/s', '3/s', '5/m', '2/500ms'),
  whenFull: fc.constantFrom('refuse', 'shadow'),
  missing: fc.constantFrom(undefined, 'skip'),
})

const call = fc.record({
  method: fc.constant('GET'),
  path: fc.constantFrom('/orders', '/orders/', '/users', '/a/..%2fb', '/a;b/c'),
  ip: fc.constantFrom('203.0.113.1', '203.0.113.2'),
  attributes: fc.constantFrom(undefined, { account: 'ann' }, { account: 'bob' }),
})

const step = fc.record({ call, afterMs: fc.constantFrom(0, 1, 90, 400, 1100), refunds: fc.boolean() })

function toRules(options: readonly (typeof rule extends fc.Arbitrary<infer One> ? One : never)[]): RuleOptions[] {
  return options.map(({ by, missing, ...one }, i) => {
    // a rule without dimensions has no values that may be missing
    return { id: `rule-${i}`, ...one, ...(by !== undefined && { by, ...(missing && { missing }) }) } as RuleOptions
  })
}

it('calls without options get the answers of calls with a cost, which are decided by charges', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(rule, { minLength: 1, maxLength: 4 }),
      fc.array(step, { minLength: 1, maxLength: 40 }),
      async (options, steps) => {
        let nowMs = 1_000_000
        const limiters = await Promise.all(
          [0, 1].map(() => createLimiter({ clock: () => nowMs, rules: toRules(options) })),
        )
        const [quick, charged] = limiters as [(typeof limiters)[0], (typeof limiters)[0]]
        for (const limiter of limiters) adminOf(limiter).takeLoads()
        for (const one of steps) {
          nowMs += one.afterMs
          const [left, right] = [quick.decide(one.call) as Verdict, charged.decide(one.call, { cost: 1 }) as Verdict]
          expect(JSON.stringify(left)).toBe(JSON.stringify(right))
          if (one.refunds) expect(left.refund()).toEqual(right.refund())
        }
        const statsOf = (limiter: typeof quick) => {
          const { total, rules } = adminOf(limiter).stats()
          return { total, rules, loads: adminOf(limiter).takeLoads(), keys: limiter.status().keys }
        }
        expect(statsOf(quick)).toEqual(statsOf(charged))
        await Promise.all(limiters.map(limiter => limiter.close()))
      },
    ),
    { numRuns: randomRuns(60) },
  )
})
