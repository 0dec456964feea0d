import { expect, test } from 'vitest'
import { AddressTraffic } from './address-state.ts'

const ended = (status: number, endedAt: number, answerMs?: number) =>
  ({ status, endedAt, answerMs, end: 'complete' }) as const

test('errors of an address are 5xx answers, answers that broke off, and failed tries', () => {
  const traffic = new AddressTraffic()
  traffic.add('a', ended(200, 10, 3))
  traffic.add('a', ended(404, 11, 3))
  traffic.add('a', ended(503, 12, 70.5))
  traffic.add('a', { ...ended(200, 13, 900), end: 'broken' })
  traffic.add('a', { ...ended(499, 14), end: 'aborted' })
  traffic.addFailedTry('a', 15)
  traffic.addRetry('b', 16)
  const [[first, one], [second, other]] = traffic.stats(20, 0) as [[string, object], [string, object]]
  expect([first, one]).toMatchObject(['a', { ageMs: 10, calls: 6, errors: 3, retries: 0 }])
  expect([second, other]).toMatchObject(['b', { calls: 0, errors: 0, retries: 1 }])
  const counts = traffic.stats(20, 0)[0]![1].latency
  expect(counts.map((count, at) => [at, count]).filter(([, count]) => count! > 0)).toEqual([
    [2, 2],
    [11, 1],
    [17, 1],
  ])
})

test('routes without a call lately are not reported, and of too many the one idle for longest is forgotten', () => {
  const traffic = new AddressTraffic()
  for (let i = 0; i < 300; i++) traffic.add(`${i}`, ended(200, i))
  expect([traffic.has('0'), traffic.has('43'), traffic.has('44'), traffic.has('299')]).toEqual([
    ...[false, false, true, true],
  ])
  expect(traffic.stats(300, 298).map(([route]) => route)).toEqual(['298', '299'])
})
