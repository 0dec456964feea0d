import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Call } from '../call.ts'
import { dimensions } from './index.ts'
import { compileKey } from './key.ts'

const identify = { account: ['header:x-account', 'cookie:uid'], tenant: ['header:x-tenant'], plan: [] }
const at = (more: Partial<Call>): Call => ({ method: 'GET', path: '/', ip: '203.0.113.9', ...more })
const key = (by: string[], more: Partial<Call>): string => compileKey(by, { identify, dimensions })(at(more))

describe('one dimension', () => {
  it('the key of one dimension is its unchanged value', () => {
    expect(key(['ip'], {})).toBe('203.0.113.9')
    expect(key(['resource'], { path: '/sms' })).toBe('/sms')
    expect(key(['header:x-a'], { headers: { 'x-a': '{u}:1' } })).toBe('{u}:1')
  })

  it('a rule that counts all calls together has an empty key', () => {
    expect(key([], {})).toBe('')
  })

  it('an attribute of the application wins over a header', () => {
    const headers = { 'x-account': 'from-header' }
    expect(key(['account'], { headers, attributes: { account: 'told' } })).toBe('told')
    expect(key(['device'], { attributes: { device: 'd1' } })).toBe('d1')
    expect(key(['plan'], { attributes: { plan: 'gold' } })).toBe('gold')
    expect(key(['resource'], { attributes: { resource: 'checkout' } })).toBe('checkout')
    expect(key(['account'], { headers, attributes: { account: ' ' } })).toBe('from-header')
  })

  it('a numeric attribute is read as text', () => {
    const attributes = { account: 42, device: 7n } as unknown as Record<string, string>
    expect(key(['account'], { attributes })).toBe('42')
    expect(key(['device'], { attributes })).toBe('7')
  })

  it('the first source with a value wins', () => {
    expect(key(['account'], { headers: { 'x-account': 'u1', cookie: 'uid=u2' } })).toBe('u1')
    expect(key(['account'], { headers: { 'x-account': '  ', cookie: 'uid=u2' } })).toBe('u2')
    expect(key(['tenant'], { headers: { 'x-tenant': 't' } })).toBe('t')
  })

  it.each(['account', 'device', 'tenant', 'plan'])(
    'without a value, %s falls back to the address in a separate key space',
    name => {
      const fallback = key([name], {})
      expect(fallback).toBe(key([name], { ip: '::ffff:203.0.113.9' }))
      expect(fallback).not.toBe(key([name], { ip: '203.0.113.10' }))
      expect(fallback).not.toBe(key([name], { attributes: { [name]: '203.0.113.9' } }))
      expect(fallback).not.toBe(key([name], { attributes: { [name]: fallback } }))
      expect(key([name], { ip: undefined })).toBe(key([name], { ip: 'nonsense' }))
    },
  )

  it.each(['ip', 'header:x-a', 'query:a', 'cookie:a', 'host'])('callers without %s share one key', name => {
    const shared = key([name], { ip: undefined })
    expect(shared).toBe(
      key([name], { ip: undefined, path: '/other', headers: { 'x-a': '', cookie: 'a=' }, query: 'a=+' }),
    )
    expect(shared).not.toBe(key([name], { attributes: { [name]: shared } }))
    expect(shared).not.toBe('')
  })

  it('a very long value is hashed into a short key', () => {
    const giant = 'x'.repeat(65_536)
    const long = key(['header:x-a'], { headers: { 'x-a': giant } })
    expect(long.length).toBe(44)
    expect(key(['header:x-a'], { headers: { 'x-a': `${giant}y` } })).not.toBe(long)
    expect(key(['header:x-a'], { headers: { 'x-a': long } })).not.toBe(long)
    expect(key(['header:x-a'], { headers: { 'x-a': 'x'.repeat(128) } })).toBe('x'.repeat(128))
    expect(key(['header:x-a'], { headers: { 'x-a': 'x'.repeat(129) } })).toHaveLength(44)
    expect(key(['header:x-a'], { attributes: { 'header:x-a': `${giant}\ud800` } })).not.toBe(
      key(['header:x-a'], { attributes: { 'header:x-a': `${giant}\ud801` } }),
    )
  })
})

describe('a missing dimension', () => {
  const missing = (choice: 'skip' | 'shared' | 'address', name: string, more: Partial<Call>) => {
    return compileKey([name], { identify, dimensions, missing: choice })(at(more))
  }

  it.each(['account', 'tenant', 'header:x-a'])('a missing dimension with %s is counted as the rule says', name => {
    expect(missing('shared', name, {})).toBe(missing('shared', name, { ip: '203.0.113.10' }))
    expect(missing('address', name, {})).not.toBe(missing('address', name, { ip: '203.0.113.10' }))
    expect(missing('address', name, { ip: undefined })).toBe(missing('shared', name, {}))
  })

  it('an account name cannot imitate the key of another caller', () => {
    const texts = ['203.0.113.9', '\u0002203.0.113.9', '\u0004', '\u0001\u0004', '']
    const keys = [
      missing('shared', 'account', {}),
      missing('address', 'account', {}),
      ...texts.slice(0, 4).map(account => missing('address', 'account', { attributes: { account } })),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('a missing dimension counted by address uses the configured IPv6 prefix', () => {
    const settings = { ipv6Prefix: 48, nowMs: () => 0 }
    const ready = dimensions.map(dimension => dimension.set?.(settings) ?? dimension)
    const read = compileKey(['account'], { identify, dimensions: ready })
    expect(read(at({ ip: '2001:db8:1:2::9' }))).toBe(read(at({ ip: '2001:db8:1:ffff::1' })))
    expect(read(at({ ip: '2001:db8:1:2::9' }))).not.toBe(read(at({ ip: '2001:db8:2:2::9' })))
    expect(read(at({ ip: '::ffff:203.0.113.9' }))).toBe(read(at({ ip: '203.0.113.9' })))
    expect(read(at({ ip: '203.0.113.10' }))).not.toBe(read(at({ ip: '203.0.113.9' })))
  })
})

describe('host names of services', () => {
  it.each([['color'], ['header'], ['ip:4'], ['constructor'], ['__proto__'], ['']])(
    'the dimension name %j is refused',
    name => {
      expect(() => compileKey([name], { identify, dimensions })).toThrow(expect.objectContaining({ code: 'BAD_RULES' }))
    },
  )

  it('an unknown source is refused', () => {
    expect(() => compileKey(['a'], { identify: { a: ['header:x', 'account'] }, dimensions })).toThrow('"account"')
  })

  it('identify may redefine a dimension', () => {
    const read = compileKey(['ip'], { identify: { ip: ['header:x-real-ip'] }, dimensions })
    expect(read(at({ headers: { 'x-real-ip': 'a' } }))).toBe('a')
  })
})

describe('several dimensions', () => {
  const names = ['account', 'header:x-a', 'query:b', 'tenant']
  const special = fc.constantFrom(
    '',
    ' ',
    '1',
    '1:',
    '2:1',
    '{}',
    '{a}',
    '__proto__',
    '😀',
    '\u0001',
    '\u0002',
    '\u0004',
    ':',
    ',',
    '\0',
  )
  const value = fc.oneof(
    special,
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.array(special, { maxLength: 4 }).map(parts => parts.join('')),
    fc.string({ minLength: 120, maxLength: 140 }),
    fc.constant(undefined),
  )
  const withAttributes = (values: readonly (string | undefined)[]): Partial<Call> => ({
    attributes: Object.fromEntries(names.map((name, index) => [name, values[index]])),
  })
  const plain = (text: string | undefined) => (text === undefined || text.trim() === '' ? undefined : text)

  it.each([1, 2, 3, 4])('different tuples of %i have different keys', width => {
    const by = names.slice(0, width)
    const tuple = fc.array(value, { minLength: width, maxLength: width })
    const read = compileKey(by, { identify, dimensions })
    // pairs that differ in where a part ends are rare by chance, so they are made: cut one text at two places
    const cut = fc.tuple(fc.string({ unit: fc.constantFrom('1', ':', '2', 'a') }), fc.nat(9), tuple)
    const moved = cut.map(([text, where, rest]) => [text.slice(0, where), text.slice(where), ...rest].slice(0, width))
    const either = fc.oneof(tuple, moved)
    fc.assert(
      fc.property(either, either, (left, right) => {
        const same = left.every((text, index) => plain(text) === plain(right[index]))
        expect(read(at(withAttributes(left))) === read(at(withAttributes(right)))).toBe(same)
      }),
      { numRuns: randomRuns(1000) },
    )
  })

  it('values of several dimensions cannot be shifted into each other', () => {
    const of = (account: string, a: string) => key(['account', 'header:x-a'], withAttributes([account, a]))
    expect(of('a', 'b_c')).not.toBe(of('a_b', 'c'))
    expect(of('1', '1:1')).not.toBe(of('1:1', '1'))
    expect(of('a', 'b')).not.toBe(of('b', 'a'))
    expect(of('', 'a')).not.toBe(of('a', ''))
  })

  it('keys stay short whatever the values', () => {
    expect(key(names, withAttributes(names.map(() => 'x'.repeat(70_000)))).length).toBeLessThan(200)
  })
})
