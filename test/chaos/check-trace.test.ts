import { describe, expect, test } from 'vitest'
import { checkTrace } from './check-trace.mjs'

const limits = { quota: { calls: 24 }, busy: { calls: 300, perMs: 0.6 } }
const call = (end: number, by: string, more: object = {}) => {
  return { what: 'call', caller: 'quota ', end, by, allowed: true, size: 3, isKnown: true, left: 0, ...more }
}
const busy = { caller: 'busy ', end: 70, cost: 1 }
const ask = { ...busy, what: 'ask' }
const use = { ...busy, what: 'use' }
const grant = (amount: number) => ({ ...busy, what: 'grant', amount })

/** Each kind of right, used as the model allows. */
const sound = [
  call(10, 'store', { left: 20 }),
  call(20, 'store', { left: 12 }),
  call(30, 'late'),
  ...[40, 41, 42, 43].map(at => call(at, 'share')),
  call(44, 'share', { allowed: false }),
  call(60, 'store', { left: 5 }),
  ...[ask, grant(2), use, ask, use, grant(2), use],
]

describe('the checker of traces', () => {
  test('a trace in which each right is used as the model allows is accepted', () => {
    expect(checkTrace({ events: sound }, limits)).toEqual([])
  })

  test.each([
    ['more calls by a share than it has', [50, 51, 52].map(at => call(at, 'share')), '3 calls by a share of 2'],
    ['a permit that was never granted', [use], 'were not granted'],
    [
      'a late call of a caller of whom the store has said nothing',
      [call(5, 'late', { caller: 'busy ' })],
      'said nothing',
    ],
    ['a late call when the store has said nothing lately', [call(6000, 'late')], 'said nothing'],
    ['late calls beyond half of what was left', [61, 62, 63, 64].map(at => call(at, 'late')), '4 late calls'],
    ['an answer with more left than the limit', [call(80, 'store', { left: 25 })], '25 of 24'],
  ])('a trace is rejected that has %s', (_, added, finding) => {
    const findings = checkTrace({ events: [...sound, ...added] }, limits)
    expect(findings.join('\n')).toContain(finding)
  })

  test('a trace is rejected if an answer or a grant is taken out of it', () => {
    expect(checkTrace({ events: sound.filter(({ what }) => what !== 'grant') }, limits)).toHaveLength(3)
    expect(checkTrace({ events: sound.filter(one => !('by' in one) || one.by !== 'store') }, limits)).toHaveLength(1)
  })
})
