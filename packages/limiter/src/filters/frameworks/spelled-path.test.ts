import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathBehindHost, queryOf, spelledPath } from './spelled-path.ts'

describe('spelledPath', () => {
  it.each([
    ['/', '/'],
    ['/users/ann', '/users/ann'],
    ['/users/%61nn', '/users/ann'],
    ['/a%21b', '/a!b'],
    ['/a%2fb', '/a%2Fb'],
    ['/a%5cb', '/a%5Cb'],
    ['/a\\b', '/a\\b'],
    ['/a%3bb', '/a%3Bb'],
    ['/%c3%a9', '/%C3%A9'],
    ['/%252e', '/%252e'],
    ['/%00', '/%00'],
    ['/a%', '/a%25'],
    ['/a%4', '/a%254'],
    ['/a%zz%61', '/a%25zza'],
    ['/a/../b/./c//d', '/a/../b/./c//d'],
    ['/a/%2e%2e/b', '/a/../b'],
    ['/a?b=%61', '/a'],
    ['/a#b?c', '/a'],
    ['http://host/a', '/a'],
    ['HTTPS://host:1/a?b', '/a'],
    ['http://host', '/'],
    ['http://host?a', '/'],
    ['abcdefgh://host/a', '/a'],
    ['http://host/a\\b', '/a\\b'],
    ['/a\\b#', '/a\\b'],
    ['', '/'],
    ['*', '*'],
    ['host:443', 'host:443'],
  ])('%s is %s', (target, path) => {
    expect(spelledPath(target)).toBe(path)
  })

  it('spelledPath changes nothing in its own output, and never throws', () => {
    const piece = fc.constantFrom('/', '\\', '.', '%2e', '%2F', '%61', '%25', '%', 'a', ';', '?', '#', 'http://')
    const target = fc.array(fc.oneof(piece, fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 20 })
    fc.assert(
      fc.property(target, pieces => {
        const once = spelledPath(`/${pieces.join('')}`)
        expect(spelledPath(once)).toBe(once)
      }),
      { numRuns: randomRuns(1000) },
    )
  })
})

describe('pathBehindHost', () => {
  it.each([
    ['/a', undefined],
    ['//b%2Fc/d', undefined],
    ['*', undefined],
    ['http://b:1/a', undefined],
    ['http://u%2F@b/a', undefined],
    ['http://b%2Fc/d', '/%2Fc/d'],
    ['http://b%61/c?d', '/a/c'],
    ['http://u@b;c/d', '/;c/d'],
    ['abcdefgh://b"c', '/"c'],
  ])('%s has the other path %s', (target, path) => {
    expect(pathBehindHost(target)).toBe(path)
  })
})

describe('queryOf', () => {
  it.each([
    ['/a', undefined],
    ['/a?b=c', 'b=c'],
    ['/a?', ''],
    ['/a?b?c#d', 'b?c'],
    ['/a#b?c', undefined],
  ])('%s has %s', (target, query) => {
    expect(queryOf(target)).toBe(query)
  })
})
