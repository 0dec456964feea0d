import { describe, expect, it } from 'vitest'
import { dimensions } from '../../dimensions/index.ts'
import { type CostInput, compileCost as compile, settlementTerms } from './cost.ts'

const compileCost = (input: CostInput, from: typeof dimensions) => compile(input, from)!

const call = (cost: string | string[] | undefined) => ({ method: 'GET', path: '/', headers: { 'x-cost': cost } })

describe('a cost read from the call', () => {
  const read = compileCost({ from: 'header:x-cost', least: 1, most: 100 }, dimensions)

  it.each([
    ['7', 7],
    ['007', 7],
    ['100', 100],
    ['101', 100],
    ['999999999999999', 100],
    ['0', 1],
    ['', 1],
    [undefined, 1],
    ['-5', 1],
    ['2.5', 1],
    ['1e9', 1],
    ['0x10', 1],
    ['Infinity', 1],
    ['NaN', 1],
    ['9'.repeat(16), 1],
    ['9'.repeat(100_000), 1],
    ['5, 7', 1],
    [['5', '7'], 1],
    ['٧', 1],
    [' 7', 1],
  ])('a cost of %j in the call counts as %i', (value, cost) => {
    expect(read(call(value))).toBe(cost)
  })

  it('a call with two costs is charged the maximum', () => {
    const fromQuery = compileCost({ from: 'query:cost', least: 1, most: 100 }, dimensions)
    const costs = ['cost=7', 'cost=7&cost=07', 'cost=1&cost=90', 'cost[]=1&cost=1'].map(query =>
      fromQuery({ method: 'GET', path: '/', query }),
    )
    expect(costs).toEqual([7, 100, 100, 1])
  })

  it('a cost of 0 from a call counts only if the rule allows it', () => {
    const free = compileCost({ from: 'header:x-cost', least: 0, most: 100 }, dimensions)
    expect([free(call('0')), free(call(undefined)), free(call('no'))]).toEqual([0, 1, 1])
    const dear = compileCost({ from: 'header:x-cost', least: 5, most: 100 }, dimensions)
    expect([dear(call('2')), dear(call(undefined))]).toEqual([5, 5])
  })

  it('a numeric cost of a rule is the same for every call', () => {
    expect(compileCost(3, dimensions)(call('50'))).toBe(3)
  })
})

describe('how the cost of a rule is settled', () => {
  it.each([
    [undefined, undefined, undefined],
    [5, undefined, undefined],
    [{ from: 'header:x-cost', least: 1, most: 9 }, undefined, undefined],
    [{ least: 1, most: 9, overrun: 'clip' }, 'clip', 600_000],
    [{ least: 1, most: 9, hold: 5000 }, 'debt', 5000],
  ] as const)('%j: overrun %s, hold %s', (input, overrun, holdMs) => {
    expect(settlementTerms(input)).toEqual({ overrun, holdMs })
  })

  it('a rule with no source of its cost leaves it to the application', () => {
    expect(compile({ least: 1, most: 9, hold: 5000 }, dimensions)).toBeUndefined()
  })
})
