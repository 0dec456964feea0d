import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SecondCounts } from './count-deltas.ts'
import { chooseLevel, readRange, stepsOf } from './read-range.ts'
import { StepHistory } from './step-history.ts'

const counts = (allowed: number, refused = 0): SecondCounts => ({ allowed, refused, waited: 0, shadowRefused: 0 })
const allowedOf = (series: readonly (SecondCounts | null)[]) => series.map(one => one?.allowed ?? null)

describe('a history in steps', () => {
  it('a history in steps adds up what is counted in one step, and knows nothing of others', () => {
    const history = new StepHistory({ stepMs: 10, frames: 5 })
    history.add(12, [['', counts(1)]])
    history.add(19, [
      ['', counts(2)],
      ['a', counts(2, 3)],
    ])
    history.add(30, [['', counts(4)]])
    expect(allowedOf(history.series('', 0, 40))).toEqual([null, 3, null, 4])
    expect(history.series('a', 10, 20)).toEqual([counts(2, 3)])
    expect(history.series('a', 30, 40)).toEqual([counts(0)])
    expect([...history.sums(0, 40)]).toEqual([
      ['', counts(7)],
      ['a', counts(2, 3)],
    ])
  })

  it('a history in steps forgets what is older than its length', () => {
    const history = new StepHistory({ stepMs: 10, frames: 3 })
    for (let at = 0; at < 100; at += 10) history.add(at, [['', counts(at)]])
    expect(allowedOf(history.series('', 50, 100))).toEqual([null, null, 70, 80, 90])
  })

  it('a clock that is set back adds to the step that it is in again', () => {
    const history = new StepHistory({ stepMs: 10, frames: 3 })
    history.add(10, [['', counts(1)]])
    history.add(20, [['', counts(5)]])
    history.add(11, [['', counts(2)]])
    history.add(25, [['', counts(1)]])
    expect(allowedOf(history.series('', 10, 30))).toEqual([3, 6])
  })

  it('a history in steps keeps the row of all calls and the busiest others, and numbers beyond 32 bits', () => {
    const history = new StepHistory({ stepMs: 10, frames: 3, maxRows: 3 })
    history.add(0, [
      ['', counts(0)],
      ['small', counts(1)],
      ['large', counts(2 ** 40)],
      ['middle', counts(7)],
    ])
    history.add(10, [])
    expect([...history.sums(0, 10)].map(([name, { allowed }]) => [name, allowed])).toEqual([
      ['', 0],
      ['large', 2 ** 40],
      ['middle', 7],
    ])
  })

  it('a history in steps drops its oldest steps if it has too many rows', () => {
    const history = new StepHistory({ stepMs: 10, frames: 10, maxTotalRows: 6 })
    for (let at = 0; at < 60; at += 10)
      history.add(
        at,
        ['', 'a', 'b'].map(name => [name, counts(1)] as const),
      )
    expect(allowedOf(history.series('', 0, 60))).toEqual([null, null, null, 1, 1, 1])
  })

  it('a history in steps is what a list of all that was counted says, whatever the order and the gaps', () => {
    const added = fc.record({ at: fc.nat(400), name: fc.constantFrom('', 'a', 'b'), allowed: fc.nat(5) })
    fc.assert(
      fc.property(fc.array(added, { maxLength: 60 }), fc.nat(400), fc.nat(400), (list, one, other) => {
        const history = new StepHistory({ stepMs: 7, frames: 100 })
        for (const { at, name, allowed } of list) history.add(at, [[name, counts(allowed)]])
        const [from, to] = [Math.floor(Math.min(one, other) / 7) * 7, Math.ceil(Math.max(one, other) / 7) * 7]
        for (const name of ['', 'a', 'b']) {
          const expected: (number | null)[] = []
          for (let at = from; at < to; at += 7) {
            const inStep = list.filter(call => call.at >= at && call.at < at + 7)
            const own = inStep.filter(call => call.name === name)
            expected.push(inStep.length === 0 ? null : own.reduce((sum, { allowed }) => sum + allowed, 0))
          }
          expect(allowedOf(history.series(name, from, to))).toEqual(expected)
          const sum = expected.reduce<number>((total, count) => total + (count ?? 0), 0)
          expect(history.sums(from, to).get(name)?.allowed ?? 0).toBe(sum)
        }
      }),
    )
  })
})

describe('the steps of a range', () => {
  const levels = [
    { stepMs: 1000, frames: 600 },
    { stepMs: 5000, frames: 1440 },
    { stepMs: 300_000, frames: 576 },
    { stepMs: 1_800_000, frames: 672 },
  ]
  const hour = 3_600_000
  it.each([
    ['five minutes', { lengthMs: 300_000 }, 1000, 300],
    ['an hour', { lengthMs: hour }, 10_000, 360],
    ['a day', { lengthMs: 24 * hour }, 300_000, 288],
    ['a week', { lengthMs: 168 * hour }, 1_800_000, 336],
    ['five minutes of yesterday', { lengthMs: 300_000, to: 976 * hour }, 300_000, 1],
    ['an hour of last week', { lengthMs: hour, to: 800 * hour }, 1_800_000, 2],
  ])('%s is shown in steps of a fitting length', (_, query, stepMs, count) => {
    const now = 1000 * hour + 1234
    const level = chooseLevel(levels, query, now)
    const steps = stepsOf(level, query, now)
    expect([steps.stepMs, (steps.to - steps.from) / steps.stepMs]).toEqual([stepMs, count])
    expect([steps.to % stepMs, steps.to <= now]).toEqual([0, true])
  })

  it('a range has whole steps of the same length before it, and leaves out the step that is under way', () => {
    const history = new StepHistory({ stepMs: 10, frames: 100 })
    for (let at = 0; at < 95; at++) history.add(at, [['', counts(1)]])
    const range = readRange(history, stepsOf(history, { lengthMs: 40 }, 94))
    expect([range.from, range.to, range.series.allowed, range.before.allowed]).toEqual([
      50,
      90,
      [10, 10, 10, 10],
      [10, 10, 10, 10],
    ])
  })
})
