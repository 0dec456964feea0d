import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeCallers, TopCallers } from './top-callers.ts'

describe('the callers refused most', () => {
  it('the callers refused most are exact while there is room', () => {
    const callers = new TopCallers(10)
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) callers.add('rule', ['ip'], key, 1000)
    expect(callers.top(2).map(({ key, refused, error }) => [key, refused, error])).toEqual([
      ['a', 3, 0],
      ['b', 2, 0],
    ])
  })

  it('the callers refused most are separate by rule', () => {
    const callers = new TopCallers(10)
    callers.add('one', ['ip'], 'a', 1)
    callers.add('two', ['ip'], 'a', 2)
    callers.add('two', ['ip'], 'b', 3)
    expect(callers.top(10, 'two').map(({ key }) => key)).toEqual(['a', 'b'])
    expect(callers.top(10, 'none')).toEqual([])
  })

  it('the callers refused most have counts within their error bound, and no frequent one is missing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 400 }),
        fc.integer({ min: 1, max: 8 }),
        (keys, capacity) => {
          const callers = new TopCallers(capacity)
          const truth = new Map<string, number>()
          for (const key of keys.map(String)) {
            callers.add('rule', [], key, 0)
            truth.set(key, (truth.get(key) ?? 0) + 1)
          }
          const told = callers.top(1000)
          expect(told.length).toBe(Math.min(truth.size, capacity))
          for (const { key, refused, error } of told) {
            expect(truth.get(key)!).toBeLessThanOrEqual(refused)
            expect(truth.get(key)!).toBeGreaterThanOrEqual(refused - error)
          }
          const often = [...truth].filter(([, count]) => count > keys.length / capacity).map(([key]) => key)
          expect(told.map(({ key }) => key)).toEqual(expect.arrayContaining(often))
          expect(told.map(({ refused }) => refused)).toEqual(told.map(({ refused }) => refused).sort((a, b) => b - a))
        },
      ),
    )
  })

  it('the callers refused most of several processes add up', () => {
    const [one, other] = [new TopCallers(5), new TopCallers(5)]
    one.add('rule', [], 'a', 1)
    other.add('rule', [], 'a', 7)
    other.add('rule', [], 'b', 2)
    const merged = mergeCallers([one.top(5), other.top(5)], 1)
    expect(merged).toEqual([{ rule: 'rule', by: [], key: 'a', refused: 2, error: 0, lastAt: 7 }])
  })
})
