import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countedPath, normalizeTarget } from './path.ts'

describe('normalizeTarget', () => {
  it.each([
    ['/', '/'],
    ['/api/login', '/api/login'],
    ['/api/login/', '/api/login/'],
    ['/API/Login', '/API/Login'],
    ['/api//login', '/api/login'],
    ['//api/login', '/api/login'],
    ['////', '/'],
    ['/api/./login', '/api/login'],
    ['/api/x/../login', '/api/login'],
    ['/../../api/login', '/api/login'],
    ['/api/login/.', '/api/login/'],
    ['/api/login/x/..', '/api/login/'],
    ['/..', '/'],
    ['/.well-known/x', '/.well-known/x'],
    ['/api/...', '/api/...'],
    ['/api/login.', '/api/login.'],
    ['/%2e/api/login', '/api/login'],
    ['/x/%2e%2E/api/login', '/api/login'],
    ['/x/.%2e/api/login', '/api/login'],
    ['/%61pi/%6cogin', '/api/login'],
    ['/api%2flogin', '/api%2Flogin'],
    ['/api%5clogin', '/api%5Clogin'],
    ['/api\\login', '/api/login'],
    ['/x\\..\\api/login', '/api/login'],
    ['/a%2fb%5cc', '/a%2Fb%5Cc'],
    ['/%2Fapi', '/%2Fapi'],
    ['/a/b;x=%2e.', '/a/b;x=..'],
    ['/app/;id=1', '/app/;id=1'],
    ['/a%3bb', '/a%3Bb'],
    ['/%252e%252e/api', '/%252e%252e/api'],
    ['/%25%36%31', '/%2561'],
    ['/api/login%20', '/api/login%20'],
    ['/%e8%ae%a2', '/%E8%AE%A2'],
    ['/api/login;a=b', '/api/login;a=b'],
    ['/api/login#x', '/api/login'],
    ['/api/login#x?y', '/api/login'],
    ['http://h/api/login', '/api/login'],
    ['HTTPS://other:8443/api//login', '/api/login'],
    ['http://h', '/'],
    ['http://h#x', '/'],
    ['http://h\\api/login', '/api/login'],
    ['*', '*'],
  ])('%s is %s', (target, path) => {
    expect(normalizeTarget(target)).toEqual({ path, query: undefined })
  })

  it.each([
    ['/a?b=c', '/a', 'b=c'],
    ['/a?b=//../%zz?d\\', '/a', 'b=//../%zz?d\\'],
    ['/a//?b=c#d', '/a/', 'b=c'],
    ['/a?#b', '/a', undefined],
    ['/a?', '/a', undefined],
    ['http://h?b', '/', 'b'],
    ['http://h/a?b=http://i/', '/a', 'b=http://i/'],
  ])('%s has path %s and query %s', (target, path, query) => {
    expect(normalizeTarget(target)).toEqual({ path, query })
  })

  it.each([
    '',
    'api/login',
    'host:443',
    'ftp://h/a',
    'http://',
    'http:///a',
    'http:/a',
    '\\a',
    '/a b',
    '/a\tb',
    '/a\0',
    '/a?b\n',
    '/a\x7f',
    '/é',
    '/订单',
    '/%',
    '/%4',
    '/a%4/',
    '/%zz',
    '/%+1',
    '/%00',
    '/%0a',
    '/%1F',
    '/%7f',
    '/a/..;/b',
    '/a/.;x/b',
    '/a/%2e%2e;/b',
    '/..%2fapi',
    '/a/..%2Fapi',
    '/a%2F..%2Fapi',
    '/a%5C..%5Capi',
    '/a%5Cb%2F..%2Fapi',
    '/a%2F./api',
    '/a%2f%2e%2e',
    '/x%2F..;%2F..%2F..%2Fapi',
    '/a/..%3B/api',
    '/a;x%2Fb',
    '/a%3Bx%5Cb',
    '/;x/api',
    '/a/;/b',
    'http://b;c/a',
    'http://b%2Fc/a',
    'http://u@b/a',
    '*?',
    '**',
  ])('normalizeTarget refuses %j', target => {
    expect(normalizeTarget(target)).toBeUndefined()
  })

  it('normalizeTarget returns a plain path as it came', () => {
    const path = `/orders/${'x'.repeat(20)}`
    expect(normalizeTarget(path)?.path).toBe(path)
  })

  it('normalizeTarget is fast for 64 KiB of slashes, dots and escapes', () => {
    expect(normalizeTarget('/'.repeat(65_536))?.path).toBe('/')
    expect(normalizeTarget('/a/..'.repeat(13_000))?.path).toBe('/')
    expect(normalizeTarget('/%2e'.repeat(16_000))?.path).toBe('/')
    expect(normalizeTarget('/%61'.repeat(16_000))?.path).toBe('/a'.repeat(16_000))
  })

  const piece = fc.constantFrom(
    '/',
    '//',
    '\\',
    '.',
    '..',
    '%2e',
    '%2F',
    '%61',
    '%5c',
    '%25',
    '%',
    'a',
    'B',
    ';',
    '#',
    '?',
    '=',
  )
  const anything = fc.oneof(piece, fc.string({ unit: 'binary', maxLength: 3 }))
  const target = fc.array(anything, { maxLength: 20 }).map(pieces => `/${pieces.join('')}`)
  const wild = fc.oneof(
    target,
    target.map(path => `http://h${path}`),
    fc.string({ unit: 'binary' }),
  )

  it('normalizeTarget changes nothing in its own output', () => {
    fc.assert(
      fc.property(wild, text => {
        const once = normalizeTarget(text)
        if (once === undefined) return
        expect(normalizeTarget(once.path)).toEqual({ path: once.path, query: undefined })
        const full = once.query === undefined ? once.path : `${once.path}?${once.query}`
        expect(normalizeTarget(full)).toEqual(once)
      }),
      { numRuns: randomRuns(1000) },
    )
  })

  it('normalizeTarget leaves no empty, dot or backslashed segment', () => {
    fc.assert(
      fc.property(target, text => {
        const path = normalizeTarget(text)?.path ?? '/'
        const inner = path.slice(1).replace(/\/$/, '').split('/')
        expect(path === '/' || inner.every(segment => segment !== '' && segment !== '.' && segment !== '..')).toBe(true)
        expect(path).not.toMatch(/[\\#?]|%(?![0-9A-F]{2})/)
      }),
      { numRuns: randomRuns(1000) },
    )
  })

  it('normalizeTarget agrees with the URL parser on ordinary dotted paths', () => {
    const segment = fc.constantFrom('a', 'b', '.', '..', '%2e', '.%2E', 'c.d')
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 10 }), segments => {
        const text = `/${segments.join('/')}`
        expect(normalizeTarget(text)?.path).toBe(new URL(`http://h${text}`).pathname)
      }),
    )
  })
})

describe('countedPath', () => {
  it.each([
    ['/', '/'],
    ['/sms', '/sms'],
    ['/sms/', '/sms'],
    ['/sms//', '/sms'],
    ['//', '/'],
    ['/sms;x=1', '/sms'],
    ['/sms;', '/sms'],
    ['/a;x/b;y=;z/c', '/a/b/c'],
    ['/a;x/', '/a'],
    ['', ''],
    ['*', '*'],
  ])('%s is counted as %s', (path, counted) => {
    expect(countedPath(path)).toBe(counted)
  })

  it('countedPath is idempotent for any path', () => {
    const path = fc.array(fc.constantFrom('/', ';', 'a', '=', 'b')).map(pieces => pieces.join(''))
    fc.assert(
      fc.property(path, text => {
        const counted = countedPath(text)
        expect(counted).not.toContain(';')
        expect(countedPath(counted)).toBe(counted)
      }),
    )
    expect(countedPath('/a;b'.repeat(16_000))).toBe('/a'.repeat(16_000))
  })
})
