import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CallerSketches } from './caller-usage.ts'
import { mergeCallers } from './merge-callers.ts'

const start = Date.UTC(2026, 0, 1)

describe('what callers did lately', () => {
  it('calls and refusals are exact while there is room, and separate by rule', () => {
    const callers = new CallerSketches()
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) callers.addCall('one', ['ip'], key, start)
    callers.addRefusal('one', ['ip'], 'c', start + 1)
    callers.addCall('two', ['account'], 'a', start + 2)
    const shown = callers.read({ count: 9, rule: 'one' }, start + 5)
    expect(shown.map(({ key, calls, refused, missed }) => [key, calls, refused, missed])).toEqual([
      ['c', 1, 1, 0],
      ['a', 3, 0, 0],
      ['b', 2, 0, 0],
    ])
    expect(callers.read({ count: 9, sort: 'calls' }, start).map(({ rule, key }) => `${rule} ${key}`)).toEqual([
      ...['one a', 'one b', 'one c', 'two a'],
    ])
    expect(callers.read({ count: 9, refused: true }, start).map(({ key }) => key)).toEqual(['c'])
    expect(callers.read({ count: 9, wants: key => key === 'b' }, start).map(({ key }) => key)).toEqual(['b'])
  })

  it('calls older than ten minutes are forgotten, and the caller has a first and a last moment', () => {
    const callers = new CallerSketches()
    callers.addCall('one', [], 'a', start)
    for (let second = 0; second < 1200; second++) callers.addCall('one', [], 'a', start + second * 1000)
    const [a] = callers.read({ count: 1 }, start + 1_199_000)
    expect(a).toMatchObject({ firstAt: start, lastAt: start + 1_199_000 })
    // steps of 20 s: ten minutes and the step that has begun
    expect(a!.calls).toBe(600)
    expect(a!.timeline.calls).toEqual(Array(30).fill(20))
    expect(callers.read({ count: 1 }, start + 1_900_000)).toEqual([])
  })

  it('a caller refused a few times does not rank above one that was certainly refused more often', () => {
    const callers = new CallerSketches(4)
    for (let i = 0; i < 59; i++) for (const key of ['a', 'b', 'c', 'd']) callers.addRefusal('one', [], key, start)
    for (let i = 0; i < 3; i++) callers.addRefusal('one', [], 'late', start)
    const shown = callers.read({ count: 9 }, start)
    expect(shown.map(({ refused }) => refused)).toEqual([59, 59, 59, 3])
    expect(shown.at(-1)!.missed).toBe(118)
  })

  it('no caller has more calls than were seen and missed, and no frequent caller is missing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ key: fc.nat(30), wait: fc.nat(20_000) }), { maxLength: 300 }),
        fc.integer({ min: 4, max: 8 }),
        (steps, room) => {
          const callers = new CallerSketches(room)
          const truth: { key: string; at: number }[] = []
          let at = start
          for (const { key, wait } of steps) {
            at += wait
            callers.addCall('rule', [], String(key), at)
            truth.push({ key: String(key), at })
          }
          const from = Math.floor(at / 20_000) * 20_000 - 29 * 20_000
          const recent = truth.filter(one => one.at >= from)
          const shown = callers.read({ count: 100 }, at)
          expect(shown.length).toBeLessThanOrEqual(room)
          for (const { key, calls, missed } of shown) {
            const real = recent.filter(one => one.key === key).length
            expect(calls).toBeLessThanOrEqual(real)
            expect(calls + missed).toBeGreaterThanOrEqual(real)
          }
        },
      ),
    )
  })

  it('the memory is bounded by the number of callers, however many rules there are', () => {
    const callers = new CallerSketches(100)
    for (let rule = 0; rule < 20; rule++) {
      for (let key = 0; key < 50; key++) callers.addCall(`rule-${rule}`, [], `k${key}`, start)
    }
    // rules that came early shrink when they are called again
    for (let rule = 0; rule < 20; rule++) callers.addCall(`rule-${rule}`, [], 'new', start)
    expect(callers.read({ count: 10_000 }, start).length).toBeLessThanOrEqual(100)
    callers.retain(new Set(['rule-3']))
    expect(new Set(callers.read({ count: 10_000 }, start).map(({ rule }) => rule))).toEqual(new Set(['rule-3']))
  })

  it('scores stay finite for years', () => {
    const callers = new CallerSketches(4)
    for (let day = 0; day < 2000; day++) callers.addCall('one', [], `k${day % 7}`, start + day * 86_400_000)
    const [last] = callers.read({ count: 1 }, start + 1999 * 86_400_000)
    expect(last).toMatchObject({ calls: 1, key: `k${1999 % 7}` })
    expect(Number.isFinite(last!.missed)).toBe(true)
  })

  it('the callers of several processes add up', () => {
    const [one, other] = [new CallerSketches(), new CallerSketches()]
    one.addRefusal('rule', [], 'a', start)
    other.addRefusal('rule', [], 'a', start + 7)
    other.addCall('rule', [], 'b', start + 2)
    const merged = mergeCallers([one.read({ count: 5 }, start + 9), other.read({ count: 5 }, start + 9)], { count: 1 })
    expect(merged).toMatchObject([{ key: 'a', refused: 2, missed: 0, firstAt: start, lastAt: start + 7 }])
    expect(merged[0]!.timeline.refused.at(-1)).toBe(2)
  })
})
