import { expect, test } from 'vitest'
import type { ServiceAddress, ServiceFigures, ServiceRoute } from '../api/generated.ts'
import { errorShare, routeName, serviceRows } from './service-rows.ts'

const figures = (calls: number, errors: number, p95Ms: number | null): ServiceFigures => ({
  ...{ perSecond: 1, calls, errors, retries: 0, history: { calls: [], errors: [] } },
  latency: { p50Ms: 1, p95Ms, p99Ms: p95Ms },
})
const address = (name: string, state: ServiceAddress['state'], measured?: ServiceFigures): ServiceAddress => ({
  ...{ address: name, state, weight: 1, share: 1, underWay: 0, waiting: 0, connections: 0, figures: measured },
})
const route = (id: string, ...addresses: ServiceAddress[]): ServiceRoute => {
  return { id, host: [], path: `/${id}`, method: [], headers: [], troubles: [], addresses }
}
const ids = (...routes: ServiceRoute[]) => serviceRows(routes).map(({ id }) => id)

test('addresses are listed by state, then by errors, then by latency', () => {
  const one = route(
    'one',
    address('quiet', 'healthy'),
    address('drains', 'draining', figures(9, 9, 9000)),
    address('slow', 'healthy', figures(100, 1, 700)),
    address('slower', 'healthy', figures(100, 1, null)),
    address('fails', 'healthy', figures(100, 2, 5)),
    address('rests', 'resting', figures(1, 1, 5)),
    address('ill', 'unhealthy'),
  )
  const names = ['ill', 'rests', 'fails', 'slower', 'slow', 'quiet', 'drains']
  expect(ids(one)).toEqual(['one', ...names.map(name => `one ${name}`)])
})

test('the route with the worst address is first, and a route with one address has one line', () => {
  const well = route('well', address('a', 'healthy'), address('b', 'healthy'))
  const ill = route('ill', address('c', 'resting'))
  expect(ids(well, route('own-answer'), ill)).toEqual(['ill c', 'well', 'well a', 'well b'])
  expect(ids()).toEqual([])
})

test('without calls there is no share of errors', () => {
  expect(errorShare(undefined)).toBeUndefined()
  expect(errorShare(figures(0, 0, null))).toBeUndefined()
  expect(errorShare(figures(4, 1, null))).toBe(0.25)
})

test('a route is named by its methods, hosts and path', () => {
  expect(routeName(route('orders'))).toBe('/orders')
  const named = { ...route('orders'), method: ['GET', 'PUT'], host: ['a.test', '*.b.test'] }
  expect(routeName(named)).toBe('GET, PUT a.test, *.b.test/orders')
})
