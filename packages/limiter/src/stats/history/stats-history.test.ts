import { describe, expect, it } from 'vitest'
import { mergeStats, noCounts, type Stats } from '../stats.ts'
import { StatsHistory } from './stats-history.ts'

const durations = { memory: { counts: [], sumSeconds: 0 }, redis: { counts: [], sumSeconds: 0 } }

function figures(rules: Readonly<Record<string, [allowed: number, refused: number]>>): Stats {
  const list = Object.entries(rules).map(([id, [allowed, refused]]) => {
    return { id, waiting: 0, ...noCounts, allowed, refused }
  })
  const sum = (name: 'allowed' | 'refused') => list.reduce((total, rule) => total + rule[name], 0)
  return { total: { ...noCounts, allowed: sum('allowed'), refused: sum('refused') }, rules: list, durations }
}

describe('the history of statistics', () => {
  it('the history of statistics keeps what each second added, and leaves out rules without traffic', () => {
    const history = new StatsHistory()
    history.record(figures({ a: [10, 1], b: [5, 0] }), new Map(), 0)
    history.record(figures({ a: [12, 1], b: [5, 0] }), new Map([['a', 0.5]]), 1000)
    const second = history.record(figures({ a: [15, 4], b: [5, 0] }), new Map([['a', 1]]), 2000)
    expect(second).toEqual({
      at: 2000,
      total: { allowed: 3, refused: 3, waited: 0, shadowRefused: 0 },
      rules: [{ id: 'a', allowed: 3, refused: 3, waited: 0, shadowRefused: 0, load: 1 }],
    })
    const { at, total, rules } = history.read(3)
    expect(at).toBe(2000)
    expect([total.allowed, total.refused]).toEqual([
      [0, 2, 3],
      [0, 0, 3],
    ])
    expect([...rules.keys()]).toEqual(['a'])
    expect(rules.get('a')?.allowed).toEqual([0, 2, 3])
  })

  it('the history of statistics reads a smaller count as a restart', () => {
    const history = new StatsHistory()
    history.record(figures({ a: [100, 0] }), new Map(), 0)
    expect(history.record(figures({ a: [3, 0] }), new Map(), 1000).rules[0]).toMatchObject({ allowed: 3 })
  })

  it('the history of a rule that was added later starts from zero', () => {
    const history = new StatsHistory()
    history.record(figures({}), new Map(), 0)
    expect(history.record(figures({ a: [3, 0] }), new Map(), 1000).rules[0]).toMatchObject({ allowed: 3 })
  })

  it('missed seconds are zero in the history of statistics', () => {
    const history = new StatsHistory()
    history.record(figures({ a: [0, 0] }), new Map(), 0)
    history.record(figures({ a: [1, 0] }), new Map(), 1000)
    history.record(figures({ a: [3, 0] }), new Map(), 4000)
    expect(history.read(5).total.allowed).toEqual([0, 1, 0, 0, 2])
  })

  it('the history of statistics drops old seconds, and the oldest if there are too many rules', () => {
    const history = new StatsHistory({ seconds: 3, mostRows: 5 })
    for (let second = 0; second <= 10; second++) {
      history.record(figures({ a: [second, 0], b: [second, 0] }), new Map(), second * 1000)
    }
    expect(history.read(600).total.allowed).toEqual([0, 4 - 2, 2])
  })

  it('the history of statistics returns the busiest rules if there are many', () => {
    const history = new StatsHistory()
    const many = (factor: number) =>
      figures(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`r${i}`, [i * factor, 0] as [number, number]])))
    history.record(many(0), new Map(), 0)
    history.record(many(1), new Map(), 1000)
    expect([...history.read(2, { mostRules: 3 }).rules.keys()]).toEqual(['r19', 'r18', 'r17'])
  })
})

describe('statistics of several processes', () => {
  it('statistics of several processes add up, rule by rule', () => {
    const merged = mergeStats([figures({ a: [1, 2], b: [1, 0] }), figures({ a: [10, 0] })])
    expect(merged.total).toMatchObject({ allowed: 12, refused: 2 })
    expect(merged.rules.map(({ id, allowed, refused }) => [id, allowed, refused])).toEqual([
      ['a', 11, 2],
      ['b', 1, 0],
    ])
  })
})
