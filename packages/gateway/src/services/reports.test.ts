import { expect, test } from 'vitest'
import { mergeReports, type RouteReport } from './reports.ts'

const route = (path: string, ...addresses: object[]): RouteReport =>
  ({ id: path, host: [], path, addresses, troubles: [`${path} is unknown`] }) as unknown as RouteReport
const healthy = { address: 'a', state: 'healthy', weight: 2, share: 2, underWay: 3, waiting: 0, connections: 1 }
const resting = { ...healthy, state: 'resting', restMs: 50, why: 'reset', share: 1, underWay: 4, waiting: 5 }

test('reports of workers are one report: calls together, and the worst state of each address', () => {
  const other = { ...healthy, address: 'b' }
  const merged = mergeReports([[route('/', healthy)], [route('/', resting, other)], [route('/', healthy)]])
  expect(merged).toEqual([route('/', { ...resting, underWay: 10, connections: 3 }, other)])
})

test('a worker with other routes adds nothing to a report', () => {
  expect(mergeReports([[route('/', healthy)], [route('/new', resting)], []])).toEqual([route('/', healthy)])
  expect(mergeReports([])).toEqual([])
})
