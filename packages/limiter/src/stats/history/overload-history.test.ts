import { describe, expect, it } from 'vitest'
import type { Estimate } from '../../algorithms/adaptive/estimator.ts'
import { mergeStats, noCounts, type Stats } from '../stats.ts'
import { OverloadHistory } from './overload-history.ts'

const durations = { memory: { counts: [], sumSeconds: 0 }, redis: { counts: [], sumSeconds: 0 } }

function found(limit: number, inFlight = 0, perSecond = 100, latencyMs = 10): Estimate {
  return { limit, inFlight, perSecond, baseMs: 5, latencyMs, limiting: limit < 10 }
}

function stats(estimates: Readonly<Record<string, Estimate | undefined>>, shed?: Record<string, number>): Stats {
  return {
    total: noCounts,
    rules: Object.entries(estimates).map(([id, estimate]) => ({ id, waiting: 0, ...noCounts, estimate })),
    durations,
    ...(shed ? { overload: { delayMs: 4, utilization: 0.5, waitMs: 1, share: 0.6, shed } } : {}),
  }
}

describe('what is reported of overload', () => {
  it('estimates of several processes are added up, and times are averages by answers', () => {
    const processes = [
      stats({ a: found(5, 4, 300, 10), b: undefined }),
      stats({ a: found(20, 3, 100, 30) }),
      stats({ a: undefined, b: found(7, 1, 0, 0) }),
    ]
    const [a, b] = mergeStats(processes).rules
    expect(a?.estimate).toEqual({ limit: 25, inFlight: 7, perSecond: 400, baseMs: 5, latencyMs: 15, limiting: true })
    expect(b?.estimate).toMatchObject({ limit: 7, perSecond: 0, baseMs: 0, latencyMs: 0 })
    expect(mergeStats([stats({ a: undefined })]).rules[0]).not.toHaveProperty('estimate', expect.anything())
  })

  it('the load of several processes is that of the busiest, and shed calls are added up by level', () => {
    const busy = stats({}, { critical: 1, default: 5 })
    const calm = { ...stats({}), overload: { delayMs: 9, utilization: 0.1, waitMs: 0, share: 1, shed: { default: 2 } } }
    const merged = mergeStats([busy, calm, stats({})]).overload
    expect(merged).toEqual({ delayMs: 9, utilization: 0.5, waitMs: 1, share: 0.8, shed: { critical: 1, default: 7 } })
    expect(mergeStats([stats({})])).not.toHaveProperty('overload')
  })

  it('the history has the calls shed in each second, also after a restart of the counts', () => {
    const history = new OverloadHistory()
    const shedAt = (second: number, calls: number) =>
      history.record(stats({}, { default: calls }), second * 1000).overload?.shed
    expect([shedAt(1, 40), shedAt(2, 45), shedAt(4, 45), shedAt(5, 3)]).toEqual(
      [0, 5, 0, 3].map(calls => ({ default: calls })),
    )
    expect(history.read(5, 5000)).toEqual({
      adaptive: {},
      overload: { share: [0.6, 0.6, null, 0.6, 0.6], shed: { default: [0, 5, null, 0, 3] } },
    })
  })

  it('the history of a rule has gaps in the seconds in which it was not there', () => {
    const history = new OverloadHistory()
    history.record(stats({ a: found(20, 2) }), 1000)
    history.record(stats({}), 2000)
    history.record(stats({ a: found(8, 8, 100, 12), ['__proto__']: found(1) }), 3000)
    const { adaptive, overload } = history.read(3, 3000)
    expect(adaptive.a).toEqual({ limit: [20, null, 8], inFlight: [2, null, 8], latencyMs: [10, null, 12] })
    expect(Object.keys(adaptive)).toEqual(['a', '__proto__'])
    expect(overload).toBeUndefined()
  })

  it('the history keeps bounded seconds and the busiest rules of each', () => {
    const history = new OverloadHistory({ seconds: 10 })
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`r${i}`, found(9, i)]))
    for (let second = 0; second < 50; second++) history.record(stats(many), second * 1000)
    const { adaptive } = history.read(1000, 49_000)
    expect(Object.keys(adaptive)).toHaveLength(100)
    expect(adaptive.r299?.limit).toEqual(Array(10).fill(9))
    expect(adaptive).not.toHaveProperty('r0')
  })
})
