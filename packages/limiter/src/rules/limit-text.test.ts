import fc from 'fast-check'
import { expect, it } from 'vitest'
import { explainRate, parseRate } from './limit-text.ts'

const counts: readonly (readonly [text: string, count: number])[] = [
  ['5', 5],
  ['1k', 1000],
  ['1K', 1000],
  ['2.5k', 2500],
  ['1m', 1e6],
  ['3 million', 3e6],
  ['2 thousand', 2000],
  ['1_000', 1000],
  ['1,000', 1000],
  ['1e3', 1000],
]
const joints = [
  '/',
  ' / ',
  ' per ',
  ' in ',
  ' every ',
  ' each ',
  ' a ',
  ' req/',
  ' requests per ',
  'r/',
  ' calls / ',
  ' hits every ',
  ' times a ',
]
const periods: readonly (readonly [text: string, period: string])[] = [
  ['s', 's'],
  ['sec', 's'],
  ['second', 's'],
  ['min', 'm'],
  ['minutes', 'm'],
  ['1 minute', 'm'],
  ['15 min', '15m'],
  ['hour', 'h'],
  ['2 hrs', '2h'],
  ['days', 'd'],
  ['week', 'week'],
  ['month', 'month'],
]

it('each spelling of a count and a period that is not a limit gets the limit that was meant', () => {
  let tried = 0
  for (const [count, number] of counts) {
    for (const joint of joints) {
      for (const [text, period] of periods) {
        const typed = `${count}${joint}${text}`
        if (parseRate(typed) !== undefined) continue
        tried++
        expect([typed, explainRate(typed)]).toEqual([
          typed,
          expect.stringContaining(`did you mean ${number}/${period}?`),
        ])
      }
    }
  }
  expect(tried).toBeGreaterThan(1500)
})

it.each([
  ['100 rpm', '100/m'],
  ['100rps', '100/s'],
  ['1k rph', '1000/h'],
  ['1.5/s', '15/10s'],
  ['0.5k/s', '500/s'],
])('%s gets the suggestion %s', (typed, meant) => {
  expect(explainRate(typed)).toBe(`"${typed}" is not a limit: did you mean ${meant}?`)
})

it('a suggestion is always a limit, whatever was written', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9kKmM.,_ ]{1,8}(?:\/| per |rp)[a-z0-9 ]{1,8}$/), text => {
      const [, guess] = /did you mean (\S+?)(?:,.*)?\?$/.exec(explainRate(text)) ?? []
      if (guess !== undefined) expect(parseRate(guess)).toBeDefined()
    }),
  )
})
