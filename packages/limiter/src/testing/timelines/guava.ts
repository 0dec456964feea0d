import type { Row, Timeline, TimelineRule } from '../timeline.ts'

const warmingUp: TimelineRule = {
  algorithm: 'warm-up',
  limit: '2/s',
  warmUp: '4s',
  whenFull: 'wait',
  queue: { timeout: '10s' },
}
const cold = [0, 1375, 1125, 875, 625, 500, 500, 500]
const warm = [0, 500, 500, 500, 500, 500, 500, 500]

/** Calls made one after the other, each as soon as the one before has passed. */
function inTurn(from: number, waits: readonly number[]): Row[] {
  let at = from
  return waits.map(waitMs => {
    const row: Row = { at, expected: waitMs || 'pass' }
    at += waitMs
    return row
  })
}

/** The answers of Guava's SmoothWarmingUp; a series of eight ends after 5.5 s when cold, 3.5 s when warm. */
export const guavaTimelines: readonly Timeline[] = [
  {
    title: 'Guava: create(2, 4 s) from cold, and cold again after 0.5 + 4 s of idling',
    rule: warmingUp,
    rows: [...inTurn(0, cold), ...inTurn(5500 + 4500, cold)],
  },
  {
    title: 'Guava: create(2, 4 s) is still warm after 0.5 + 2 s of idling',
    rule: warmingUp,
    rows: [...inTurn(0, cold), ...inTurn(5500 + 2500, warm)],
  },
  {
    title: 'calls that come at once queue up behind the warm-up',
    rule: warmingUp,
    rows: [
      { at: 0, expected: 'pass' },
      { at: 0, expected: 1375 },
      { at: 0, expected: 2500 },
      { at: 0, expected: 3375 },
      { at: 0, expected: 4000 },
      { at: 0, expected: 4500 },
      { at: 0, expected: 5000 },
    ],
  },
  {
    title: 'a call never waits for its own size, the next one does',
    rule: warmingUp,
    rows: [
      { at: 0, cost: 4, expected: 'pass' },
      { at: 0, cost: 2, expected: 4000 },
      { at: 4000, cost: 1, expected: 1000 },
    ],
  },
  {
    title: 'warm-up that refuses names the moment at which the next call passes',
    rule: { algorithm: 'warm-up', limit: '2/s', warmUp: '4s' },
    rows: [
      { at: 0, cost: 0, expected: 'pass', remaining: 1, resetAfterMs: 0 },
      { at: 0, expected: 'pass', remaining: 0, resetAfterMs: 1875 },
      { at: 0, cost: 0, expected: 'pass', remaining: 0 },
      { at: 0, expected: 'refuse', retryAfterMs: 1375, resetAfterMs: 1875 },
      { at: 1374, expected: 'refuse', retryAfterMs: 1 },
      { at: 1375, expected: 'pass' },
      { at: 1375, expected: 'refuse', retryAfterMs: 1125 },
      { at: 60_000, expected: 'pass', resetAfterMs: 1875 },
      { at: 60_000, expected: 'refuse', retryAfterMs: 1375 },
    ],
  },
]
