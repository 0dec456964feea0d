import { describe, expect, it } from 'vitest'
import { Refusals } from './refusals.ts'

const start = Date.UTC(2026, 0, 1)
const call = (path = '/') => ({ by: [], key: 'ann', reason: 'limit', method: 'GET', path, retryAfterMs: 5 })

function add(refusals: Refusals, rule: string, at: number, describe: () => ReturnType<typeof call>): void {
  if (refusals.takes(rule, at)) refusals.keep(rule, at, describe())
}

describe('the last refusals', () => {
  it('refusals are listed with the newest first, with how many of their rule were not kept before', () => {
    const refusals = new Refusals()
    for (let i = 0; i < 8; i++) add(refusals, 'one', start + i, () => call(`/${i}`))
    add(refusals, 'one', start + 1000, () => call('/later'))
    add(refusals, 'two', start + 500, () => call('/two'))
    expect(refusals.read(10).map(({ path, unsaid }) => [path, unsaid])).toEqual([
      ['/later', 3],
      ['/two', 0],
      ...['/4', '/3', '/2', '/1', '/0'].map(path => [path, 0]),
    ])
    expect(refusals.read(1, ({ rule }) => rule === 'two').map(({ path }) => path)).toEqual(['/two'])
  })

  it('a flood of one rule neither describes every call nor hides the refusals of another rule', () => {
    const refusals = new Refusals(150)
    let described = 0
    add(refusals, 'rare', start, () => call())
    for (let i = 0; i < 100_000; i++) {
      add(refusals, 'flood', start + i, () => {
        described++
        return call()
      })
    }
    expect(described).toBe(500)
    expect(refusals.read(1000).filter(({ rule }) => rule === 'rare')).toHaveLength(1)
    expect(refusals.read(1000)).toHaveLength(101)
  })

  it('all rules together keep a bounded number, and rules that are gone are forgotten', () => {
    const refusals = new Refusals(60)
    for (let i = 0; i < 5000; i++) add(refusals, `rule-${i % 40}`, start + i * 200, () => call())
    expect(refusals.read(1000).length).toBe(60)
    refusals.retain(new Set(['rule-1']))
    expect(new Set(refusals.read(1000).map(({ rule }) => rule))).toEqual(new Set(['rule-1']))
  })
})
