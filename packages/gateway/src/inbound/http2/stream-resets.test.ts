import { expect, test } from 'vitest'
import { ResetBudget } from './stream-resets.ts'

/** After how many resets a connection is ended; at most `most` are tried. */
function resetsUntilEnd(most: number, everyMs: number, answeredEach = 0): number | undefined {
  let now = 0
  const budget = new ResetBudget(now)
  for (let resets = 1; resets <= most; resets++) {
    for (let answered = 0; answered < answeredEach; answered++) budget.answered()
    if (budget.reset(now) > 500) return resets
    now += everyMs
  }
  return undefined
}

test.each([
  ['all at once', 0, 0, 501],
  ['a thousand a second', 1, 0, 516],
  ['a hundred a second', 10, 0, 715],
])('streams that are reset %s end their connection after a bounded number', (_, everyMs, answered, expected) => {
  expect(Math.abs(resetsUntilEnd(100_000, everyMs, answered)! - expected)).toBeLessThanOrEqual(1)
})

test.each([
  ['of which as many are answered', 0, 1],
  ['at thirty a second', 1000 / 30, 0],
  ['at one a second', 1000, 0],
])('streams that are reset %s never end their connection', (_, everyMs, answered) => {
  expect(resetsUntilEnd(100_000, everyMs, answered)).toBeUndefined()
})
