import { expect, test } from 'vitest'
import { LatencyCounts } from '../../services/address-state.ts'
import type { TrafficSample } from '../../services/reports.ts'
import { ProcessHistory } from './process-history.ts'
import type { ProcessReport } from './process-report.ts'
import { quantilesOf } from './quantile.ts'
import { ServiceHistory } from './service-history.ts'

/** Latencies in milliseconds, as an address counts them. */
function latencies(...all: readonly number[]): number[] {
  const counts = new LatencyCounts()
  for (const ms of all) counts.add(ms)
  return counts.read()
}

const load = {
  ...{ utilization: 0.5, delay: { p50Ms: 0, p99Ms: 2 }, cpu: 0.25 },
  ...{ rssBytes: 1e8, heapUsedBytes: 5e7, heapLimitBytes: 2e9 },
}
const sample = (address: string, calls: number, more: Partial<TrafficSample> = {}): TrafficSample => {
  return { route: 'r', address, ageMs: 1e9, calls, errors: 0, retries: 0, latency: latencies(), ...more }
}
const report = (pid: number, startedAt: number, ...traffic: TrafficSample[]): ProcessReport => {
  return { pid, startedAt, load, services: { traffic, troubles: [] } }
}

test('figures of services are differences of counts, summed over processes', () => {
  const history = new ServiceHistory()
  // what was counted before the first report came at a time that is not known
  history.record(1000, [report(1, 0, sample('a', 500)), report(2, 0, sample('a', 70))])
  expect(history.read('r', 'a')).toBeUndefined()
  history.record(1001, [report(1, 0, sample('a', 510, { errors: 2 })), report(2, 0, sample('a', 71, { retries: 1 }))])
  history.record(1002, [report(1, 0, sample('a', 510, { errors: 2 })), report(2, 0, sample('a', 80, { retries: 1 }))])
  expect(history.read('r', 'a')).toMatchObject({ perSecond: 10, calls: 20, errors: 2, retries: 1 })
  history.record(1009, [])
  const { history: steps } = history.read('r')!
  expect(steps.calls.slice(-2)).toEqual([20, 0])
  expect(steps.errors.slice(-2)).toEqual([2, 0])
  expect(steps.calls).toHaveLength(60)
  expect(history.read('r')?.latency).toBeUndefined()
  expect(history.read('other')).toBeUndefined()
})

test('a worker that was started again, and an address that is new, count from zero', () => {
  const history = new ServiceHistory()
  history.record(1000, [report(1, 0, sample('a', 500))])
  history.record(1002, [report(2, 1_000_500, sample('a', 5, { ageMs: 1200 }))])
  expect(history.read('r', 'a')?.calls).toBe(5)
  history.record(1003, [report(2, 1_000_500, sample('a', 6), sample('b', 3, { ageMs: 400 }))])
  expect(history.read('r', 'b')?.calls).toBe(3)
  expect(history.read('r')?.calls).toBe(9)
  // an older one was left out of the reports before, and one with fewer calls was counted afresh
  history.record(1004, [report(2, 1_000_500, sample('a', 2), sample('c', 1000))])
  expect(history.read('r')?.calls).toBe(9)
  history.record(1005, [report(2, 1_000_500, sample('a', 3), sample('c', 1001))])
  expect(history.read('r')?.calls).toBe(11)
})

test('rates and quantiles forget what is older than their window, and series without calls are forgotten', () => {
  const history = new ServiceHistory()
  history.record(1000, [report(1, 0, sample('a', 0))])
  history.record(1001, [report(1, 0, sample('a', 4, { latency: latencies(1, 2, 3, 900) }))])
  expect(history.read('r', 'a')?.latency).toEqual({ p50Ms: 2, p95Ms: 1000, p99Ms: 1000 })
  history.record(1011, [report(1, 0, sample('a', 4, { latency: latencies(1, 2, 3, 900) }))])
  expect(history.read('r', 'a')).toMatchObject({ perSecond: 0, calls: 4 })
  history.record(1061, [report(1, 0, sample('a', 5, { latency: latencies(1, 2, 3, 900, 40) }))])
  expect(history.read('r', 'a')).toMatchObject({ calls: 1, latency: { p50Ms: 50, p99Ms: 50 } })
  history.record(1400, [report(1, 0)])
  expect(history.read('r', 'a')).toBeUndefined()
})

test('no more than the busiest two hundred routes and addresses are remembered', () => {
  const history = new ServiceHistory()
  const many = (calls: number) => Array.from({ length: 300 }, (_, at) => sample(`${at}`, calls))
  history.record(1000, [report(1, 0, ...many(0))])
  history.record(1001, [report(1, 0, ...many(1))])
  expect(history.read('r')?.calls).toBe(200)
  // those that had no call for a minute make room
  history.record(1100, [report(1, 0, ...many(1).slice(0, 299), sample('299', 8))])
  expect(history.read('r', '299')?.calls).toBe(7)
})

test('a quantile is the upper bound of its bucket, and null beyond the last one', () => {
  expect(quantilesOf(latencies())).toBeUndefined()
  expect(quantilesOf(latencies(0.2))).toEqual({ p50Ms: 1, p95Ms: 1, p99Ms: 1 })
  const hundred = Array.from({ length: 100 }, (_, at) => (at < 94 ? 4 : at < 98 ? 600 : 61_000))
  expect(quantilesOf(latencies(...hundred))).toEqual({ p50Ms: 5, p95Ms: 700, p99Ms: null })
})

test('processes are reported while they answer, with what they turned away in the last five minutes', () => {
  const history = new ProcessHistory()
  const rejecting = (pid: number, count: number, startedAt = 0): ProcessReport => {
    return { ...report(pid, startedAt), callers: { connections: 3, inProgress: 1, rejected: { timeout: count } } }
  }
  history.record(1000, [rejecting(1, 90), rejecting(2, 0)])
  history.record(1001, [rejecting(1, 92), rejecting(2, 0)])
  const [first, second] = history.read()
  expect(first).toMatchObject({ pid: 1, callers: { connections: 3, inProgress: 1, rejected: { timeout: 2 } } })
  expect(first!.history.utilization.slice(-2)).toEqual([null, 0.5])
  expect(second).toMatchObject({ pid: 2, callers: { rejected: {} } })
  for (let at = 1002; at < 1008; at++) history.record(at, [rejecting(1, 92)])
  expect(history.read().map(({ pid }) => pid)).toEqual([1])
  history.record(1302, [rejecting(1, 92)])
  expect(history.read()[0]!.callers!.rejected).toEqual({})
})
