import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseGatewaySettings } from '../../settings/gateway-settings.ts'
import { Upstreams } from '../upstreams.ts'
import { RouteTable } from './route-table.ts'

interface Words {
  readonly host?: string
  readonly path?: string
  readonly method?: string[]
  readonly header?: Record<string, string>
}

interface Call {
  readonly host: string
  readonly path: string
  readonly method: string
  readonly headers: Record<string, string>
}

function tableOf(routes: readonly Words[]): RouteTable {
  // each answers with its own number
  const numbered = routes.map((route, index) => ({ ...route, answer: { body: String(index) } }))
  return new RouteTable(parseGatewaySettings({ routes: numbered }).routes, new Upstreams())
}

function found(table: RouteTable, { host, path, method, headers }: Call): string | undefined {
  return table.find(path, { method, headers: { ...headers, host } })?.settings.answer?.body
}

function first(routes: readonly Words[], call: Partial<Call>): string | undefined {
  return found(tableOf(routes), { host: 'a.test', path: '/', method: 'GET', headers: {}, ...call })
}

const both = { method: ['GET'], header: { 'x-version': 'v2' } }

it.each<[string, Words[], Partial<Call>, string | undefined]>([
  ['a route with the method', [{}, { method: ['POST'] }], { method: 'POST' }, '1'],
  ['the route without conditions for other methods', [{}, { method: ['POST'] }], { method: 'PUT' }, '0'],
  ['GET for HEAD', [{}, { method: ['GET'] }], { method: 'HEAD' }, '1'],
  ['not HEAD for GET', [{ method: ['HEAD'] }], { method: 'GET' }, undefined],
  ['a method in lower case', [{ method: ['post'] }], { method: 'POST' }, '0'],
  ['a route with the header', [{}, { header: { 'X-Version': 'v2' } }], { headers: { 'x-version': 'v2' } }, '1'],
  ['no longer value', [{ header: { 'x-version': 'v2' } }], { headers: { 'x-version': 'v2.1' } }, undefined],
  ['no other case of a value', [{ header: { 'x-version': 'v2' } }], { headers: { 'x-version': 'V2' } }, undefined],
  ['one of several items', [{ header: { 'x-version': 'v2' } }], { headers: { 'x-version': 'v1, v2' } }, '0'],
  ['a beginning', [{ header: { 'x-version': 'v2*' } }], { headers: { 'x-version': 'v2.1' } }, '0'],
  ['no other beginning', [{ header: { 'x-version': 'v2*' } }], { headers: { 'x-version': 'v12' } }, undefined],
  ['any value', [{ header: { 'x-version': '*' } }], { headers: { 'x-version': '' } }, '0'],
  ['no value for a header that is not there', [{ header: { 'x-version': '*' } }], {}, undefined],
  ['more conditions first', [{ method: ['GET'] }, both], { headers: { 'x-version': 'v2' } }, '1'],
  [
    'the order of the file if there are as many',
    [{ method: ['GET'] }, { header: { a: '*' } }],
    { headers: { a: '' } },
    '0',
  ],
  ['a shorter path if the longer is not for the method', [{ path: '/a', method: ['PUT'] }, {}], { path: '/a' }, '1'],
  ['every host if the own one is not for the method', [{ host: 'a.test', method: ['PUT'] }, {}], {}, '1'],
  ['a longer path before more conditions', [{ method: ['GET'] }, { path: '/a' }], { path: '/a' }, '1'],
])('a call finds %s', (_, routes, call, index) => {
  expect(first(routes, call)).toBe(index)
})

/** The same by the definition: of all routes that fit, the most exact. */
function reference(routes: readonly Words[], { host, path, method, headers }: Call): string | undefined {
  const hostRank = (wanted: string | undefined): number => {
    if (wanted === undefined) return 0
    if (wanted === host) return 1000
    return wanted.startsWith('*.') && host.endsWith(wanted.slice(1)) ? wanted.length : -1
  }
  const fits = (route: Words): boolean =>
    hostRank(route.host) >= 0 &&
    ((route.path ?? '/') === '/' || path === route.path || path.startsWith(`${route.path}/`)) &&
    (route.method === undefined || route.method.includes(method)) &&
    Object.entries(route.header ?? {}).every(([name, value]) =>
      value === '*' ? headers[name] !== undefined : headers[name] === value,
    )
  const rank = (route: Words): number[] => [
    hostRank(route.host),
    (route.path ?? '/').length,
    Object.keys(route.header ?? {}).length + (route.method ? 1 : 0),
  ]
  const best = routes
    .map((route, index) => ({ route, index }))
    .filter(({ route }) => fits(route))
    .sort((one, other) => {
      const [ranks, others] = [rank(one.route), rank(other.route)]
      const at = ranks.findIndex((value, place) => value !== others[place])
      return at < 0 ? one.index - other.index : others[at]! - ranks[at]!
    })
  return best[0] && String(best[0].index)
}

it('of any routes, a call finds the one that the order of precedence names', () => {
  const method = fc.constantFrom('GET', 'POST', 'PUT')
  const value = fc.constantFrom('1', '2')
  const route = fc.record(
    {
      host: fc.constantFrom('a.test', '*.test', 'b.a.test', '*.a.test'),
      path: fc.constantFrom('/', '/a', '/a/b', '/b'),
      method: fc.uniqueArray(method, { minLength: 1, maxLength: 2 }),
      header: fc.dictionary(fc.constantFrom('x', 'y'), fc.oneof(value, fc.constant('*')), { maxKeys: 2 }),
    },
    { requiredKeys: [] },
  )
  const call = fc.record({
    host: fc.constantFrom('a.test', 'b.a.test', 'c.b.a.test', 'other'),
    path: fc.constantFrom('/', '/a', '/a/b', '/a/b/c', '/ab', '/b/x'),
    method,
    headers: fc.dictionary(fc.constantFrom('x', 'y'), value, { maxKeys: 2 }),
  })
  const named = ({ host, path, method, header }: Words) =>
    JSON.stringify([host, path ?? '/', [...(method ?? [])].sort(), Object.entries(header ?? {}).sort()])
  fc.assert(
    fc.property(
      fc.uniqueArray(route, { selector: named, maxLength: 6 }),
      fc.array(call, { maxLength: 8 }),
      (routes, calls) => {
        const table = tableOf(routes)
        for (const one of calls) expect(found(table, one)).toBe(reference(routes, one))
      },
    ),
  )
})
