import type { Timeline } from '../timeline.ts'

const NEVER = Number.POSITIVE_INFINITY

/** Calls against windows: boundaries, waits and every kind of cost. */
export const windowTimelines: readonly Timeline[] = [
  {
    title: 'resilience4j: 5/s, twenty reserve at 300 ms with 2.5 s of patience',
    rule: { algorithm: 'fixed-window', limit: '5/s', whenFull: 'wait', queue: { timeout: '2500ms' } },
    rows: [
      { at: 300, times: 5, expected: 'pass' },
      { at: 300, times: 5, expected: 700 },
      { at: 300, times: 5, expected: 1700 },
      { at: 300, times: 5, expected: 'refuse', retryAfterMs: 200 },
      { at: 499, expected: 'refuse', retryAfterMs: 1 },
      { at: 500, expected: 2500 },
      { at: 1000, times: 4, expected: 2000 },
      { at: 1000, expected: 'refuse', retryAfterMs: 500 },
    ],
  },
  {
    title: 'resilience4j: 5/s, seven on each side of an edge: ten pass within a millisecond',
    rule: { algorithm: 'fixed-window', limit: '5/s' },
    rows: [
      { at: 999, times: 5, expected: 'pass' },
      { at: 999, times: 2, expected: 'refuse', retryAfterMs: 1, resetAfterMs: 1 },
      { at: 1000, times: 5, expected: 'pass' },
      { at: 1000, times: 2, expected: 'refuse', retryAfterMs: 1000, resetAfterMs: 1000 },
    ],
  },
  {
    title: 'a fixed window lets 200 through in 20 ms at its edge',
    rule: { algorithm: 'fixed-window', limit: '100/s' },
    rows: [
      { at: 990, times: 50, expected: 'pass' },
      { at: 999, times: 50, expected: 'pass' },
      { at: 999, expected: 'refuse' },
      { at: 1000, times: 50, expected: 'pass' },
      { at: 1009, times: 50, expected: 'pass' },
      { at: 1009, expected: 'refuse' },
    ],
  },
  ...['sliding-window', 'sliding-log'].map(
    (algorithm): Timeline => ({
      title: `${algorithm} refuses the second hundred of 200 in 20 ms`,
      rule: { algorithm, limit: '100/s' },
      rows: [
        { at: 990, times: 100, expected: 'pass' },
        { at: 999, expected: 'refuse', retryAfterMs: 991 },
        { at: 1000, times: 100, expected: 'refuse', retryAfterMs: 990 },
        { at: 1989, expected: 'refuse', remaining: 0, retryAfterMs: 1, resetAfterMs: 1 },
        { at: 1990, times: 100, expected: 'pass' },
        { at: 1990, expected: 'refuse' },
      ],
    }),
  ),
  ...['sliding-window', 'sliding-log'].map(
    (algorithm): Timeline => ({
      title: `${algorithm}: 100/s with 20/100ms lets a burst through in slices`,
      rule: { algorithm, limit: ['100/s', '20/100ms'] },
      rows: [
        ...[0, 100, 200, 300, 400].flatMap((at): Timeline['rows'] => [
          { at, times: 20, expected: 'pass' },
          { at, times: 5, expected: 'refuse', remaining: 0, retryAfterMs: at === 400 ? 600 : 100 },
        ]),
        { at: 500, expected: 'refuse', retryAfterMs: 500 },
        { at: 999, expected: 'refuse', retryAfterMs: 1 },
        { at: 1000, times: 20, expected: 'pass' },
        { at: 1000, expected: 'refuse', retryAfterMs: 100 },
      ],
    }),
  ),
  ...['21/s', '20/s', '1000/s'].map(
    (limit): Timeline => ({
      title: `after a burst of ${limit} the next passes exactly one period later`,
      rule: { limit },
      rows: [
        { at: 123, times: Number.parseInt(limit, 10), expected: 'pass', resetAfterMs: 1000 },
        { at: 123, expected: 'refuse', remaining: 0, retryAfterMs: 1000 },
        { at: 1122.999, expected: 'refuse', remaining: 0, retryAfterMs: 0.001 },
        { at: 1123, times: Number.parseInt(limit, 10), expected: 'pass' },
        { at: 1123, expected: 'refuse', retryAfterMs: 1000 },
      ],
    }),
  ),
  ...['fixed-window', 'sliding-window', 'sliding-log'].map(
    (algorithm): Timeline => ({
      title: `${algorithm}: costs of all sizes against 30/s`,
      rule: { algorithm, limit: '30/s' },
      rows: [
        { at: 0, cost: 0, expected: 'pass', remaining: 30 },
        { at: 0, cost: 31, expected: 'refuse', remaining: 30, retryAfterMs: NEVER },
        { at: 0, cost: 1, expected: 'pass', remaining: 29, resetAfterMs: 1000 },
        { at: 0, cost: 20, expected: 'pass', remaining: 9 },
        { at: 0, cost: 10, expected: 'refuse', remaining: 9, retryAfterMs: 1000 },
        { at: 0, cost: 9, expected: 'pass', remaining: 0 },
        { at: 0, cost: 0, expected: 'pass', remaining: 0, retryAfterMs: 0 },
        { at: 999.999, cost: 1, expected: 'refuse', remaining: 0, retryAfterMs: 0.001 },
        { at: 1000, cost: 30, expected: 'pass', remaining: 0 },
        { at: 90 * 86_400_000, cost: 30, expected: 'pass', remaining: 0, resetAfterMs: 1000 },
      ],
    }),
  ),
  ...['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket'].map(
    (algorithm): Timeline => ({
      title: `${algorithm}: a limit of 0 refuses every call`,
      rule: { algorithm, limit: '0/s' },
      rows: [
        { at: 0, expected: 'refuse', remaining: 0, retryAfterMs: NEVER },
        { at: 5000, expected: 'refuse', remaining: 0, retryAfterMs: NEVER },
        { at: 5000, cost: 0, expected: 'pass', remaining: 0 },
      ],
    }),
  ),
  {
    title: 'a window aligned to the first call begins with it, and again after a silence',
    rule: { algorithm: 'fixed-window', align: 'first-call', limit: '2/s' },
    rows: [
      { at: 700, expected: 'pass', remaining: 1, resetAfterMs: 1000 },
      { at: 1699.999, expected: 'pass', remaining: 0, resetAfterMs: 0.001 },
      { at: 1699.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1700, times: 2, expected: 'pass', resetAfterMs: 1000 },
      { at: 2000, expected: 'refuse', retryAfterMs: 700 },
      { at: 9150, times: 2, expected: 'pass', resetAfterMs: 1000 },
      { at: 10_149, expected: 'refuse', retryAfterMs: 1 },
      { at: 10_150, expected: 'pass' },
    ],
  },
  {
    title: 'windows aligned to the clock begin at whole periods',
    rule: { algorithm: 'fixed-window', limit: '2/s' },
    rows: [
      { at: 700, expected: 'pass', remaining: 1, resetAfterMs: 300 },
      { at: 999.999, expected: 'pass', remaining: 0, resetAfterMs: 0.001 },
      { at: 999.999, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1000, times: 2, expected: 'pass', resetAfterMs: 1000 },
      { at: 1500, expected: 'refuse', retryAfterMs: 500 },
    ],
  },
  {
    title: 'calls that wait for a sliding window pass one by one as it moves on',
    rule: { algorithm: 'sliding-log', limit: '3/s', whenFull: 'wait', queue: { timeout: '1500ms' } },
    rows: [
      { at: 0, expected: 'pass' },
      { at: 200, expected: 'pass' },
      { at: 400, expected: 'pass' },
      { at: 500, expected: 500 },
      { at: 500, cost: 2, expected: 900 },
      { at: 500, expected: 1500 },
      { at: 500, expected: 'refuse', retryAfterMs: 400 },
      { at: 900, expected: 1500 },
    ],
  },
]
