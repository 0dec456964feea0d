import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Call } from '../call.ts'
import { findDimension } from './find-dimension.ts'
import { dimensions } from './index.ts'

const call = (more: Partial<Call>): Call => ({ method: 'GET', path: '/', ...more })

function read(name: string, more: Partial<Call>): string | undefined {
  const reader = findDimension(name, dimensions)
  if (reader === undefined) throw new Error(`no dimension ${name}`)
  return reader(call(more))
}

it.each<[string, Partial<Call>, string | undefined]>([
  ['ip', { ip: '203.0.113.9' }, '203.0.113.9'],
  ['ip', { ip: '::ffff:203.0.113.9' }, '203.0.113.9'],
  ['ip', { ip: '2001:db8::9' }, '2001:db8::/64'],
  ['ip', { ip: 'unix:' }, undefined],
  ['ip', {}, undefined],
  ['resource', { path: '/orders/7' }, '/orders/7'],
  ['resource', { path: '/orders/7/' }, '/orders/7'],
  ['resource', { path: '/orders/7;v=1' }, '/orders/7'],
  ['resource', { path: '/orders/7', resource: '/orders/:id' }, '/orders/:id'],
  ['resource', { path: '/x/../Orders', resolvedPath: '/Orders' }, '/Orders'],
  ['resource', { path: '/Orders/7/', anyCase: true }, '/orders/7'],
  ['method', { method: 'POST' }, 'POST'],
  ['method', { method: 'HEAD' }, 'GET'],
  ['method', { method: 'head' }, 'GET'],
  ['host', { host: 'Example.COM' }, 'example.com'],
  ['host', { host: 'example.com.:8080' }, 'example.com'],
  ['host', { host: '[2001:DB8::1]:8080' }, '[2001:db8::1]'],
  ['host', { host: '[2001:db8::1' }, '[2001'],
  ['host', {}, undefined],
  ['header:X-Account', { headers: { 'x-account': 'u1' } }, 'u1'],
  ['header:x-account', { headers: { 'x-account': ['u1', 'u2'] } }, 'u1, u2'],
  ['header:authorization', { headers: { authorization: 'BEARER  T1' } }, 'bearer T1'],
  ['header:authorization', { headers: { authorization: 'T1' } }, 'T1'],
  ['header:x-account', { headers: { 'x-account': 'A  B' } }, 'A  B'],
  ['header:x-account', { headers: {} }, undefined],
  ['header:x-account', {}, undefined],
  ['header:constructor', { headers: {} }, undefined],
  ['header:__proto__', { headers: {} }, undefined],
  ['header:a:b', { headers: { 'a:b': 'u1' } }, 'u1'],
])('%s of %j is %j', (name, more, value) => {
  expect(read(name, more)).toBe(value)
})

it.each([
  ['id=u1', 'u1'],
  ['a=b&id=u1&c', 'u1'],
  ['id=u1&id=u2', 'u1,u2'],
  ['id=&id=u1&&id', 'u1'],
  ['%69d=u1', 'u1'],
  ['%69%64=u1', 'u1'],
  ['id=u%31', 'u1'],
  ['id=a+b%2Bc', 'a b+c'],
  ['id=%E8%AE%A2', '订'],
  ['id=%zz', '%zz'],
  ['id=u%31&id=%', 'u%31,%'],
  ['id==x', '=x'],
  ['id', undefined],
  ['id=', undefined],
  ['', undefined],
  ['ids=u1', undefined],
  ['i=u1', undefined],
  ['xid=u1', undefined],
  ['id[]=u1', undefined],
  ['ID=u1', undefined],
  ['%=u1&%6=u1&%6', undefined],
  ['a&b&id', undefined],
  ['a?id=u1', undefined],
])('query:id of ?%s is %j', (query, value) => {
  expect(read('query:id', { query })).toBe(value)
})

it('a query parameter may have any name', () => {
  expect(read('query:订单', { query: 'a=b&%E8%AE%A2%E5%8D%95=7' })).toBe('7')
  expect(read('query:订单', { query: '订单=7' })).toBe('7')
  expect(read('query:a b', { query: 'a+b=1&a%20b=2&a%2Bb=3' })).toBe('1,2')
})

it('a query parameter is what the URL parser finds', () => {
  const word = fc.oneof(
    fc.constantFrom('id', '%69d', 'a', '+', '%20', '%2B', ''),
    fc.string({ unit: 'grapheme-ascii' }),
  )
  const pair = fc.tuple(word, word).map(([name, value]) => `${encodeURI(name)}=${encodeURI(value)}`)
  fc.assert(
    fc.property(fc.array(pair), pairs => {
      const query = pairs.join('&')
      const values = new URLSearchParams(query).getAll('id').filter(value => value !== '')
      expect(read('query:id', { query })).toBe(values.length === 0 ? undefined : values.join(','))
    }),
  )
})

it.each([
  ['uid=u1', 'u1'],
  ['a=b; uid=u1; uid=u2', 'u1'],
  ['a=b;uid=u1', 'u1'],
  ['uid = u1 ', 'u1'],
  ['uid="u1"', 'u1'],
  ['uid="', '"'],
  ['uid=u%31', 'u1'],
  ['uid=%zz', '%zz'],
  ['uid=a+b', 'a+b'],
  ['uid=a=b', 'a=b'],
  ['uid=', ''],
  ['uid', undefined],
  ['uids=u1; xuid=u1; UID=u1', undefined],
  ['a="; uid=u1', 'u1'],
  ['', undefined],
  [';;;', undefined],
])('cookie:uid of %j is %j', (cookie, value) => {
  expect(read('cookie:uid', { headers: { cookie } })).toBe(value)
})

it('cookies may come on several lines', () => {
  expect(read('cookie:uid', { headers: { cookie: ['a=b', 'uid=u1'] } })).toBe('u1')
  expect(read('cookie:uid', {})).toBeUndefined()
})

it('reading takes any text without a throw, and giants without a wait', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[%=&;+"a-f0-9 ]*$/))
  fc.assert(
    fc.property(text, text, text, (first, second, argument) => {
      const headers = { cookie: first, [argument.toLowerCase()]: second }
      const more = { method: first, path: second, query: first, host: second, ip: first, headers }
      for (const dimension of dimensions) {
        const value = dimension.read(call(more), argument)
        expect(value === undefined || typeof value === 'string').toBe(true)
      }
    }),
    { numRuns: 1000 },
  )
  for (const piece of ['id', 'id&', 'id=%ff&', '%69d=%&', '&', '=', '%', 'x;', 'id=;']) {
    const giant = piece.repeat(200_000)
    expect(() => read('query:id', { query: giant })).not.toThrow()
    expect(() => read('cookie:id', { headers: { cookie: giant } })).not.toThrow()
  }
})

describe('findDimension', () => {
  it.each(['header', 'header:', 'query', 'cookie:', 'ip:4', 'method:', 'colour', '', ':', 'toString'])(
    '%j names no dimension',
    name => {
      expect(findDimension(name, dimensions)).toBeUndefined()
    },
  )

  it('finds those a user brings', () => {
    const plan = { name: 'plan', argument: 'none', read: () => 'gold' } as const
    expect(findDimension('plan', [...dimensions, plan])?.(call({}))).toBe('gold')
  })
})
