import { cpuTimeOf } from '@test/cpu-time'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalizeTarget } from './path.ts'
import { hasReadings, isAmbiguousPath, isTooAmbiguous, readingsOf, resourcePath } from './path-readings.ts'

describe('readingsOf', () => {
  it.each([
    ['/a/../b', ['/a/../b', '/b']],
    ['/a%2Fb', ['/a%2Fb', '/a/b']],
    ['/a%5cb', ['/a%5cb', '/a/b']],
    ['/a;x/b', ['/a;x/b', '/a/b', '/a']],
    ['/a%3Bx/b', ['/a%3Bx/b', '/a;x/b', '/a/b', '/a']],
    ['/a;x%2Fb', ['/a;x%2Fb', '/a', '/a;x/b', '/a/b']],
    ['/a//../b', ['/a//../b', '/b', '/a/b']],
    ['/a/..;/b', ['/a/..;/b', '/a/../b', '/b', '/a/..', '/']],
    ['/a%2F../b', ['/a%2F../b', '/a/../b', '/b']],
    ['/r%5Cb%2F..%2Fc', ['/r%5Cb%2F..%2Fc', '/r%5Cb/../c', '/c', '/r/b%2F..%2Fc', '/r/b/../c', '/r/c']],
  ])('%s may be %j', (path, readings) => {
    expect([...readingsOf(path)].toSorted()).toEqual(readings.toSorted())
  })

  const piece = fc.constantFrom('/', '%2F', '%5C', '\\', ';', '%3B', '.', '..', 'a', 'b', '%61', '%C3%A9')
  const path = fc.array(piece, { maxLength: 12 }).map(pieces => `/${pieces.join('')}`)

  it('readingsOf returns the plain path itself, without empty segments and a trailing slash', () => {
    fc.assert(
      fc.property(path, text => {
        if (hasReadings(text)) return
        const plain = text.replaceAll(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '')
        expect([...readingsOf(plain)]).toEqual([plain])
        expect([resourcePath(text), isAmbiguousPath(text)]).toEqual([plain, false])
      }),
      { numRuns: randomRuns(500) },
    )
  })

  it('readingsOf gives one resource for every target that the gateway forwards', () => {
    fc.assert(
      fc.property(path, text => {
        const target = normalizeTarget(text)
        expect(target !== undefined && isAmbiguousPath(target.path)).toBe(false)
      }),
      { numRuns: randomRuns(1250) },
    )
  })

  it('readingsOf is fast for 16 KiB of any text', () => {
    const spentMs = cpuTimeOf(() => {
      for (const text of ['/;%2F%5C%3B..', '/../', '%2F..;%5C']) readingsOf(text.repeat(16_384 / text.length))
    })
    expect(spentMs).toBeLessThan(500)
  })
})

it.each([
  ['/a/b', '/a/b', false],
  ['/A/b/', '/A/b', false],
  ['/a%2Fb', '/a/b', false],
  ['/a%5Cb;x', '/a/b', false],
  ['/a/./b', '/a/b', false],
  ['/x/../a', '/a', false],
  ['/a%3Bx', '/a', false],
  ['/app/;id=1', '/app', false],
  ['/.well-known/a', '/.well-known/a', false],
  ['/a/..;/b', expect.anything(), true],
  ['/r%5Cb%2F..%2Fc', expect.anything(), true],
  ['/a;x%2Fb', expect.anything(), true],
  ['/a//../b', expect.anything(), true],
])('%s is the resource %s, ambiguous: %s', (path, resource, isAmbiguous) => {
  expect([resourcePath(path), isAmbiguousPath(path)]).toEqual([resource, isAmbiguous])
})

describe('isTooAmbiguous', () => {
  it.each([
    ['a URL in a path', `/img/${encodeURIComponent(`https://a.example/${'b/'.repeat(1000)}c.png`)}`],
    ['16 KiB of letters', `/${'a'.repeat(16_000)}`],
    ['16 KiB of segments', '/a'.repeat(8000)],
    ['16 KiB of escaped slashes', '/a%2F'.repeat(3200)],
    ['4 KiB of parameters', '/map;lat=50.1;long=20.2'.repeat(180)],
    ['parameters and escaped slashes', '/a;b=c%2Fd'.repeat(200)],
    ['all kinds of delimiters in a short path', '/a%3b/%2f\\..//;%5c/../b'],
  ])('isTooAmbiguous is false for %s', (_kind, path) => {
    expect(isTooAmbiguous(path)).toBe(false)
  })

  const delimiters = fc.constantFrom(
    '/',
    '%2F',
    '%5C',
    '\\',
    ';',
    '%3B',
    '..',
    '.',
    'a',
    '%C3%A9',
    'é',
    'aaaa'.repeat(50),
  )
  const long = fc
    .tuple(fc.array(delimiters, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 15_000 }), fc.boolean())
    .map(([pieces, length, isAtEnd]) => {
      const piece = `/${pieces.join('')}`
      return isAtEnd
        ? `/${'a'.repeat(length)}${piece}`.slice(0, 16_000)
        : piece.repeat(Math.ceil(length / piece.length)).slice(0, 16_000)
    })

  it('isTooAmbiguous leaves nothing that takes long to read: at most 1,024 KiB of readings for any path of 16 KB', () => {
    fc.assert(
      fc.property(long, path => {
        if (isTooAmbiguous(path)) return
        let size = 0
        for (const reading of readingsOf(path)) size += reading.length
        expect(size).toBeLessThan(1_048_576)
      }),
      { numRuns: randomRuns(300) },
    )
  })
})
