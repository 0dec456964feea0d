import { describe, expect, it } from 'vitest'
import { nextSort, parseSort, sortRules } from './sort-order.ts'

const rules = ['b', 'a', 'd', 'c'].map(id => ({ id }))
const figure = (id: string) => ({ a: 3, b: 3, c: 9 })[id] ?? 0
const sorted = (text: string) => sortRules(rules, parseSort(text)!, figure).map(({ id }) => id)

describe('the order of rules', () => {
  it('rules are sorted by name and by a figure, both ways; those of one figure by name', () => {
    expect(sorted('name')).toEqual(['a', 'b', 'c', 'd'])
    expect(sorted('-name')).toEqual(['d', 'c', 'b', 'a'])
    expect(sorted('-refused')).toEqual(['c', 'a', 'b', 'd'])
    expect(sorted('refused')).toEqual(['d', 'a', 'b', 'c'])
    expect(rules.map(({ id }) => id)).toEqual(['b', 'a', 'd', 'c'])
  })

  it('an address that names no column is the order of the documents', () => {
    for (const text of ['', '-', 'x', '--refused', 'constructor']) expect(parseSort(text)).toBeUndefined()
    expect(parseSort('-load')).toEqual({ by: 'load', direction: 'descending' })
  })

  it('clicks on a column give the useful direction, then the other one, then none', () => {
    const clicks = (by: 'name' | 'refused') => {
      const first = nextSort(undefined, by)
      const second = nextSort(parseSort(first), by)
      return [first, second, nextSort(parseSort(second), by)]
    }
    expect(clicks('refused')).toEqual(['-refused', 'refused', ''])
    expect(clicks('name')).toEqual(['name', '-name', ''])
    expect(nextSort(parseSort('-refused'), 'load')).toBe('-load')
  })
})
