import { describe, expect, test } from 'vitest'
import { Route } from '../../services/routes/route.ts'
import { Upstreams } from '../../services/upstreams.ts'
import { routeSchema } from '../../settings/routes/route-settings.ts'
import { asCallerSees, type Exchange } from './end-to-end-headers.ts'

const rest = {
  bodyBytes: 1,
  timeouts: { connectMs: 1, headersMs: 1, bodyMs: 1 },
  connections: { max: 1, queueSize: 0, queueMs: 1, idleMs: 1 },
}

function exchange(words: object, host = 'shop.example:8080'): Exchange {
  const route = new Route({ ...routeSchema.parse(words), ...rest }, new Upstreams())
  route.pool.start()
  return { route, upstream: route.pool.upstreams[0]!, host }
}

const plain = exchange({ to: 'http://10.0.0.1:3000' })
const moved = exchange({ path: '/api', rewrite: '/', to: 'http://10.0.0.1:3000' })
const deep = exchange({ path: '/api/v1', rewrite: '/v2', to: 'http://10.0.0.1:3000/base' })

describe('an address in an answer of a service', () => {
  test.each([
    [plain, 'http://10.0.0.1:3000/login?to=/a#b', '/login?to=/a#b'],
    [plain, 'http://10.0.0.1:3000', '/'],
    [plain, 'http://10.0.0.1:3000?a=b', '/?a=b'],
    [plain, 'HTTP://10.0.0.1:3000/%7Ea', '/%7Ea'],
    // nginx: the name it was called by, with its own port
    [plain, 'http://shop.example:3000/docs/', '/docs/'],
    [plain, 'http://shop.example:8080/docs/', '/docs/'],
    [plain, '/docs/', '/docs/'],
    [plain, 'docs/', 'docs/'],
    [plain, '?a=b', '?a=b'],
    [moved, '/login', '/api/login'],
    [moved, '/', '/api/'],
    [moved, 'http://10.0.0.1:3000/login', '/api/login'],
    [deep, '/base/v2/login', '/api/v1/login'],
    [deep, '/base/v2', '/api/v1'],
    [deep, '/base/v2?x', '/api/v1?x'],
    [deep, 'http://10.0.0.1:3000/base/v2/login', '/api/v1/login'],
    // no call of this route leads there
    [deep, '/base/v22/login', '/base/v22/login'],
    [deep, 'http://10.0.0.1:3000/other', 'http://10.0.0.1:3000/other'],
    // of others
    [plain, 'https://10.0.0.1:3000/login', 'https://10.0.0.1:3000/login'],
    [plain, 'https://shop.example/login', 'https://shop.example/login'],
    [plain, 'http://shop.example/login', 'http://shop.example/login'],
    [plain, 'http://elsewhere.example:3000/', 'http://elsewhere.example:3000/'],
    [plain, '//10.0.0.1:3000/login', '//10.0.0.1:3000/login'],
    [plain, 'http://10.0.0.1:3000@evil.example/', 'http://10.0.0.1:3000@evil.example/'],
    [plain, 'http://a@10.0.0.1:3000/', 'http://a@10.0.0.1:3000/'],
    [plain, 'http://[not', 'http://[not'],
    [plain, '', ''],
    [moved, '//evil.example/login', '//evil.example/login'],
  ] as const)(
    '%#: the address %o is translated for the caller if it is the service itself',
    (where, given, expected) => {
      expect(asCallerSees('location', given, where)).toBe(expected)
      expect(asCallerSees('content-location', given, where)).toBe(expected)
    },
  )

  test('an address of a service in a redirect never becomes the address of another host', () => {
    for (const path of ['//evil.example', '/\\evil.example', '///evil.example', '/%2F/evil.example']) {
      const seen = asCallerSees('location', `http://10.0.0.1:3000${path}`, plain)
      expect(new URL(seen, 'http://shop.example').hostname).not.toBe('evil.example')
    }
  })

  test.each([
    ['5; url=http://10.0.0.1:3000/a', '5; url=/api/a'],
    ['0;URL="/a"', '0;URL="/api/a"'],
    ["1, url='/a'", "1, url='/api/a'"],
    ['5', '5'],
    ['5; url=https://elsewhere.example/', '5; url=https://elsewhere.example/'],
  ])('an address of a service in Refresh (%s) is translated', (given, expected) => {
    expect(asCallerSees('refresh', given, moved)).toBe(expected)
  })

  test.each([
    ['a=b', 'a=b'],
    ['a=b; Path=/; HttpOnly', 'a=b; Path=/api/; HttpOnly'],
    ['a=b;path=/x;Secure', 'a=b; path=/api/x;Secure'],
    ['a=b; Domain=10.0.0.1; Path=/x', 'a=b; Path=/api/x'],
    ['a=b; domain=.10.0.0.1', 'a=b'],
    ['a=b; Domain=shop.example', 'a=b; Domain=shop.example'],
    ['a="x; y"; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'a="x; y"; Expires=Wed, 21 Oct 2026 07:28:00 GMT'],
  ])('an address of a service in a cookie (%s) is translated', (given, expected) => {
    expect(asCallerSees('set-cookie', given, moved)).toBe(expected)
  })
})
