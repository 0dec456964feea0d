import { expect, it } from 'vitest'
import { suggest } from './suggest.ts'

const names = ['match', 'method', 'whenFull', 'whenStoreDown', 'by', 'limit', 'id']

it.each([
  ['mach', 'match'],
  ['mathc', 'match'],
  ['WhenFull', 'whenFull'],
  ['whenfull', 'whenFull'],
  ['whenStore', 'whenStoreDown'],
  ['limits', 'limit'],
  ['limitation', 'limit'],
  ['yb', 'by'],
  ['color', undefined],
  ['', undefined],
  ['x', undefined],
  ['b'.repeat(100_000), undefined],
])('the unknown name %.20s gets the suggestion %s', (typed, meant) => {
  expect(suggest(typed, names)).toBe(meant)
})
