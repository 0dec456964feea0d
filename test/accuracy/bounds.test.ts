import { describe, expect, test } from 'vitest'
import { overAtOnce, overBucket, overInAnyWindow, overPerWindow } from './bounds.mjs'

/** Calls judged at known moments. */
const at = (...moments: number[]) => moments.map(moment => ({ earliest: moment, latest: moment }))
/** Calls judged at some moment of a span. */
const within = (...spans: [number, number][]) => spans.map(([earliest, latest]) => ({ earliest, latest }))

describe('a window of the clock, 2 per 10', () => {
  const limit = { count: 2, periodUs: 10 }

  test.each([
    ['two full windows that meet at an edge', at(8, 9, 10, 11), 0],
    ['one call too many', at(8, 9, 9), 1],
    ['the worst window', at(1, 2, 3, 10, 11, 12, 13), 2],
    ['nothing', [], 0],
    ['a call at the edge goes where there is room', within([0, 0], [1, 1], [9, 10], [11, 11]), 0],
    ['at the edge, but both windows are full', within([0, 0], [1, 1], [9, 10], [11, 11], [12, 12]), 1],
    ['two at the edge, one place on either side', within([0, 0], [9, 10], [9, 10], [11, 11]), 0],
  ])('calls over the limit of a window of the clock are counted: %s', (_, calls, over) => {
    expect(overPerWindow(calls, limit)).toBe(over)
  })
})

describe('any window, 2 per 10', () => {
  const limit = { count: 2, periodUs: 10 }

  test.each([
    ['a call passes as one leaves', at(0, 9, 10, 19, 20), 0],
    ['across an edge of the clock', at(8, 9, 10), 1],
    ['a microsecond too early', at(0, 5, 9), 1],
    ['the worst interval', at(0, 5, 9, 100, 101, 102, 103), 2],
    ['in any order', at(9, 0, 5), 1],
    ['it may have been late enough', within([0, 1], [5, 5], [9, 10]), 0],
    ['it cannot have been late enough', within([0, 1], [5, 5], [8, 9]), 1],
  ])('calls over the limit of any window are counted: %s', (_, calls, over) => {
    expect(overInAnyWindow(calls, limit)).toBe(over)
  })
})

describe('a bucket of 3 that refills 1 per 10', () => {
  const limit = { count: 1, periodUs: 10, burst: 3 }

  test.each([
    ['the burst, then the rate', at(1e15, 1e15, 1e15, 1e15 + 10, 1e15 + 20), 0],
    ['more than the burst', at(0, 0, 0, 0), 1],
    ['too soon', at(0, 0, 0, 9), 1],
    ['a rate that is too high, slowly', at(...Array.from({ length: 100 }, (_, i) => i * 9)), 8],
    ['a burst after a silence', at(0, 1000, 1000, 1000, 1010), 0],
    ['it may have been late enough', within([0, 0], [0, 0], [0, 0], [9, 10]), 0],
  ])('calls over the limit of a bucket are counted: %s', (_, calls, over) => {
    expect(overBucket(calls, limit)).toBe(over)
  })
})

describe('2 at one time', () => {
  test.each([
    [
      'one ends as another begins',
      [
        [0, 5],
        [0, 9],
        [5, 9],
      ],
      0,
    ],
    [
      'three at once',
      [
        [0, 5],
        [0, 9],
        [4, 9],
      ],
      1,
    ],
    [
      'one that ended before it surely began',
      [
        [0, 5],
        [0, 9],
        [4, 3],
      ],
      0,
    ],
  ])('calls over the limit of a limit on calls at one time are counted: %s', (_, stays, over) => {
    expect(
      overAtOnce(
        stays.map(([from, to]) => ({ from: from!, to: to! })),
        { count: 2 },
      ),
    ).toBe(over)
  })
})
