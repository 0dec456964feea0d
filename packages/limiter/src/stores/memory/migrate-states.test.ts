import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { compileRule } from '../../testing/compile-rule.ts'
import type { TimelineRule } from '../../testing/timeline.ts'
import { inheritStates, isSameLayout, layOut } from './migrate-states.ts'

const SECOND = 1_000_000
const HOUR = 3600 * SECOND
const now = 1_794_712_345_678_901

/** One key of a rule with several levels. */
function keyOf(words: TimelineRule) {
  let layout = layOut(compileRule(words).meters)
  let state: Float64Array = new Float64Array(layout.stride)
  return {
    take(calls: number, at: number): void {
      for (let call = 0; call < calls; call++) {
        layout.meters.forEach((meter, level) => void meter.take(state, layout.offsets[level]!, at, 1, 0))
      }
    },
    change(words: TimelineRule, at: number): void {
      const after = layOut(compileRule(words).meters)
      state = inheritStates(state, 1, layout, after, at)
      layout = after
    },
    remaining: (at: number): number[] =>
      layout.meters.map((meter, level) => meter.remaining(state, layout.offsets[level]!, at)),
  }
}

describe.each(['sliding-window', 'sliding-log', 'fixed-window'])('the levels of a %s', algorithm => {
  it('levels are identified by their period: a remaining one continues', () => {
    const key = keyOf({ algorithm, limit: ['5/m', '10/d'] })
    key.take(2, now - HOUR)
    key.take(1, now)
    key.change({ algorithm, limit: '10/d' }, now)
    expect(key.remaining(now)).toEqual([7])
    key.change({ algorithm, limit: '20/d' }, now)
    expect(key.remaining(now)).toEqual([17])
  })

  it('levels may change their order', () => {
    const key = keyOf({ algorithm, limit: ['5/m', '10/d'] })
    key.take(2, now - HOUR)
    key.take(1, now)
    const [minute, day] = key.remaining(now)
    key.change({ algorithm, limit: ['10/d', '5/m'] }, now)
    expect(key.remaining(now)).toEqual([day, minute])
  })

  it('a new level starts with the count of the next longer one', () => {
    const key = keyOf({ algorithm, limit: ['50/d', '50/30d'] })
    key.take(3, now - 10 * SECOND)
    key.change({ algorithm, limit: ['9/h', '50/d', '50/30d'] }, now)
    expect(key.remaining(now)).toEqual([6, 47, 47])
  })

  it('a new longest level starts with the count of the longest one', () => {
    const key = keyOf({ algorithm, limit: ['50/s', '50/m'] })
    key.take(3, now)
    key.change({ algorithm, limit: '50/d' }, now)
    expect(key.remaining(now)).toEqual([47])
  })
})

describe('a custom meter', () => {
  const counter = (parts: Partial<Meter>): Meter => ({
    slots: 1,
    maxWaitUs: 0,
    delay: () => 0,
    take: (state, at, _now, cost) => {
      state[at] = state[at]! + cost
    },
    refund: () => {},
    remaining: (state, at) => 100 - state[at]!,
    idleAt: () => Number.POSITIVE_INFINITY,
    ...parts,
  })
  const inherited = (before: Meter, after: Meter): number[] => [
    ...inheritStates(new Float64Array([7]), 1, layOut([before]), layOut([after]), now),
  ]

  const scaled = (...scale: number[]): Meter => counter({ migrate: { scale, inherit: () => {} } })

  it('a meter without inherit starts from zero after a change of its limit', () => {
    expect(inherited(counter({}), counter({}))).toEqual([0])
    expect(isSameLayout(layOut([counter({})]), layOut([counter({})]))).toBe(false)
  })

  it('a custom meter keeps its numbers if its scale is the same', () => {
    expect(inherited(scaled(1, 5), scaled(1, 5))).toEqual([7])
  })

  it('a custom meter gets the old numbers and their scale', () => {
    const after = counter({
      migrate: {
        scale: [1, 3],
        inherit: (old, [, oldUnit = 0], state, at) => {
          state[at] = (old[0]! / oldUnit) * 3
        },
      },
    })
    expect(inherited(scaled(1, 7), after)).toEqual([3])
  })

  it('a custom meter is not asked to inherit keys never seen', () => {
    const after = counter({
      migrate: {
        scale: [1],
        inherit: () => {
          throw new Error('asked')
        },
      },
    })
    const states = inheritStates(new Float64Array(3), 3, layOut([counter({})]), layOut([after]), now)
    expect([...states]).toEqual([0, 0, 0])
  })
})
