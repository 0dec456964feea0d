import type { Row, Timeline } from '../timeline.ts'

/** Makes calls every `everyMs`; those at `passing` pass. */
function polled(from: number, to: number, everyMs: number, passing: readonly number[]): Row[] {
  const count = Math.floor((to - from) / everyMs) + 1
  return Array.from({ length: count }, (_, i) => {
    const at = from + i * everyMs
    return { at, expected: passing.includes(at) ? 'pass' : 'refuse' }
  })
}

/** Mistakes that limiters are known for, each with the calls that show it. */
export const faultTimelines: readonly Timeline[] = [
  {
    title: 'the call that opens a window passes and is counted, also at its very first moment',
    rule: { algorithm: 'fixed-window', align: 'first-call', limit: '2/s' },
    rows: [
      { at: 0, expected: 'pass', remaining: 1 },
      { at: 0, expected: 'pass', remaining: 0 },
      { at: 0, expected: 'refuse' },
      { at: 1000, expected: 'pass', remaining: 1 },
      { at: 1000, expected: 'pass', remaining: 0 },
      { at: 1000, expected: 'refuse' },
    ],
  },
  {
    title: 'a window that was never cleared counts only its own calls',
    rule: { algorithm: 'fixed-window', limit: '2/s' },
    rows: [
      { at: 0, times: 2, expected: 'pass' },
      { at: 1000, times: 2, expected: 'pass' },
      { at: 366 * 86_400_000, times: 2, expected: 'pass', resetAfterMs: 1000 },
      { at: 366 * 86_400_000, expected: 'refuse' },
    ],
  },
  {
    title: 'a bucket leaks under steady traffic',
    rule: { algorithm: 'leaky-bucket', limit: '2/s', burst: 1 },
    rows: polled(0, 2500, 100, [0, 100, 500, 1000, 1500, 2000, 2500]),
  },
  {
    title: 'tokens come within a second, not once a second',
    rule: { algorithm: 'token-bucket', limit: '4/s', burst: 1 },
    rows: polled(0, 1000, 50, [0, 250, 500, 750, 1000]),
  },
  {
    title: 'asking again and again makes no tokens',
    rule: { algorithm: 'token-bucket', limit: '2/s', burst: 2 },
    rows: [{ at: 0, cost: 2, expected: 'pass' }, ...polled(1, 1100, 1, [500, 1000])],
  },
  {
    title: 'fractions of a token are kept however often one asks',
    rule: { algorithm: 'token-bucket', limit: '3/s', burst: 2 },
    rows: [
      { at: 0, expected: 'pass' },
      ...polled(0, 3000, 100, [0, 400, 700, 1000, 1400, 1700, 2000, 2400, 2700, 3000]),
    ],
  },
  {
    title: 'fractions of a drip are kept however often one asks',
    rule: { algorithm: 'leaky-bucket', limit: '3/s', burst: 1 },
    rows: [
      { at: 0, expected: 'pass' },
      ...polled(0, 3000, 100, [0, 400, 700, 1000, 1400, 1700, 2000, 2400, 2700, 3000]),
    ],
  },
  {
    title: 'a slow bucket is not full again after its period',
    rule: { algorithm: 'token-bucket', limit: '1/10s', burst: 10 },
    rows: [
      { at: 0, cost: 10, expected: 'pass', resetAfterMs: 100_000 },
      { at: 11_000, expected: 'pass' },
      { at: 11_000, expected: 'refuse', retryAfterMs: 9000 },
      { at: 99_999, cost: 9, expected: 'refuse', remaining: 8, retryAfterMs: 1 },
      { at: 100_000, cost: 9, expected: 'pass', remaining: 0 },
    ],
  },
  ...['fixed-window', 'sliding-window', 'sliding-log'].map(
    (algorithm): Timeline => ({
      title: `${algorithm} does not count what it refuses`,
      rule: { algorithm, limit: '25/s' },
      rows: [
        { at: 0, times: 25, expected: 'pass' },
        { at: 500, times: 200, expected: 'refuse', retryAfterMs: 500 },
        { at: 1000, times: 25, expected: 'pass' },
      ],
    }),
  ),
  ...['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket'].map(
    (algorithm): Timeline => ({
      title: `${algorithm}: a clock that steps back brings nothing back`,
      rule: algorithm === 'leaky-bucket' ? { algorithm, limit: '25/s', burst: 24 } : { algorithm, limit: '25/s' },
      rows: [
        { at: 10_000, times: 20, expected: 'pass' },
        { at: 9000, times: 5, expected: 'pass' },
        { at: 9000, expected: 'refuse' },
        { at: 1000, expected: 'refuse' },
        { at: 11_000, times: 25, expected: 'pass' },
        { at: 11_000, expected: 'refuse' },
      ],
    }),
  ),
  ...['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket'].map(
    (algorithm): Timeline => ({
      title: `${algorithm}: a clock that jumps ahead brings one limit's worth`,
      rule: algorithm === 'leaky-bucket' ? { algorithm, limit: '25/s', burst: 24 } : { algorithm, limit: '25/s' },
      rows: [
        { at: 0, times: 25, expected: 'pass' },
        { at: 0, expected: 'refuse' },
        { at: 365 * 86_400_000, times: 25, expected: 'pass' },
        { at: 365 * 86_400_000, expected: 'refuse' },
      ],
    }),
  ),
]
