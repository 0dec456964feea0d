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

it.each(['draft-8', 'draft-9', 'draft-12', 'DRAFT-8'])(
  'the other version %s is not taken for a misspelled name',
  typed => {
    expect(suggest(typed, ['draft-11', 'draft-7', 'draft-6', 'legacy'])).toBeUndefined()
  },
)

it('a name with a number that is misspelled elsewhere gets its suggestion', () => {
  expect(suggest('darft-7', ['draft-11', 'draft-7'])).toBe('draft-7')
})
