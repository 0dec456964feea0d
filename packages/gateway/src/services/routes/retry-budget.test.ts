import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RetryBudget } from './route.ts'

test('a route without calls may try again a few times, and no more', () => {
  const budget = new RetryBudget({ percent: 20, perSecond: 3 })
  const taken = (now: number) => Array.from({ length: 100 }, () => budget.take(now)).filter(Boolean).length
  expect([taken(0), taken(9999), taken(10_000), taken(12_000)]).toEqual([30, 0, 30, 0])
})

test('a retry budget with nothing in it allows no second try', () => {
  const budget = new RetryBudget({ percent: 0, perSecond: 0 })
  budget.count(0)
  expect(budget.take(0)).toBe(false)
})

test('no order of calls and second tries exceeds the budget of the last ten seconds, or leaves any of it unused', () => {
  const move = fc.record({
    isTry: fc.boolean(),
    count: fc.integer({ min: 1, max: 40 }),
    ms: fc.integer({ min: 0, max: 4000 }),
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 0, max: 5 }),
      fc.array(move, { maxLength: 60 }),
      (percent, perSecond, moves) => {
        const budget = new RetryBudget({ percent, perSecond })
        const calls: number[] = []
        const tries: number[] = []
        let now = 0
        for (const { isTry, count, ms } of moves) {
          now += ms
          const second = Math.floor(now / 1000)
          const recent = (list: number[]) => list.filter(one => one > second - 10).length
          for (let i = 0; i < count; i++) {
            if (!isTry) {
              budget.count(now)
              calls.push(second)
              continue
            }
            const fits = recent(tries) + 1 <= (recent(calls) * percent) / 100 + perSecond * 10
            expect(budget.take(now)).toBe(fits)
            if (fits) tries.push(second)
          }
        }
      },
    ),
    { numRuns: 200 },
  )
})
