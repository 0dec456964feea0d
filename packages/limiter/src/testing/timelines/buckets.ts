import type { Timeline } from '../timeline.ts'

/** Token buckets: fractions, large costs, empty starts, refills by intervals, and calls that wait. */
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
    title: 'a token bucket that starts empty admits none at first, and then as many as time has brought',
    rule: { algorithm: 'token-bucket', limit: '10/s', burst: 5, start: 'empty' },
    rows: [
      { at: 0, expected: 'refuse', remaining: 0, retryAfterMs: 100, resetAfterMs: 500 },
      { at: 0, cost: 3, expected: 'refuse', retryAfterMs: 300 },
      { at: 0, cost: 6, expected: 'refuse', retryAfterMs: Number.POSITIVE_INFINITY },
      { at: 99.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 100, expected: 'pass', remaining: 0 },
      { at: 100, expected: 'refuse', retryAfterMs: 100 },
      { at: 400, cost: 3, expected: 'pass', remaining: 0 },
      { at: 400, key: 'another', expected: 'refuse', retryAfterMs: 100 },
      { at: 900, cost: 5, expected: 'pass', remaining: 0 },
      { at: 1_800_000, cost: 5, expected: 'pass', remaining: 0 },
      // an hour after the bucket is full again the caller is new
      { at: 5_400_499.999, cost: 0, expected: 'pass', remaining: 5 },
      { at: 5_400_500, expected: 'refuse', remaining: 0, retryAfterMs: 100 },
    ],
  },
  {
    title: 'a token bucket refilled by intervals brings all tokens of a period at once when it ends',
    rule: { algorithm: 'token-bucket', limit: '5/s', refill: 'interval' },
    rows: [
      { at: 0, cost: 6, expected: 'refuse', remaining: 5, retryAfterMs: Number.POSITIVE_INFINITY },
      { at: 200, times: 3, expected: 'pass' },
      { at: 700, cost: 2, expected: 'pass', remaining: 0, resetAfterMs: 500 },
      { at: 700, expected: 'refuse', remaining: 0, retryAfterMs: 500, resetAfterMs: 500 },
      { at: 1199.999, expected: 'refuse', retryAfterMs: 0.001 },
      // full again: the next period begins with the next call
      { at: 1300, cost: 5, expected: 'pass', remaining: 0 },
      { at: 2299.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 2300, cost: 5, expected: 'pass', remaining: 0 },
      { at: 86_400_123, cost: 5, expected: 'pass', remaining: 0 },
      { at: 86_400_124, cost: 5, expected: 'refuse', retryAfterMs: 999 },
    ],
  },
  {
    title: 'an interval refill keeps its periods while the bucket is not full, and adds up to the burst',
    rule: { algorithm: 'token-bucket', limit: '2/s', burst: 5, refill: 'interval' },
    rows: [
      { at: 500, cost: 5, expected: 'pass', remaining: 0, resetAfterMs: 3000 },
      { at: 500, cost: 1, expected: 'refuse', retryAfterMs: 1000 },
      { at: 500, cost: 2, expected: 'refuse', retryAfterMs: 1000 },
      { at: 500, cost: 3, expected: 'refuse', retryAfterMs: 2000 },
      { at: 500, cost: 5, expected: 'refuse', retryAfterMs: 3000 },
      { at: 1600, cost: 1, expected: 'pass', remaining: 1, resetAfterMs: 1900 },
      { at: 2499.999, cost: 2, expected: 'refuse', remaining: 1, retryAfterMs: 0.001 },
      { at: 2500, cost: 3, expected: 'pass', remaining: 0 },
      { at: 4499, cost: 2, expected: 'pass', remaining: 0 },
      { at: 4500, cost: 2, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title:
      'an aligned refill brings the tokens of a period when the clock ends it, and keeps unused ones up to the burst',
    rule: { algorithm: 'token-bucket', limit: '2/s', burst: 5, refill: 'aligned' },
    rows: [
      { at: 500, cost: 0, expected: 'pass', remaining: 5 },
      { at: 500, cost: 6, expected: 'refuse', remaining: 5, retryAfterMs: Number.POSITIVE_INFINITY },
      { at: 500, cost: 5, expected: 'pass', remaining: 0, resetAfterMs: 2500 },
      { at: 500, cost: 1, expected: 'refuse', retryAfterMs: 500 },
      { at: 500, cost: 3, expected: 'refuse', retryAfterMs: 1500 },
      { at: 999.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1000, cost: 2, expected: 'pass', remaining: 0 },
      { at: 1001, expected: 'refuse', retryAfterMs: 999 },
      { at: 3999, cost: 5, expected: 'refuse', remaining: 4, retryAfterMs: 1 },
      { at: 3999, cost: 4, expected: 'pass', remaining: 0 },
      { at: 4000, cost: 2, expected: 'pass', remaining: 0 },
      // full again for long: the next period ends with the clock all the same
      { at: 86_400_700, cost: 5, expected: 'pass', remaining: 0 },
      { at: 86_400_999, expected: 'refuse', retryAfterMs: 1 },
      { at: 86_401_000, cost: 2, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'calls wait for the end of the period of the clock in which an aligned refill brings their tokens',
    rule: {
      ...{ algorithm: 'token-bucket', limit: '3/s', refill: 'aligned' },
      ...{ whenFull: 'wait', queue: { timeout: '1500ms' } },
    },
    rows: [
      { at: 300, cost: 2, expected: 'pass', remaining: 1 },
      { at: 300, cost: 2, expected: 700, remaining: 0 },
      { at: 300, cost: 1, expected: 700, remaining: 0 },
      { at: 300, cost: 1, expected: 'refuse', retryAfterMs: 200 },
      { at: 500, cost: 1, expected: 1500 },
    ],
  },
  {
    title: 'an aligned refill that starts empty brings its first tokens when the period of the first call ends',
    rule: { algorithm: 'token-bucket', limit: '2/s', burst: 3, refill: 'aligned', start: 'empty' },
    rows: [
      { at: 300, cost: 3, expected: 'refuse', remaining: 0, retryAfterMs: 1700, resetAfterMs: 1700 },
      { at: 999.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1000, cost: 2, expected: 'pass', remaining: 0 },
      { at: 2000, cost: 1, expected: 'pass', remaining: 1 },
    ],
  },
  {
    title: 'calls wait for the end of the period in which an interval refill brings their tokens',
    rule: {
      ...{ algorithm: 'token-bucket', limit: '3/s', refill: 'interval' },
      ...{ whenFull: 'wait', queue: { timeout: '1500ms' } },
    },
    rows: [
      { at: 0, cost: 2, expected: 'pass', remaining: 1 },
      { at: 100, cost: 2, expected: 900, remaining: 0 },
      { at: 100, cost: 1, expected: 900, remaining: 0 },
      { at: 100, cost: 1, expected: 'refuse', retryAfterMs: 400 },
      { at: 500, cost: 1, expected: 1500 },
      { at: 900, cost: 2, expected: 1100 },
      { at: 900, cost: 1, expected: 'refuse', retryAfterMs: 600 },
    ],
  },
  {
    title: 'an interval refill that starts empty brings its first tokens a period after the first call',
    rule: { algorithm: 'token-bucket', limit: '2/s', burst: 3, refill: 'interval', start: 'empty' },
    rows: [
      { at: 300, cost: 3, expected: 'refuse', remaining: 0, retryAfterMs: 2000, resetAfterMs: 2000 },
      { at: 1299.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1300, cost: 2, expected: 'pass', remaining: 0 },
      { at: 2300, cost: 1, expected: 'pass', remaining: 1 },
      { at: 3300, cost: 3, expected: 'pass', remaining: 0 },
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
