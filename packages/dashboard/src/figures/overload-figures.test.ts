import { describe, expect, it } from 'vitest'
import { OverloadFigures } from './overload-figures.ts'

const found = { limit: 12, inFlight: 9, perSecond: 200, baseMs: 40, latencyMs: 55, limiting: true }
const load = { delayMs: 3, utilization: 0.9, waitMs: 1, share: 0.7 }
const blank = { allowed: [], refused: [], waited: [], shadowRefused: [] }

describe('the overload figures of the page', () => {
  it('limit, calls in flight and latency of a rule are kept for each second, with gaps', () => {
    const figures = new OverloadFigures()
    figures.add(100, { adaptive: { a: found } })
    figures.add(102, { adaptive: { a: { ...found, limit: 14, latencyMs: 0 } } })
    const { limit, inFlight, latencyMs } = figures.curvesOf('a')!
    expect([99, 100, 101, 102].map(second => limit.at(second))).toEqual([null, 12, null, 14])
    expect(inFlight.at(102)).toBe(9)
    expect([latencyMs.at(100), latencyMs.at(102)]).toEqual([55, null])
    expect(figures.newestOf('a')?.limit).toBe(14)
  })

  it('a history adds the seconds that are not known yet', () => {
    const figures = new OverloadFigures()
    figures.add(100, { adaptive: { a: found }, overload: { ...load, shed: { default: 5 } } })
    const adaptive = { a: { limit: [7, 8, 1], inFlight: [1, null, 1], latencyMs: [1, 1, 1] } }
    const overload = { share: [1, 1, 1], shed: { default: [2, 3, 100] } }
    figures.fill(100, { at: 100_000, stepMs: 1000, total: blank, rules: {}, loads: {}, adaptive, overload })
    const { limit, inFlight } = figures.curvesOf('a')!
    expect([97, 98, 99, 100].map(second => limit.at(second))).toEqual([null, 7, 8, 12])
    expect(inFlight.at(99)).toBeNull()
    expect(figures.shed(100)).toEqual([{ level: 'default', now: 5, sum: 10 }])
  })

  it('shed calls are summed over five minutes, the highest level first', () => {
    const figures = new OverloadFigures()
    for (let second = 1; second <= 400; second++) {
      figures.add(second, { overload: { ...load, shed: { 30: 1, default: 0, sheddable: 2, critical: 0 } } })
    }
    expect(figures.shed(400).map(({ level, now, sum }) => [level, now, sum])).toEqual([
      ['critical', 0, 0],
      ['default', 0, 0],
      ['30', 1, 300],
      ['sheddable', 2, 600],
    ])
  })

  it('rules and levels are forgotten five minutes after they are gone', () => {
    const figures = new OverloadFigures()
    figures.add(1, { adaptive: { a: found }, overload: { ...load, shed: { default: 1 } } })
    figures.add(300, {})
    expect([figures.rules, figures.newestOf('a'), figures.overload]).toEqual([['a'], undefined, undefined])
    figures.add(301, {})
    expect([figures.rules, figures.shed(301)]).toEqual([[], []])
  })
})
