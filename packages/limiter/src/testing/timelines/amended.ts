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

/** Changed limits reach callers who are at their limit, whether or not they ask in between. */
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
    title: 'a limit that is changed and changed back is converted at each of the moments',
    rule: bucket('10/h'),
    moves: [
      { at: 0, times: 10, expected: 'pass' },
      { at: 0, change: bucket('10/m') },
      { at: 30_000, change: bucket('10/h') },
      { at: 30_000, expected: 'pass', remaining: 4 },
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

/** Refunds give back what time has not, whoever called in between. */
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
export const amendedTimelines: readonly AmendedTimeline[] = [...changes, ...refunds, ...resets]
