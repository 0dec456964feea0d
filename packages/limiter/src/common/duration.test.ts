import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatDuration, guessDuration, parseDuration } from './duration.ts'
import { duration } from './duration-schema.ts'

it.each([
  ['1ms', 1],
  ['100ms', 100],
  ['10s', 10_000],
  ['5m', 300_000],
  ['1h', 3_600_000],
  ['366d', 31_622_400_000],
  ['', undefined],
  ['s', undefined],
  ['5', undefined],
  ['5 s', undefined],
  ['5S', undefined],
  ['-5s', undefined],
  ['1.5s', undefined],
  ['0s', undefined],
  ['367d', undefined],
  ['9999999999999ms', undefined],
  ['5s\n', undefined],
])('%j is %s milliseconds', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

it('a formatted duration parses to the same value', () => {
  const ms = fc.integer({ min: 1, max: 31_622_400_000 })
  fc.assert(fc.property(ms, number => parseDuration(formatDuration(number)) === number))
  expect([1, 1500, 60_000, 90_000, 86_400_000].map(formatDuration)).toEqual(['1ms', '1500ms', '1m', '90s', '1d'])
})

it.each([
  ['5 sec', '5s'],
  ['5SECONDS', '5s'],
  ['1.5s', '1500ms'],
  ['hour', '1h'],
  ['2 weeks', '14d'],
  ['60s', '1m'],
  ['400 days', undefined],
  ['soon', undefined],
  ['', undefined],
])('the duration %j is misspelled, and %s is suggested', (text, meant) => {
  expect(guessDuration(text)).toBe(meant)
})

it.each([
  ['5 min', '"5 min" is not a duration: did you mean 5m?'],
  [50, '50 has no unit: write 50ms or 50s'],
  ['soon', 'must be a duration from 1ms to 366d, a whole number with a unit: 100ms, 10s, 5m, 1h or 7d'],
  ['0s', 'must be a duration from 1ms to 366d, a whole number with a unit: 100ms, 10s, 5m, 1h or 7d'],
  [null, 'must be a duration from 1ms to 366d, a whole number with a unit: 100ms, 10s, 5m, 1h or 7d'],
])('the duration field %j is refused with a remedy', (value, message) => {
  expect(duration.safeParse(value).error?.issues).toMatchObject([{ message }])
})

it('a duration field is read as milliseconds', () => {
  expect(duration.parse('10s')).toBe(10_000)
})
