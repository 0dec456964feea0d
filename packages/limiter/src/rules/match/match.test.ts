import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import type { Call } from '../../call.ts'
import type { Match } from '../rule.ts'
import { compileMatch, type Matchable } from './match.ts'

const at = (more: Partial<Call>): Call => ({ method: 'GET', path: '/', ...more })

function positions(matches: readonly Match[], call: Call): number[] {
  const rules = matches.map((match, position) => ({ match, position }))
  const found: typeof rules = []
  const count = compileMatch(rules)(call, found)
  return found.slice(0, count).map(rule => rule.position)
}

const meets = (match: Match, call: Partial<Call>): boolean => positions([match], at(call)).length === 1

describe('paths', () => {
  it.each([
    ['/Api/Login', '/api/LOGIN', true],
    ['/v*-BETA/x', '/V1-beta/x', true],
    ['/订单', '/%e8%ae%a2%e5%8d%95', true],
    ['/café', '/CAF%C3%89', true],
    ['/CAF%C3%89', '/café', true],
    ['/key', '/%E2%84%AAey', true],
    ['/a%5Cb', '/A\\b', true],
    ['/a', '/b', false],
  ])('the rule path %s matches %s: %s', (pattern, path, met) => {
    expect(meets({ path: [pattern] }, { path, caseInsensitive: true })).toBe(met)
  })

  it('a rule path matches its letters however rule and call escape them', () => {
    const word = fc
      .string({ minLength: 1, maxLength: 8, unit: fc.constantFrom(...'aé ß|!订€😀+,~') })
      .filter(text => text.trim() === text)
    const inBytes = (text: string): string => Buffer.from(text).toString('latin1')
    const escaped = (text: string): string => encodeURIComponent(text)
    const spelling = fc.constantFrom(escaped, (text: string) => escaped(text).toLowerCase(), encodeURI)
    fc.assert(
      fc.property(word, spelling, fc.constantFrom(escaped, inBytes, encodeURI, String), (letters, ofRule, ofCall) => {
        expect(meets({ path: [`/x/${ofRule(letters)}`] }, { path: `/x/${ofCall(letters)}` })).toBe(true)
        expect(meets({ path: [`/x/${ofRule(letters)}`] }, { path: `/x/${ofCall(letters)}z` })).toBe(false)
      }),
      { numRuns: randomRuns(300) },
    )
  })

  it('rules about each path that a call had before it was rewritten match', () => {
    const rules = [{ path: ['/x'] }, { path: ['/v1/x'] }, { path: ['/api/x'] }, { path: ['/y'] }]
    expect(positions(rules, at({ path: '/x', earlierPaths: ['/v1/x', '/%61pi/x'] }))).toEqual([0, 1, 2])
  })

  it('rule paths that differ only by case both match without case sensitivity, and one of them with it', () => {
    const rules = [{ path: ['/a'] }, { path: ['/A'] }, { path: ['/b'] }]
    expect(positions(rules, at({ path: '/A', caseInsensitive: true }))).toEqual([0, 1])
    expect(positions(rules, at({ path: '/A' }))).toEqual([1])
  })

  it('rule paths match a path with dots both as written and as resolved', () => {
    const rules = [{ path: ['/files/**'] }, { path: ['/b'] }, { path: ['/c'] }]
    expect(positions(rules, at({ path: '/files/../b' }))).toEqual([0, 1])
    expect(positions(rules, at({ path: '/FILES/../B', caseInsensitive: true }))).toEqual([0, 1])
  })

  it.each([
    ['/sms', '/sms', true],
    ['/sms', '/sms/', true],
    ['/sms/', '/sms', true],
    ['/sms', '//sms//', true],
    ['/sms', '/sms;x=1', true],
    ['/sms', '/SMS', false],
    ['/sms', '/sms/x', false],
    ['/sms', '/', false],
    ['/', '/', true],
    ['/', '', true],
    ['/', '/x', false],
    ['/orders/**', '/orders', true],
    ['/orders/**', '/orders/', true],
    ['/orders/**', '/orders/1/items/2', true],
    ['/orders/**', '/ordersx', false],
    ['/orders/*', '/orders/1', true],
    ['/orders/*', '/orders', false],
    ['/orders/*', '/orders/1/2', false],
    ['/orders/:id/items', '/orders/7/items', true],
    ['/orders/:id/items', '/orders/items', false],
    ['/**', '/', true],
    ['/**', '/a/b', true],
    ['**', '/a/b', true],
    ['/**', '*', true],
    ['/**/end', '/end', true],
    ['/**/end', '/a/b/end', true],
    ['/**/end', '/a/end/b', false],
    ['/a/**/b/**/c', '/a/x/b/y/z/c', true],
    ['/a/**/b/**/c', '/a/b/c', true],
    ['/a/**/b/**/c', '/a/c/b', false],
    ['/a/**/**', '/a', true],
    ['/img/*.png', '/img/cat.png', true],
    ['/img/*.png', '/img/.png', true],
    ['/img/*.png', '/img/cat.jpg', false],
    ['/img/*.png', '/img/a/cat.png', false],
    ['/v*-beta/x', '/v2-beta/x', true],
    ['/ab*ab', '/ab', false],
    ['/ab*ab', '/abab', true],
    ['/*b*', '/abc', true],
    ['/*b*', '/acc', false],
    ['/a*', '/abc', true],
    ['/books:batch', '/books:batch', true],
    ['/订单/*', '/订单/1', true],
    ['/订单/*', '/%E8%AE%A2%E5%8D%95/1', true],
    ['/订*', '/%E8%AE%A2%E5%8D%95', true],
    ['/%e8%ae%a2%e5%8d%95', '/%E8%AE%A2%E5%8D%95', true],
    ['/a b', '/a%20b', true],
    ['/%61', '/a', true],
    ['/a?b', '/a', false],
  ])('%s and %s: %j', (pattern, path, expected) => {
    expect(meets({ path: [pattern] }, { path })).toBe(expected)
  })

  it('a rule with several paths matches by any of them, and is found once', () => {
    const match = { path: ['/a/**', '/a/*', '/a/b', '/c'] }
    expect(meets(match, { path: '/a/b' })).toBe(true)
    expect(meets(match, { path: '/c' })).toBe(true)
    expect(meets(match, { path: '/d' })).toBe(false)
  })
})

describe('methods, hosts and headers', () => {
  it.each<[Match, Partial<Call>, boolean]>([
    [{}, {}, true],
    [{ path: [], method: [], host: [], header: { a: [] } }, {}, true],
    [{ method: ['POST', 'PUT'] }, { method: 'PUT' }, true],
    [{ method: ['POST', 'PUT'] }, { method: 'GET' }, false],
    [{ method: ['get'] }, { method: 'GET' }, true],
    [{ method: ['GET'] }, { method: 'get' }, true],
    [{ method: ['GET'] }, { method: 'HEAD' }, true],
    [{ method: ['HEAD'] }, { method: 'HEAD' }, true],
    [{ method: ['HEAD'] }, { method: 'GET' }, false],
    [{ method: ['POST'] }, { method: 'HEAD' }, false],
    [{ host: ['api.example.com'] }, { host: 'API.Example.com.:8080' }, true],
    [{ host: ['API.Example.com'] }, { host: 'api.example.com' }, true],
    [{ host: ['api.example.com'] }, { host: 'example.com' }, false],
    [{ host: ['api.example.com'] }, {}, false],
    [{ host: ['*.example.com'] }, { host: 'a.b.example.com:443' }, true],
    [{ host: ['*.example.com'] }, { host: 'example.com' }, false],
    [{ host: ['*.example.com'] }, { host: '.example.com' }, true],
    [{ host: ['*.example.com'] }, { host: 'u@a.example.com..:80' }, true],
    [{ host: ['[2001:DB8::1]'] }, { host: '[2001:db8:0:0::1]:80' }, true],
    [{ host: ['*.example.com'] }, { host: 'badexample.com' }, false],
    [{ host: ['[::1]'] }, { host: '[::1]:80' }, true],
    [{ host: ['a.com'] }, { host: 'b.com', headers: { host: 'b.com', ':authority': 'A.com' } }, true],
    [{ header: { 'X-Plan': ['free', 'trial'] } }, { headers: { 'x-plan': 'trial' } }, true],
    [{ header: { 'x-plan': ['free'] } }, { headers: { 'x-plan': 'Free' } }, false],
    [{ header: { 'x-plan': ['free'] } }, { headers: {} }, false],
    [{ header: { 'x-plan': ['free'] } }, {}, false],
    [{ header: { 'x-plan': ['free'] } }, { headers: { 'x-plan': ['gold', 'free'] } }, true],
    [{ header: { 'x-plan': ['free'] } }, { headers: { 'x-plan': 'gold, free' } }, true],
    [{ header: { 'x-plan': ['free'] } }, { headers: { 'x-plan': 'gold,free ,x' } }, true],
    [{ header: { 'x-plan': ['a, b'] } }, { headers: { 'x-plan': 'a, b' } }, true],
    [{ header: { 'x-plan': ['free'] } }, { headers: { 'x-plan': 'gold; free' } }, false],
    [{ header: { a: ['1'], b: ['2'] } }, { headers: { a: '1', b: '2' } }, true],
    [{ header: { a: ['1'], b: ['2'] } }, { headers: { a: '1' } }, false],
    [{ header: { constructor: ['1'] } }, { headers: {} }, false],
    [{ path: ['/a'], method: ['POST'] }, { path: '/a', method: 'POST' }, true],
    [{ path: ['/a'], method: ['POST'] }, { path: '/a' }, false],
    [{ path: ['/a'], method: ['POST'] }, { path: '/b', method: 'POST' }, false],
  ])('%j and %j: %j', (match, call, expected) => {
    expect(meets(match, call)).toBe(expected)
  })
})

it('rules are found in the order of the document, and the array is used again', () => {
  const rules: Match[] = [
    { path: ['/a/**'] },
    {},
    { method: ['GET'] },
    { path: ['/a'] },
    { host: ['h'] },
    { path: ['/**'] },
  ]
  const match = compileMatch(rules.map((match, position) => ({ match, position })))
  const found: (Matchable & { position: number })[] = []
  const find = (call: Call) => found.slice(0, match(call, found)).map(rule => rule.position)
  expect(find(at({ path: '/a', host: 'h' }))).toEqual([0, 1, 2, 3, 4, 5])
  expect(find(at({ path: '/b', method: 'PUT' }))).toEqual([1, 5])
  expect(find(at({ path: '/a', host: 'h' }))).toEqual([0, 1, 2, 3, 4, 5])
  expect(find(at({ path: '/a/b' }))).toEqual([0, 1, 2, 5])
})

it('fields of a call that no rule uses are not read', () => {
  const call = new Proxy(at({ headers: { x: 'y' } }), {
    get: (_, name) => {
      throw new Error(`read ${String(name)}`)
    },
  })
  expect(compileMatch([{ match: {} }, { match: {} }])(call, [])).toBe(2)
  expect(() => compileMatch([{ match: { path: ['/a'] } }])(call, [])).toThrow('read path')
})

it('a thousand matching rules are found in order', () => {
  const matches = Array.from({ length: 1000 }, (_, index) =>
    index % 2 === 0 ? { path: ['/**'] } : { method: ['GET'] },
  )
  expect(positions(matches, at({ path: '/a' }))).toEqual(matches.map((_, position) => position))
})

describe('against a plain reading of the rules', () => {
  const segments = (path: string): string[] => path.split('/').filter(segment => segment !== '')

  function fits(pattern: readonly string[], path: readonly string[]): boolean {
    const [head, ...rest] = pattern
    if (head === undefined) return path.length === 0
    if (head === '**') return path.some((_, skipped) => fits(rest, path.slice(skipped))) || fits(rest, [])
    const [first, ...others] = path
    if (first === undefined) return false
    const glob = head.startsWith(':') ? '*' : head
    const expression = glob
      .split('*')
      .map(piece => piece.replace(/[.]/g, '\\.'))
      .join('.*')
    return new RegExp(`^${expression}$`).test(first) && fits(rest, others)
  }

  function reference(match: Match, call: Call): boolean {
    const host = (call.host ?? '').toLowerCase().replace(/:\d+$/, '')
    const values = (name: string) => [call.headers?.[name] ?? []].flat().flatMap(line => [line, ...line.split(', ')])
    return (
      (match.path ?? ['/**']).some(pattern => fits(segments(pattern), segments(call.path))) &&
      (match.method ?? [call.method]).some(
        name => name === call.method || (name === 'GET' && call.method === 'HEAD'),
      ) &&
      (match.host ?? [host]).some(name => (name.startsWith('*.') ? host.endsWith(name.slice(1)) : name === host)) &&
      Object.entries(match.header ?? {}).every(([name, wanted]) => values(name).some(value => wanted.includes(value)))
    )
  }

  const word = fc.constantFrom('a', 'b', 'ab', 'a.b')
  const patternSegment = fc.oneof(word, fc.constantFrom('*', '**', ':id', 'a*', '*b', '*.*', 'a*b', '*a*'))
  const pattern = fc.array(patternSegment, { maxLength: 4 }).map(parts => `/${parts.join('/')}`)
  const path = fc.array(fc.oneof(word, fc.constant('')), { maxLength: 5 }).map(parts => `/${parts.join('/')}`)
  const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT')
  const host = fc.constantFrom('x.com', 'a.x.com', 'b.a.x.com', 'y.com')
  const hostPattern = fc.oneof(host, fc.constantFrom('*.x.com', '*.a.x.com', '*.com'))
  const value = fc.constantFrom('1', '2', '3')
  const name = fc.oneof(
    fc.constantFrom('p', 'q'),
    fc.nat(20).map(index => `h${index}`),
  )
  const some = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 3 })
  const match: fc.Arbitrary<Match> = fc.record(
    {
      path: some(pattern),
      method: some(method),
      host: some(hostPattern),
      header: fc.dictionary(name, some(value), { maxKeys: 2 }),
    },
    { requiredKeys: [] },
  )
  const header = fc.oneof(
    value,
    fc.array(value, { maxLength: 3 }),
    some(value).map(values => values.join(', ')),
  )
  const call: fc.Arbitrary<Call> = fc.record(
    { method, path, host, headers: fc.dictionary(name, header, { maxKeys: 6 }) },
    { requiredKeys: ['method', 'path'] },
  )

  it.each([3, 60, 400])('the index and a plain scan find the same rules among %i', most => {
    fc.assert(
      fc.property(
        fc.array(match, { maxLength: most, size: 'max' }),
        fc.array(call, { minLength: 1, maxLength: 8 }),
        (matches, calls) => {
          const rules = matches.map((match, position) => ({ match, position }))
          const find = compileMatch(rules)
          const found: typeof rules = []
          for (const one of calls) {
            const expected = rules.filter(rule => reference(rule.match, one))
            expect(found.slice(0, find(one, found))).toEqual(expected)
          }
        },
      ),
      { numRuns: randomRuns(most > 100 ? 10 : 50) },
    )
  })
})

describe('cost', () => {
  /** A tenth of the rules of each kind; those of group 0 are the ones that the calls below may meet. */
  function mixedRules(count: number): Matchable[] {
    return Array.from({ length: count }, (_, index) => {
      const group = Math.floor(index / 10)
      const kinds: Match[] = [
        { path: [`/svc${group}/list`] },
        { path: [`/svc${group}/items/**`] },
        { path: [`/svc${group}/users/:id`], method: ['GET'] },
        { host: [`h${group}.example.com`] },
        { header: { 'x-tenant': [`t${group}`] } },
        { path: ['/login'], header: { 'x-plan': [`p${group}`] } },
        { path: ['/login'], host: [`*.z${group}.com`], method: ['POST'] },
        { method: ['DELETE'], host: [`h${group}.example.com`] },
        { path: [`/img/user${String(group).padStart(4, '0')}-*.png`] },
        { header: { [`x-only-${group}`]: ['1'] }, method: ['GET'] },
      ]
      return { match: kinds[index % 10]! }
    })
  }

  const calls = [
    at({ path: '/svc0/users/42', host: 'h0.example.com', headers: { 'x-tenant': 't0', accept: '*/*' } }),
    at({ path: '/login', method: 'POST', host: 'a.z0.com', headers: { 'x-plan': 'p0', 'x-tenant': 'none' } }),
    at({ path: '/svc0/items/a/b/c', host: 'other.com', headers: { 'x-only-0': '1' } }),
    at({ path: '/img/user0000-cat.png', method: 'DELETE', host: 'h0.example.com' }),
    at({ path: '/nothing/here', host: 'other.com', headers: { 'x-tenant': 'none', 'x-plan': 'none' } }),
    at({ path: '/login', host: 'other.com', headers: { 'x-plan': 'none' } }),
  ]

  /** Every step of a search looks into a Map or a Set. */
  function lookups(rules: readonly Matchable[], call: Call): number {
    const find = compileMatch(rules)
    const spies = [vi.spyOn(Map.prototype, 'get'), vi.spyOn(Set.prototype, 'has')]
    try {
      find(call, [])
      return spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
  }

  it('10 000 rules take at most twice the steps of 10', () => {
    const few = calls.map(call => lookups(mixedRules(10), call))
    const many = calls.map(call => lookups(mixedRules(10_000), call))
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
    expect(sum(few)).toBeGreaterThan(0)
    expect(sum(many)).toBeLessThanOrEqual(2 * sum(few))
  })

  it('the steps of a match do not grow from 1 000 to 10 000 rules', () => {
    for (const call of calls) expect(lookups(mixedRules(10_000), call)).toBe(lookups(mixedRules(1000), call))
  })

  it('rules that differ only in a second condition are found without testing each rule', () => {
    const rules = Array.from({ length: 10_000 }, (_, index) => ({
      match: { path: ['/login'], host: [`h${index % 100}.com`], header: { 'x-plan': [`p${Math.floor(index / 100)}`] } },
    }))
    expect(lookups(rules, at({ path: '/login', host: 'h7.com', headers: { 'x-plan': 'p9' } }))).toBeLessThan(12)
  })

  it('rules that multiply hosts by headers are compiled without multiplying memory', () => {
    const list = (prefix: string) => Array.from({ length: 2000 }, (_, index) => `${prefix}${index}`)
    const matches = Array.from({ length: 12 }, (_, index) => ({
      path: list('/p'),
      host: list('h'),
      header: { a: list('a').slice(index * 100), b: list('b') },
    }))
    const call = at({ path: '/p1999', host: 'h1999', headers: { a: 'a420', b: 'b1999' } })
    expect(positions(matches, call)).toEqual([0, 1, 2, 3, 4])
  })

  it('hostile paths and headers are matched in bounded time', () => {
    const find = compileMatch([
      { match: { path: ['/*a*a*a*a*a*a*a*a*b'] } },
      { match: { path: ['/**/a/**/a/**/a/**/a/**/b'] } },
      { match: { path: ['/**/a/**'] } },
      { match: { header: { x: ['y'] } } },
      { match: { host: ['*.b'] } },
    ])
    expect(find(at({ path: `/${'a'.repeat(65_536)}` }), [])).toBe(0)
    expect(find(at({ path: '/a'.repeat(32_768) }), [])).toBe(1)
    expect(find(at({ path: '/'.repeat(65_536) }), [])).toBe(0)
    expect(find(at({ host: `${'a.'.repeat(32_000)}b` }), [])).toBe(1)
    expect(
      find(at({ path: '/a;'.repeat(22_000), host: 'a.'.repeat(32_000), headers: { x: 'a,'.repeat(32_000) } }), []),
    ).toBe(1)
    expect(compileMatch([{ match: { path: ['/a'.repeat(30_000)] } }])(at({ path: '/a'.repeat(30_000) }), [])).toBe(1)
  })
})
