import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { affinityOf, cookieFor } from './affinity.ts'
import { readStickyCookie, tagOf, writeStickyCookie } from './sticky-cookie.ts'

const sticky = { kind: 'cookie', name: 'route' } as const
const address = () => '203.0.113.9'
const place = { path: '/app', isSecure: false }

describe('the cookie of a sticky route', () => {
  test('the cookie of a sticky route is read as it was written, among others', () => {
    const { id, tag } = { id: 'a'.repeat(16), tag: tagOf('http://10.0.0.1') }
    const cookie = writeStickyCookie({ name: 'route', id, tag, path: '/', isSecure: true, maxAgeMs: 90_500 })
    expect(cookie).toBe(`route=${id}.${tag}; Path=/; Max-Age=91; HttpOnly; SameSite=Lax; Secure`)
    expect(readStickyCookie(`a=1; xroute=2; route=no; route=${id}.${tag}; b`, 'route')).toEqual({ id, tag })
  })

  test('the cookie of a sticky route shows nothing of an address, and is another one for every address', () => {
    const tags = ['http://10.0.0.1:3000', 'http://10.0.0.2:3000', 'unix:/run/app.sock'].map(tagOf)
    expect(new Set(tags).size).toBe(3)
    for (const tag of tags) expect(tag).toMatch(/^[\w-]{16}$/)
  })

  test('the cookie of a sticky route is set for a new caller and again only when the caller moves', () => {
    const affinity = affinityOf(sticky, { headers: {}, address })
    const set = cookieFor(sticky, affinity, { ...place, tag: tagOf('one') })!
    const cookie = set.split(';')[0]!
    const next = affinityOf(sticky, { headers: { cookie }, address })
    expect(next).toEqual({ key: affinity.key, id: affinity.id, tag: tagOf('one') })
    expect(cookieFor(sticky, next, { ...place, tag: tagOf('one') })).toBeUndefined()
    expect(cookieFor(sticky, next, { ...place, tag: tagOf('two') })).toContain(
      `${affinity.id}.${tagOf('two')}; Path=/app;`,
    )
  })

  test('an invented cookie of a sticky route is ignored or harmless', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), text => {
        const { key, id } = affinityOf(sticky, { headers: { cookie: `route=${text}` }, address })
        expect(Number.isSafeInteger(key)).toBe(true)
        expect(id).toMatch(/^[\w-]{16}$/)
      }),
    )
  })
})

describe('the hash of a sticky route', () => {
  test.each([
    ['ip', '', { cookie: 'a=1' }, { cookie: 'a=2' }],
    ['header', 'x-user', { 'x-user': 'ann', cookie: 'a=1' }, { 'x-user': 'ann' }],
    ['cookie', 'sid', { cookie: 'a=1; sid=7' }, { cookie: 'sid=7' }],
  ] as const)('the hash of a sticky route is the same for calls with the same %s', (from, name, one, other) => {
    const settings = { kind: 'hash', from, name } as const
    const first = affinityOf(settings, { headers: one, address })
    expect(first.key).toBeTypeOf('number')
    expect(affinityOf(settings, { headers: other, address })).toEqual(first)
  })

  test('a sticky route leaves calls without the hashed value to the balancer', () => {
    expect(affinityOf({ kind: 'hash', from: 'header', name: 'x-user' }, { headers: {}, address })).toEqual({})
    expect(affinityOf({ kind: 'hash', from: 'cookie', name: 'sid' }, { headers: { cookie: 'sid=' }, address })).toEqual(
      {},
    )
  })
})
