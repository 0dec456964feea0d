import type { Row, Timeline, TimelineRule } from '../timeline.ts'

/** CL.THROTTLE key 15 30 60: sixteen at once, then one every two seconds. */
const throttled: TimelineRule = { algorithm: 'token-bucket', limit: '30/m', burst: 16 }

const sixteen = Array.from({ length: 16 }, (_, i): Row => {
  return { at: 0, expected: 'pass', remaining: 15 - i, retryAfterMs: 0, resetAfterMs: (i + 1) * 2000 }
})

/** The answers of redis-cell's CL.THROTTLE, before it rounds to seconds. */
export const gcraTimelines: readonly Timeline[] = [
  {
    title: 'GCRA: sixteen at once, then one every two seconds',
    rule: throttled,
    rows: [
      ...sixteen,
      { at: 0, expected: 'refuse', remaining: 0, retryAfterMs: 2000, resetAfterMs: 32_000 },
      { at: 1999, expected: 'refuse', remaining: 0, retryAfterMs: 1, resetAfterMs: 30_001 },
      { at: 2000, expected: 'pass', remaining: 0, retryAfterMs: 0, resetAfterMs: 32_000 },
      { at: 2000, cost: 2, expected: 'refuse', remaining: 0, retryAfterMs: 4000, resetAfterMs: 32_000 },
      { at: 34_000, cost: 0, expected: 'pass', remaining: 16, resetAfterMs: 0 },
      { at: 34_000, cost: 16, expected: 'pass', remaining: 0, resetAfterMs: 32_000 },
    ],
  },
  {
    title: 'GCRA: quantity 0 looks',
    rule: throttled,
    rows: [
      { at: 0, cost: 0, times: 3, expected: 'pass', remaining: 16, retryAfterMs: 0, resetAfterMs: 0 },
      { at: 0, cost: 16, expected: 'pass', remaining: 0, resetAfterMs: 32_000 },
      { at: 0, cost: 0, times: 3, expected: 'pass', remaining: 0, retryAfterMs: 0, resetAfterMs: 32_000 },
    ],
  },
  {
    title: 'GCRA: a cost above the capacity is always refused, and costs nothing',
    rule: throttled,
    rows: [
      {
        at: 0,
        cost: 17,
        expected: 'refuse',
        remaining: 16,
        retryAfterMs: Number.POSITIVE_INFINITY,
        resetAfterMs: 0,
      },
      { at: 0, cost: 10, expected: 'pass', remaining: 6 },
      { at: 0, cost: 7, expected: 'refuse', remaining: 6, retryAfterMs: 2000, resetAfterMs: 20_000 },
      { at: 0, cost: 6, expected: 'pass', remaining: 0 },
      { at: 1_000_000_000, cost: 17, expected: 'refuse', remaining: 16, resetAfterMs: 0 },
    ],
  },
]
