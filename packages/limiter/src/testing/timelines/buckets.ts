import type { Timeline } from '../timeline.ts'

/** Token buckets: fractions, large costs, empty starts, and calls that wait. */
export const bucketTimelines: readonly Timeline[] = [
  {
    title: 'a token bucket serves a burst, then its rate',
    rule: { algorithm: 'token-bucket', limit: '10/s', burst: 3 },
    rows: [
      { at: 0, times: 3, expected: 'pass' },
      { at: 0, expected: 'refuse', remaining: 0, retryAfterMs: 100, resetAfterMs: 300 },
      { at: 99.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 100, expected: 'pass' },
      { at: 250, expected: 'pass' },
      { at: 250, expected: 'refuse', retryAfterMs: 50 },
      { at: 300, expected: 'pass' },
      { at: 86_400_000, cost: 3, expected: 'pass', remaining: 0 },
      { at: 86_400_000, expected: 'refuse', retryAfterMs: 100 },
    ],
  },
  {
    title: 'the bucket holds the count of the limit where no burst is given',
    rule: { algorithm: 'token-bucket', limit: '5/s' },
    rows: [
      { at: 0, cost: 6, expected: 'refuse', remaining: 5, retryAfterMs: Number.POSITIVE_INFINITY },
      { at: 0, cost: 5, expected: 'pass', remaining: 0 },
      { at: 600, cost: 3, expected: 'pass', remaining: 0 },
      { at: 600, cost: 1, expected: 'refuse', retryAfterMs: 200 },
    ],
  },
  {
    title: 'a bucket that starts empty lets the first call through, and nothing on top of it',
    rule: { algorithm: 'token-bucket', limit: '10/s', burst: 5, start: 'empty' },
    rows: [
      { at: 0, expected: 'pass', remaining: 0 },
      { at: 0, expected: 'refuse', retryAfterMs: 100 },
      { at: 100, expected: 'pass', remaining: 0 },
      { at: 400, cost: 3, expected: 'pass', remaining: 0 },
      { at: 900, cost: 5, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'calls that wait for tokens pass in the order they came, whatever they cost',
    rule: { algorithm: 'token-bucket', limit: '10/s', burst: 4, whenFull: 'wait', queue: { timeout: '500ms' } },
    rows: [
      { at: 0, cost: 3, expected: 'pass', remaining: 1 },
      { at: 0, cost: 4, expected: 300 },
      { at: 0, cost: 1, expected: 400 },
      { at: 0, cost: 2, expected: 'refuse', retryAfterMs: 100 },
      { at: 0, cost: 1, expected: 500 },
      { at: 0, cost: 1, expected: 'refuse', retryAfterMs: 100 },
      { at: 100, cost: 1, expected: 500 },
    ],
  },
]
