import type { Row, Timeline } from '../timeline.ts'

/** Calls at one moment that are let through one after the other, `everyMs` apart. */
function queued(at: number, count: number, everyMs: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({ at, expected: (i + 1) * everyMs }))
}

/** The answers of nginx's limit_req, rate for rate and burst for burst. */
export const nginxTimelines: readonly Timeline[] = [
  {
    title: 'nginx: rate=10r/s',
    rule: { algorithm: 'leaky-bucket', limit: '10/s' },
    rows: [
      { at: 0, expected: 'pass', remaining: 0, retryAfterMs: 0, resetAfterMs: 100 },
      { at: 0, times: 2, expected: 'refuse', remaining: 0, retryAfterMs: 100, resetAfterMs: 100 },
      { at: 50, expected: 'refuse', retryAfterMs: 50, resetAfterMs: 50 },
      { at: 100, expected: 'pass' },
      { at: 150, expected: 'refuse' },
      { at: 200, expected: 'pass' },
    ],
  },
  {
    title: 'nginx: rate=10r/s burst=20',
    rule: { algorithm: 'leaky-bucket', limit: '10/s', burst: 20, whenFull: 'wait' },
    rows: [
      { at: 0, expected: 'pass' },
      ...queued(0, 20, 100),
      { at: 0, times: 4, expected: 'refuse', retryAfterMs: 100 },
      { at: 99, expected: 'refuse', retryAfterMs: 1 },
      { at: 100, expected: 2000 },
      { at: 100, expected: 'refuse' },
    ],
  },
  {
    title: 'nginx: rate=10r/s burst=20 nodelay',
    rule: { algorithm: 'leaky-bucket', limit: '10/s', burst: 20 },
    rows: [
      { at: 0, times: 21, expected: 'pass' },
      { at: 0, times: 4, expected: 'refuse', remaining: 0, retryAfterMs: 100 },
      { at: 100, expected: 'pass' },
      { at: 100, expected: 'refuse' },
      { at: 2200, times: 21, expected: 'pass' },
      { at: 2200, expected: 'refuse' },
    ],
  },
  {
    title: 'nginx: rate=5r/s burst=12 delay=8',
    rule: { algorithm: 'leaky-bucket', limit: '5/s', burst: 12, delay: 8, whenFull: 'wait' },
    rows: [
      { at: 0, times: 9, expected: 'pass' },
      ...queued(0, 4, 200),
      { at: 0, times: 2, expected: 'refuse', retryAfterMs: 200 },
      { at: 200, expected: 800 },
      { at: 2600, times: 8, expected: 'pass' },
      { at: 2600, expected: 200 },
      { at: 4600, times: 9, expected: 'pass' },
    ],
  },
  {
    title: 'nginx: rate=10r/m, ten at once: one passes',
    rule: { algorithm: 'leaky-bucket', limit: '10/m' },
    rows: [
      { at: 0, expected: 'pass' },
      { at: 0, times: 9, expected: 'refuse', retryAfterMs: 6000 },
      { at: 5999, expected: 'refuse', retryAfterMs: 1 },
      { at: 6000, expected: 'pass' },
    ],
  },
  {
    title: 'nginx: rate=10r/m burst=5, ten at once: one passes, five are queued, four refused',
    rule: { algorithm: 'leaky-bucket', limit: '10/m', burst: 5, whenFull: 'wait' },
    rows: [
      { at: 0, expected: 'pass' },
      ...queued(0, 5, 6000),
      { at: 0, times: 4, expected: 'refuse', retryAfterMs: 6000 },
      { at: 6000, expected: 30_000 },
      { at: 6000, expected: 'refuse', retryAfterMs: 6000 },
    ],
  },
  {
    title: 'nginx: rate=10r/m burst=5 nodelay, ten at once: six pass, four are refused',
    rule: { algorithm: 'leaky-bucket', limit: '10/m', burst: 5 },
    rows: [
      { at: 0, times: 6, expected: 'pass' },
      { at: 0, times: 4, expected: 'refuse', retryAfterMs: 6000 },
      { at: 1000, times: 10, expected: 'refuse', retryAfterMs: 5000 },
      { at: 6000, expected: 'pass' },
      { at: 6000, times: 9, expected: 'refuse' },
      { at: 42_000, times: 6, expected: 'pass' },
      { at: 42_000, expected: 'refuse' },
    ],
  },
  {
    title: 'nginx: rate=6r/m, callers drip apart',
    rule: { algorithm: 'leaky-bucket', limit: '6/m' },
    rows: [
      { at: 0, key: '1', expected: 'pass' },
      { at: 100, key: '1', expected: 'refuse', retryAfterMs: 9900 },
      { at: 100, key: '2', expected: 'pass' },
      { at: 9999, key: '1', expected: 'refuse', retryAfterMs: 1 },
      { at: 10_000, key: '1', expected: 'pass' },
      { at: 10_000, key: '2', expected: 'refuse', retryAfterMs: 100 },
    ],
  },
  {
    title: 'a heavy call waits as long as the calls it stands for, and holds back the next no longer',
    rule: { algorithm: 'leaky-bucket', limit: '10/s', burst: 5, whenFull: 'wait' },
    rows: [
      { at: 0, cost: 3, expected: 200 },
      { at: 0, cost: 1, expected: 300 },
      { at: 0, cost: 3, expected: 'refuse', retryAfterMs: 100 },
      { at: 0, cost: 7, expected: 'refuse', retryAfterMs: Number.POSITIVE_INFINITY },
      { at: 1000, cost: 6, expected: 500 },
      { at: 1500, cost: 6, expected: 'refuse', retryAfterMs: 100 },
      { at: 1600, cost: 6, expected: 500 },
    ],
  },
]
