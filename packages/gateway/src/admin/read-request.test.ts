import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../http/refusal.ts'
import { readRequest } from './read-request.ts'

describe('a request in the syntax of curl', () => {
  it.each([
    ['curl http://a.example/orders', 'GET', '/orders', { host: 'a.example' }],
    ['$ curl a.example:8080', 'GET', '/', { host: 'a.example:8080' }],
    [`curl -X POST 'http://a/x?y=1'`, 'POST', '/x?y=1', { host: 'a' }],
    ['curl -sSXDELETE http://a/x', 'DELETE', '/x', { host: 'a' }],
    [`curl http://a/x -d 'a=1' --data-raw "b"`, 'POST', '/x', { host: 'a' }],
    ['curl -G http://a/x?c=2 -d a=1 -d b=2', 'GET', '/x?c=2&a=1&b=2', { host: 'a' }],
    ['curl -I http://a/x', 'HEAD', '/x', { host: 'a' }],
    ['curl --head --url http://a/x', 'HEAD', '/x', { host: 'a' }],
    [`curl --json '{"a": 1}' http://a/`, 'POST', '/', { host: 'a', 'content-type': 'application/json' }],
    [
      `curl -H 'X-Account-Id: ann' -H "x-b:  two " http://a/`,
      'GET',
      '/',
      { host: 'a', 'x-account-id': 'ann', 'x-b': 'two' },
    ],
    [
      `curl -H 'x: 1' -H 'X: 2' -b 'a=1' -H 'Cookie: b=2' http://a/`,
      'GET',
      '/',
      { host: 'a', x: '1, 2', cookie: 'a=1; b=2' },
    ],
    [
      `curl -A me -e http://r/ -u u:p http://a/`,
      'GET',
      '/',
      { host: 'a', 'user-agent': 'me', referer: 'http://r/', authorization: 'Basic dTpw' },
    ],
    [`curl -H 'Host: b.example' http://a/`, 'GET', '/', { host: 'b.example' }],
    [`curl \\\n  -H 'x: 1' \\\r\n  http://a/ | jq .`, 'GET', '/', { host: 'a', x: '1' }],
    [`curl -H $'x: it\\'s\\u0041' -H "y: \\"q\\" \\$z" http://a/`, 'GET', '/', { host: 'a', x: "it'sA", y: '"q" $z' }],
    ['curl -o out -w "%{http_code}" --max-time 5 --compressed -kL http://a/ > log', 'GET', '/', { host: 'a' }],
    [`curl -H 'accept:' -H 'empty;' http://a/`, 'GET', '/', { host: 'a', empty: '' }],
    ['curl --unknown-flag http://a/', 'GET', '/', { host: 'a' }],
  ])('%s', (text, method, target, headers) => {
    expect(readRequest(text)).toEqual({ method, target, headers })
  })

  it.each([
    [`curl 'http://a/`, 'quote'],
    ['curl -H', 'behind -H'],
    ['curl -X', 'behind -X'],
    ['curl -s', 'no URL'],
    ['curl http://[bad', 'is no URL'],
    ['curl ftp://a/x', 'is no URL'],
    [`curl -H 'no name' http://a/`, 'is no header'],
    [`curl -X 'BAD METHOD' http://a/`, 'is no method'],
    [`curl ${'x'.repeat(70_000)}`, '64 KiB'],
  ])('the curl command %.40s is refused with one sentence', (text, what) => {
    expect(() => readRequest(text)).toThrow(what)
  })
})

describe('a raw HTTP request', () => {
  it.each([
    ['GET /orders', 'GET', '/orders', {}],
    [
      'get /orders?a=1 HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\n\r\nbody: no header',
      'GET',
      '/orders?a=1',
      { host: 'a.example', 'x-a': '1' },
    ],
    ['POST http://a.example/x HTTP/1.1', 'POST', '/x', { host: 'a.example' }],
  ])('%s', (text, method, target, headers) => {
    expect(readRequest(text)).toEqual({ method, target, headers })
  })

  it.each(['', 'GET', 'GET / a b', 'GET / FTP/1', 'G@T /', 'GET /\n: x'])(
    'the raw HTTP request %j is refused',
    text => {
      expect(() => readRequest(text)).toThrow(Refusal)
    },
  )
})

it('any pasted text is parsed or refused, and never throws', () => {
  const piece = fc.constantFrom(
    'curl ',
    "'",
    '"',
    '\\',
    '\n',
    '$',
    "$'",
    '-H ',
    '-d',
    '-X',
    ' ',
    'a: b',
    'http://',
    '__proto__',
    '|',
    '\u0000',
  )
  const pasted = fc.array(fc.oneof(piece, fc.string()), { maxLength: 30 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(
      fc.oneof(
        pasted,
        pasted.map(text => `curl ${text}`),
      ),
      text => {
        try {
          const { method, target } = readRequest(text)
          expect(method).toBe(method.toUpperCase())
          expect(target).toMatch(/^[/*]/)
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal)
        }
      },
    ),
    { numRuns: randomRuns(400) },
  )
})
