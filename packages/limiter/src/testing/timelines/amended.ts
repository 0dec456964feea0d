import type { AmendedTimeline, Move } from '../amended-timeline.ts'
import type { TimelineRule } from '../timeline.ts'

const bucket = (limit: string, burst?: number): TimelineRule => {
  return { algorithm: 'token-bucket', limit, ...(burst === undefined ? {} : { burst }) }
}
const HOUR = 3_600_000
const algorithms: readonly TimelineRule[] = [
  { algorithm: 'token-bucket', limit: '10/m' },
  { algorithm: 'leaky-bucket', limit: '10/m', burst: 9 },
  { algorithm: 'fixed-window', limit: '10/m' },
  { algorithm: 'fixed-window', limit: '10/m', align: 'first-call' },
  { algorithm: 'sliding-window', limit: '10/m' },
  { algorithm: 'sliding-log', limit: '10/m' },
]
const nameOf = ({ algorithm, align }: TimelineRule): string => [algorithm, align].filter(Boolean).join(' ')

/** Changed limits reach callers who are at their limit, whether or not they call in between. */
const changes: readonly AmendedTimeline[] = [
  {
    title: 'a bucket of 10/h that is empty lets one pass 6 s after it became 10/m',
    rule: bucket('10/h'),
    moves: [
      { at: 0, times: 10, expected: 'pass' },
      { at: 0, expected: 'refuse', retryAfterMs: 360_000 },
      { at: 0, change: bucket('10/m') },
      { at: 1000, expected: 'refuse', retryAfterMs: 5000 },
      { at: 5999, expected: 'refuse', retryAfterMs: 1 },
      { at: 6000, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a window of 100/d that is full refuses until the second ends in which it became 10/s',
    rule: { algorithm: 'fixed-window', limit: '100/d' },
    moves: [
      { at: 100, times: 100, expected: 'pass' },
      { at: 200, change: { algorithm: 'fixed-window', limit: '10/s' } },
      { at: 300, expected: 'refuse', retryAfterMs: 700 },
      { at: 999, expected: 'refuse', retryAfterMs: 1 },
      { at: 1000, times: 10, expected: 'pass' },
      { at: 1000, expected: 'refuse' },
    ],
  },
  {
    title: 'a bucket that is lowered from 10/s to 1/h goes on at the new pace from the change on',
    rule: bucket('10/s'),
    moves: [
      { at: 0, times: 10, expected: 'pass' },
      { at: 0, change: bucket('1/h', 10) },
      { at: 500, expected: 'refuse', remaining: 0, retryAfterMs: HOUR - 500 },
      { at: 60_000, expected: 'refuse', remaining: 0 },
      { at: HOUR, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a full window matters for the longer period that it was given, however late the caller comes back',
    rule: { algorithm: 'fixed-window', limit: '5/s' },
    moves: [
      { at: 0, times: 5, expected: 'pass' },
      { at: 100, change: { algorithm: 'fixed-window', limit: '5/d' } },
      { at: 30 * 60_000, expected: 'refuse' },
      { at: 23 * HOUR, expected: 'refuse' },
    ],
  },
  {
    title: 'a limit that is changed back goes on as if it had never been changed, with the calls admitted meanwhile',
    rule: bucket('10/h'),
    moves: [
      { at: 0, times: 10, expected: 'pass' },
      { at: 0, change: bucket('10/m') },
      { at: 6000, expected: 'pass', remaining: 0 },
      { at: 30_000, change: bucket('10/h') },
      { at: 30_000, expected: 'refuse', retryAfterMs: 336_000 },
    ],
  },
  {
    title: 'a long window that is changed back knows the calls that a short one admitted meanwhile',
    rule: { algorithm: 'sliding-window', limit: '20/h' },
    moves: [
      { at: 0, times: 5, expected: 'pass' },
      { at: 1000, change: { algorithm: 'sliding-window', limit: '10/s' } },
      { at: 3000, times: 10, expected: 'pass' },
      { at: 60_000, change: { algorithm: 'sliding-window', limit: '20/h' } },
      { at: 60_000, times: 5, expected: 'pass' },
      { at: 60_000, expected: 'refuse' },
    ],
  },
  {
    title: 'a limit that is changed back after an hour without use is converted, as any other',
    rule: bucket('10/m'),
    moves: [
      { at: 0, times: 10, expected: 'pass' },
      { at: 0, change: bucket('10/h') },
      { at: HOUR, times: 10, expected: 'pass' },
      { at: HOUR, change: bucket('10/m') },
      { at: HOUR, expected: 'refuse', retryAfterMs: 6000 },
    ],
  },
  {
    title: 'a rule that gets a second level counts what it counted by both of them',
    rule: { algorithm: 'sliding-log', limit: '5/m' },
    moves: [
      { at: 0, times: 5, expected: 'pass' },
      { at: 1000, change: { algorithm: 'sliding-log', limit: ['10/m', '6/h'] } },
      { at: 2000, expected: 'pass', remaining: 0 },
      { at: 61_000, expected: 'refuse' },
      { at: HOUR, expected: 'pass' },
    ],
  },
]

/** A refund restores what time has not restored yet, whichever calls came in between. */
const refunds: readonly AmendedTimeline[] = [
  {
    title: 'a refund to a bucket is not lost because another call came in between',
    rule: bucket('10/s', 100),
    moves: [
      { at: 0, cost: 50, name: 'large', expected: 'pass' },
      { at: 1000, cost: 10, expected: 'pass', remaining: 50 },
      { at: 3000, refund: 'large', cost: 45 },
      // as if 5 and 10 had been charged
      { at: 3000, cost: 0, expected: 'pass', remaining: 100 },
    ],
  },
  {
    title: 'a refund to a bucket gives back nothing of what time has paid already',
    rule: bucket('10/s', 5),
    moves: [
      { at: 0, cost: 5, name: 'first', expected: 'pass' },
      { at: 500, cost: 5, expected: 'pass', remaining: 0 },
      { at: 500, refund: 'first' },
      { at: 500, expected: 'refuse' },
    ],
  },
  {
    title: 'two refunds to a bucket do not both give back what is owed once',
    rule: bucket('1/s', 2),
    moves: [
      { at: 0, name: 'first', expected: 'pass' },
      { at: 999, name: 'second', expected: 'pass' },
      { at: 1999, expected: 'pass' },
      { at: 1999, refund: 'first' },
      { at: 1999, expected: 'pass', remaining: 0 },
      { at: 1999, refund: 'second' },
      { at: 2998, expected: 'refuse' },
    ],
  },
  {
    title: 'a refund after a limit was lowered gives back nothing that was paid at the higher rate',
    rule: bucket('10/s'),
    moves: [
      { at: 0, cost: 10, name: 'early', expected: 'pass' },
      { at: 1000, change: bucket('1/h', 10) },
      { at: 1000, cost: 10, expected: 'pass', remaining: 0 },
      { at: 2000, refund: 'early' },
      { at: 2000, expected: 'refuse', remaining: 0 },
    ],
  },
  {
    title: 'a refund after the clock stepped back frees what it took and takes nothing more',
    rule: bucket('10/m'),
    moves: [
      { at: 10_000, cost: 2, name: 'early', expected: 'pass', remaining: 8 },
      { at: 5000, refund: 'early' },
      { at: 5000, cost: 0, expected: 'pass', remaining: 10 },
    ],
  },
  {
    title: 'a refund into a window that has passed gives nothing, also if the window was made longer since',
    rule: { algorithm: 'fixed-window', limit: '10/s' },
    moves: [
      { at: 0, cost: 8, name: 'early', expected: 'pass' },
      { at: 2000, cost: 5, expected: 'pass' },
      { at: 2000, change: { algorithm: 'fixed-window', limit: '10/h' } },
      { at: 2500, refund: 'early' },
      { at: 2500, cost: 6, expected: 'refuse', remaining: 5 },
    ],
  },
  {
    // the moment of a closed segment is rounded up to that of the newest call
    title: 'a refund of the newest call of a sliding window takes it out of the newest segment',
    rule: { algorithm: 'sliding-window', limit: '1000/d', segments: 7 },
    moves: [
      { at: 12_342_857.142, expected: 'pass' },
      { at: 12_342_857.143, expected: 'pass' },
      { at: 12_342_857.144, expected: 'pass' },
      { at: 12_342_857.144, name: 'newest', expected: 'pass' },
      { at: 12_342_857.144, refund: 'newest' },
      { at: 12_342_857.144, cost: 998, expected: 'refuse', remaining: 997, retryAfterMs: 24 * HOUR },
    ],
  },
]

const interval = (limit: string, burst: number): TimelineRule => ({ ...bucket(limit, burst), refill: 'interval' })
const empty = (limit: string, burst: number): TimelineRule => ({ ...bucket(limit, burst), start: 'empty' })

/** Buckets that are refilled by intervals, or start empty. */
const refills: readonly AmendedTimeline[] = [
  {
    title: 'three large costs that are open at once are all refunded exactly, in any order',
    rule: bucket('100/s', 100),
    moves: [
      { at: 0, cost: 20, name: 'first', expected: 'pass' },
      { at: 20, cost: 20, name: 'second', expected: 'pass' },
      { at: 40, cost: 20, name: 'third', expected: 'pass', remaining: 44 },
      { at: 60, refund: 'second', cost: 19 },
      { at: 60, cost: 0, expected: 'pass', remaining: 65 },
      { at: 60, refund: 'first', cost: 19 },
      // as if 1, 1 and 20 had been charged
      { at: 60, cost: 0, expected: 'pass', remaining: 82 },
      { at: 60, refund: 'third', cost: 19 },
      { at: 60, cost: 0, expected: 'pass', remaining: 100 },
    ],
  },
  {
    title: 'a refund to an interval refill gives back what no period has brought yet',
    rule: interval('5/s', 10),
    moves: [
      { at: 0, cost: 8, name: 'early', expected: 'pass' },
      { at: 900, cost: 2, name: 'late', expected: 'pass', remaining: 0 },
      { at: 950, refund: 'late' },
      { at: 950, cost: 2, expected: 'pass', remaining: 0 },
      { at: 1000, cost: 3, expected: 'pass', remaining: 2 },
      // without the early call the period had filled the bucket before 3 were charged
      { at: 1500, refund: 'early' },
      { at: 1500, cost: 0, expected: 'pass', remaining: 7 },
      { at: 2000, cost: 0, expected: 'pass', remaining: 10 },
    ],
  },
  {
    title: 'a refund to a key that was forgotten does not fill a bucket that starts empty',
    rule: empty('10/s', 10),
    moves: [
      { at: 0, expected: 'refuse', remaining: 0 },
      { at: 1000, cost: 5, name: 'early', expected: 'pass', remaining: 5 },
      { at: 2 * HOUR, refund: 'early' },
      { at: 2 * HOUR, expected: 'refuse', remaining: 0, retryAfterMs: 100 },
    ],
  },
  {
    title: 'an interval refill whose burst is changed keeps its debt and the end of its period',
    rule: interval('5/s', 10),
    moves: [
      { at: 0, cost: 10, expected: 'pass' },
      { at: 400, change: interval('5/s', 20) },
      { at: 400, expected: 'pass', remaining: 9 },
      { at: 400, cost: 10, expected: 'refuse', retryAfterMs: 600 },
      { at: 500, change: interval('1/s', 11) },
      { at: 500, cost: 1, expected: 'refuse', remaining: 0, retryAfterMs: 500 },
      { at: 1000, cost: 1, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a bucket that is refilled by intervals from now on begins its first period with the change',
    rule: bucket('5/s', 5),
    moves: [
      { at: 0, cost: 5, expected: 'pass' },
      { at: 300, change: interval('5/s', 5) },
      { at: 300, cost: 1, expected: 'pass', remaining: 0 },
      { at: 1299.999, cost: 1, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1300, cost: 5, expected: 'pass', remaining: 0 },
      { at: 1400, change: bucket('5/s', 5) },
      // as if it had been a bucket of tokens all the time
      { at: 1499.999, cost: 1, expected: 'refuse' },
      { at: 1500, cost: 1, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a reset lets an interval refill begin its period with the next call',
    rule: interval('5/s', 5),
    moves: [
      { at: 0, cost: 5, expected: 'pass' },
      { at: 500, reset: 'caller' },
      { at: 501, cost: 5, expected: 'pass', remaining: 0 },
      { at: 1500.999, cost: 1, expected: 'refuse', retryAfterMs: 0.001 },
      { at: 1501, cost: 5, expected: 'pass' },
    ],
  },
  {
    title: 'a reset of a bucket that starts empty starts it again with the next call',
    rule: empty('10/s', 5),
    moves: [
      { at: 0, expected: 'refuse' },
      { at: 500, cost: 2, name: 'early', expected: 'pass', remaining: 3 },
      { at: 600, reset: 'caller' },
      { at: 700, expected: 'refuse', remaining: 0, retryAfterMs: 100 },
      { at: 750, refund: 'early' },
      { at: 750, expected: 'refuse', remaining: 0, retryAfterMs: 50 },
      { at: 800, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a bucket that starts empty is refunded in full and is not taken for new',
    rule: empty('10/s', 5),
    moves: [
      { at: 0, expected: 'refuse' },
      { at: 500, cost: 5, name: 'all', expected: 'pass', remaining: 0 },
      { at: 500, refund: 'all' },
      { at: 500, cost: 5, expected: 'pass', remaining: 0 },
    ],
  },
  {
    title: 'a caller of a bucket that starts empty keeps what was saved when the limit changes',
    rule: empty('1/s', 10),
    moves: [
      { at: 0, expected: 'refuse' },
      { at: 15_000, change: empty('2/s', 10) },
      { at: 15_000, cost: 1, expected: 'pass', remaining: 9 },
      { at: 15_000, cost: 1, key: 'another', expected: 'refuse', retryAfterMs: 500 },
    ],
  },
]

/** A refund gives back what its own charge put there, and nothing that came after a reset. */
const resets: readonly AmendedTimeline[] = algorithms.map(rule => {
  const charges = (at: number, names: string): Move[] =>
    Array.from({ length: 5 }, (_, i) => ({ at, cost: 2, name: `${names} ${i}`, expected: 'pass' }))
  const given = (at: number, names: string): Move[] =>
    Array.from({ length: 5 }, (_, i) => ({ at, refund: `${names} ${i}` }))
  return {
    title: `${nameOf(rule)}: a refund of what was charged before a reset frees nothing that was charged since`,
    rule,
    moves: [
      ...charges(0, 'before'),
      { at: 1, expected: 'refuse' },
      { at: 2, reset: 'caller' },
      ...charges(3, 'after'),
      ...given(4, 'before'),
      { at: 5, expected: 'refuse', remaining: 0 },
      ...given(6, 'after'),
      { at: 7, cost: 10, expected: 'pass', remaining: 0 },
    ],
  }
})

/** Tables of refunds, resets and changed limits; every store answers them alike. */
export const amendedTimelines: readonly AmendedTimeline[] = [...changes, ...refunds, ...refills, ...resets]
