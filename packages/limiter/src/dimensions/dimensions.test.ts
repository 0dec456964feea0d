import { cpuTimeOf } from '@test/cpu-time'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Call } from '../call.ts'
import { findDimension } from './find-dimension.ts'
import { dimensions } from './index.ts'
import { compileAmbiguity } from './reading/ambiguity.ts'

const call = (more: Partial<Call>): Call => ({ method: 'GET', path: '/', ...more })

function read(name: string, more: Partial<Call>): string | undefined {
  const reader = findDimension(name, dimensions)
  if (reader === undefined) throw new Error(`no dimension ${name}`)
  return reader(call(more))
}

function isAmbiguous(name: string, more: Partial<Call>): boolean {
  return compileAmbiguity([name], { identify: {}, dimensions })?.(call(more)) ?? false
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
  ['resource', { path: '/x/../Orders' }, '/Orders'],
  ['resource', { path: '/Orders/7/', caseInsensitive: true }, '/orders/7'],
  ['method', { method: 'POST' }, 'POST'],
  ['method', { method: 'HEAD' }, 'GET'],
  ['method', { method: 'head' }, 'GET'],
  ['host', { host: 'Example.COM' }, 'example.com'],
  ['host', { host: 'example.com.:8080' }, 'example.com'],
  ['host', { host: '[2001:DB8::1]:8080' }, '[2001:db8::1]'],
  ['host', { host: '[2001:DB8:0:0::1]' }, '[2001:db8::1]'],
  ['host', { host: '[2001:db8::1' }, undefined],
  ['host', { host: '.example.com' }, undefined],
  ['host', { host: 'a..example.com' }, undefined],
  ['host', { host: 'u@example.com' }, undefined],
  ['host', { host: 'example.com:x' }, undefined],
  ['host', { host: '' }, undefined],
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
  ['client-certificate:cn', { clientCertificate: { cn: 'billing', fingerprint: 'ab' } }, 'billing'],
  ['client-certificate:fingerprint', { clientCertificate: { fingerprint: 'ab' } }, 'ab'],
  ['client-certificate:uri', { clientCertificate: { fingerprint: 'ab' } }, undefined],
  ['client-certificate:cn', { headers: { 'client-certificate': 'billing', 'client-cert': 'billing' } }, undefined],
  ['header:a:b', { headers: { 'a:b': 'u1' } }, 'u1'],
])('%s of %j is %j', (name, more, value) => {
  expect(read(name, more)).toBe(value)
})

it.each([
  ['id=u1', 'u1'],
  ['a=b&id=u1&c', 'u1'],
  ['id=u1&id=u2', 'u1'],
  ['id=&id=u1&&id', 'u1'],
  ['%69d=u1', 'u1'],
  ['%69%64=u1', 'u1'],
  ['id=u%31', 'u1'],
  ['id=a+b%2Bc', 'a b+c'],
  ['id=%E8%AE%A2', '订'],
  ['id=%zz', '%zz'],
  ['id=u%31&id=%', 'u1'],
  ['id=+u1%20', 'u1'],
  ['id=+&id=u1', 'u1'],
  ['a=1;id=u1', 'u1'],
  ['id==x', '=x'],
  ['id', undefined],
  ['id=', undefined],
  ['', undefined],
  ['ids=u1', undefined],
  ['i=u1', undefined],
  ['xid=u1', undefined],
  ['id[]=u1', 'u1'],
  ['id%5B0%5D=u1', 'u1'],
  ['id[a][b]=u1', 'u1'],
  ['ID=u1', 'u1'],
  ['+id=u1', 'u1'],
  ['id%00x=u1', 'u1'],
  ['id.=u1', undefined],
  ['i[d]=u1', undefined],
  ['%=u1&%6=u1&%6', undefined],
  ['a&b&id', undefined],
  ['a?id=u1', undefined],
])('query:id of ?%s is %j', (query, value) => {
  expect(read('query:id', { query })).toBe(value)
})

it('a query parameter may have any name', () => {
  expect(read('query:订单', { query: 'a=b&%E8%AE%A2%E5%8D%95=7' })).toBe('7')
  expect(read('query:订单', { query: '订单=7' })).toBe('7')
  expect(read('query:a b', { query: 'a+b=1&a%20b=2&a%2Bb=3' })).toBe('1')
})

it('a query parameter is what the URL parser finds', () => {
  const word = fc.oneof(
    fc.constantFrom('id', '%69d', 'a', '+', '%20', '%2B', ''),
    fc.string({ unit: 'grapheme-ascii' }),
  )
  const pair = fc
    .tuple(word, word)
    .map(([name, value]) => `${encodeURI(name)}=${encodeURI(value)}`.replaceAll(';', '%3B'))
  fc.assert(
    fc.property(fc.array(pair), pairs => {
      const query = pairs.join('&')
      const params = [...new URLSearchParams(query)].map(([name, value]) => [
        name.replace(/^ +/, '').toLowerCase(),
        value.trim(),
      ])
      const values = params
        .filter(([name, value]) => /^id(?:\[|\0|$)/.test(name!) && value !== '')
        .map(([, value]) => value)
      expect(read('query:id', { query })).toBe(values[0])
      expect(isAmbiguous('query:id', { query })).toBe(new Set(values).size > 1)
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
  ['uid=', undefined],
  ['uid=; uid=u1', 'u1'],
  ['uid="\\165\\1611"', 'uq1'],
  ['uid="u\\1"', 'u1'],
  ['uid', undefined],
  ['uids=u1; xuid=u1', undefined],
  ['UID=u1', 'u1'],
  ['uid[]=u1', 'u1'],
  ['%75id=u1', 'u1'],
  ['a="; uid=u1', 'u1'],
  ['', undefined],
  [';;;', undefined],
])('cookie:uid of %j is %j', (cookie, value) => {
  expect(read('cookie:uid', { headers: { cookie } })).toBe(value)
})

it.each([
  ['query:id', '', false],
  ['query:id', 'id=u1', false],
  ['query:id', 'id=u1&id=u1&ID=u1&id[]=%751&id=+u1', false],
  ['query:id', 'id=u1&id=&id', false],
  ['query:id', 'id=u1&ids=u2&xid=u3&x[id]=u4', false],
  ['query:id', 'id=u1&id=u2', true],
  ['query:id', 'id=u2&id=u1', true],
  ['query:id', 'id=u1&ID=u2', true],
  ['query:id', 'id=u1&id[]=u2', true],
  ['query:id', 'id[1]=u1&id[0]=u2', true],
  ['query:id', 'id=u1&%69%64%5b%5d=u2', true],
  ['query:id', 'id=u1;id=u2', true],
  ['query:id', 'id=u1;x', true],
  ['query:id', 'id=u1&a=b;id=u2', true],
  ['query:id', '+id=u1&id=u2', true],
  ['query:a_b', 'a_b=u1&a.b=u2', true],
  ['query:a_b', 'a_b=u1&a+b=u2', true],
  ['query:订', '订=u1&%E8%AE%A2=u2', true],
  ['cookie:id', 'id=u1', false],
  ['cookie:id', 'id=u1; id="u1"; a=b; id=%751; id=', false],
  ['cookie:id', 'id=u1; id=u2', true],
  ['cookie:id', 'id=u2;a=b;ID=u1', true],
  ['cookie:id', 'a="; id=u2; b="; id=u1', true],
  ['cookie:id', 'id=u1; id[]=u2', true],
])('%s of %s is ambiguous: %s', (name, text, ambiguous) => {
  expect(isAmbiguous(name, { query: text, headers: { cookie: text } })).toBe(ambiguous)
})

it.each([
  [{ host: 'a.com' }, false],
  [{ host: 'a.com', headers: { ':authority': 'a.com' } }, false],
  [{ host: 'a.com', headers: { ':authority': 'A.com:443' } }, false],
  [{ host: 'a.com', headers: { ':authority': 'b.com' } }, true],
])('the host of %j is ambiguous: %s', (more, ambiguous) => {
  expect(isAmbiguous('host', more)).toBe(ambiguous)
})

it('attributes of the application are never ambiguous, and later sources are not checked after a clear one', () => {
  const lookup = { identify: { account: ['header:x-account', 'query:id'] }, dimensions }
  const isAmbiguousAccount = compileAmbiguity(['ip', 'account'], lookup)!
  const query = 'id=u1&id=u2'
  expect(isAmbiguousAccount(call({ query }))).toBe(true)
  expect(isAmbiguousAccount(call({ query, attributes: { account: 'u3' } }))).toBe(false)
  expect(isAmbiguousAccount(call({ query, headers: { 'x-account': 'u3' } }))).toBe(false)
  expect(compileAmbiguity(['ip', 'method', 'header:x'], lookup)).toBeUndefined()
})

it('a query or a Cookie header of 64 KiB is read within a moment', () => {
  const spentMs = cpuTimeOf(() => {
    for (const text of ['id=u&', 'id=%zz&', 'id;', 'ID=%75;', '%69d[', 'id', '&;=', 'id=;']) {
      const long = text.repeat(65_536 / text.length)
      for (const name of ['query:id', 'cookie:id']) isAmbiguous(name, { query: long, headers: { cookie: long } })
    }
  })
  expect(spentMs).toBeLessThan(1000)
})

it('cookies may come on several lines', () => {
  expect(read('cookie:uid', { headers: { cookie: ['a=b', 'uid=u1'] } })).toBe('u1')
  expect(read('cookie:uid', {})).toBeUndefined()
})

it('dimensions read any text without throwing, and large ones without delay', () => {
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
    { numRuns: randomRuns(250) },
  )
  for (const piece of ['id', 'id&', 'id=%ff&', '%69d=%&', '&', '=', '%', 'x;', 'id=;']) {
    const giant = piece.repeat(200_000)
    expect(() => read('query:id', { query: giant })).not.toThrow()
    expect(() => read('cookie:id', { headers: { cookie: giant } })).not.toThrow()
  }
})

describe('findDimension', () => {
  it.each(['header', 'header:', 'query', 'cookie:', 'ip:4', 'method:', 'color', '', ':', 'toString'])(
    'findDimension finds nothing for %j',
    name => {
      expect(findDimension(name, dimensions)).toBeUndefined()
    },
  )

  it('findDimension finds dimensions of users', () => {
    const plan = { name: 'plan', argument: 'none', read: () => 'gold' } as const
    expect(findDimension('plan', [...dimensions, plan])?.(call({}))).toBe('gold')
  })
})
