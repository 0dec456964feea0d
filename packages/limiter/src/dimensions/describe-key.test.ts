import fc from 'fast-check'
import { expect, it } from 'vitest'
import { describeKey } from './describe-key.ts'
import { dimensions } from './index.ts'
import { compileKey } from './key.ts'

it('a key of several dimensions is read back as it was made, whatever the values', () => {
  const by = ['header:a', 'account', 'header:c']
  const read = compileKey(by, { identify: {}, dimensions })
  const value = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }).filter(text => text.trim() !== '')
  fc.assert(
    fc.property(value, value, value, (a, account, c) => {
      const key = read({ method: 'GET', path: '/', attributes: { 'header:a': a, account, 'header:c': c } })
      const values = Object.values(describeKey(key, by)).map(part => part.value)
      expect(values).toEqual([a, account, c])
    }),
  )
  expect(describeKey('', [])).toEqual({})
})
