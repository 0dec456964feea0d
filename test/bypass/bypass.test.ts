import { createLimiter } from 'diana-limiter'
import { describe, expect, test } from 'vitest'
import { type Caller, subjects, withServer } from './subjects.ts'

// What lies below the filters is tried elsewhere: braces that choose a slot of Redis (redis-slot.test.ts), bursts at the edge of
// a window and clocks that step (bounds.test.ts), floods of new keys (memory.test.ts), a store that fails (shared-rules.test.ts),
// calls at once, failures that are counted and callers who leave (filters.test.ts, redis.test.ts), upgrades, tunnels, Expect and
// streams that are reset (http.test.ts).

/** Other ways to write /users/ann, some of which some routers take for it. */
const spellings = [
  '//users/ann',
  '/users//ann',
  '/./users/ann',
  '/users/./ann',
  '/x/../users/ann',
  '/users/x/../ann',
  '/users/ann/x/..',
  '/users/ann/.',
  '/%2e/users/ann',
  '/users/%2e/ann',
  '/x/%2e%2E/users/ann',
  '/x/.%2e/users/ann',
  '/users%2fann',
  '/users%2Fann',
  '/%75sers/ann',
  '/users/%61nn',
  '/users/a%6en',
  '/users%5cann',
  '/users\\ann',
  '/x\\..\\users\\ann',
  '/users/ann;a=b',
  '/users;a=b/ann',
  '/users/ann;',
  '/users/..;/users/ann',
  '/users/ann/',
  '/users/ann//',
  '/users/ann.',
  '/users/ann%20',
  '/users/ann%00',
  '/users/ann%0a',
  '/USERS/ann',
  '/uSeRs/ann',
  '/users/ANN',
  '/users/ann#x',
  '/users/ann#?x=1',
  'http://a/users/ann',
  'http://elsewhere.test/users/ann',
  'HTTP://A/users/ann',
  'https://a:8443/users/ann',
  'http://a//users/ann',
  '/users/%2561nn',
  '/%252e/users/ann',
  '/users/x/%252e%252e/ann',
  '/users/ann?',
  '/users/ann?x=1',
  '/users/ann?/../bob',
  '/users/ann%zz',
  '/users/ann%',
  '/users/ann%C0%AF',
  '/users/%C1%A1nn',
  '/users/ann%3f',
  '/users/ann%23',
  '/users/ann\t',
  'users/ann',
  '*',
]

/** Queries that change nothing about what is called. */
const queries = ['?a=1&b=2', '?b=2&a=1', '?a=1&a=2', '?a=x+y', '?a=x%20y', '?', '?&&', '?a[]=1', '?_method=POST']

/** Spellings of 203.0.113.9 that a proxy may write. */
const ofOneAddress = [
  '203.0.113.9',
  ' 203.0.113.9 ',
  '::ffff:203.0.113.9',
  '::FFFF:203.0.113.9',
  '::ffff:cb00:7109',
  '0:0:0:0:0:ffff:cb00:7109',
  '203.0.113.9:4711',
  '[::ffff:203.0.113.9]:80',
  '9.9.9.9, 203.0.113.9',
  'spoofed,203.0.113.9',
  `${'1.1.1.1,'.repeat(1500)}203.0.113.9`,
]

const ofOneNetwork = [
  '2001:db8::1',
  '2001:DB8::1',
  '2001:0db8:0000:0000:0000:0000:0000:0001',
  '[2001:db8::1]:443',
  '2001:db8::1%eth0',
  '2001:db8::2',
  '2001:db8:0:0:ffff:ffff:ffff:ffff',
  '2001:db8::1.2.3.4',
]

/** What no proxy writes; the caller is then whoever has connected. */
const junk = [
  '',
  ' ',
  ',',
  'unknown',
  '_hidden',
  '1.2.3',
  '1.2.3.4.5',
  '999.1.1.1',
  '01.02.03.04',
  '0x7f.1',
  ':::',
  'é',
  '[',
  '%',
]

async function all(call: Caller, values: readonly string[], header = 'X-Forwarded-For'): Promise<number[]> {
  const statuses: number[] = []
  for (const value of values) statuses.push(await call('/hello', [`${header}: ${value}`]))
  return statuses
}

const refusedAll = (count: number): number[] => Array.from({ length: count }, () => 503)

describe.each(Object.entries(subjects))('%s: limits cannot be bypassed', (_name, subject) => {
  const isHttp2 = subject.speaks === 'h2'

  test.each([
    ['a rule about a path', { id: 'ann', match: { path: '/users/ann' }, limit: '1/h' }],
    ['a rule about all below a path', { id: 'below', match: { path: '/users/**' }, by: 'ip', limit: '1/h' }],
    ['a rule by resource', { id: 'each', by: 'resource', limit: '1/h' }],
  ])('a limit is not bypassed by another spelling of the path, under %s', async (_kind, rule) => {
    await withServer(subject, { rules: [rule] }, async (call, service) => {
      expect(await call('/users/ann')).toBe(200)
      for (const spelling of spellings) {
        const status = await call(spelling)
        expect([spelling, status]).toEqual([spelling, expect.toSatisfy(told => told < 500 || told === 503)])
      }
      expect(service.served.filter(name => name === 'user ann')).toEqual(['user ann'])
    })
  })

  test('a limit is not bypassed by the query', async () => {
    await withServer(subject, { rules: [{ id: 'hello', match: { path: '/hello' }, limit: '1/h' }] }, async call => {
      expect(await call('/hello')).toBe(200)
      for (const query of queries) expect([query, await call(`/hello${query}`)]).toEqual([query, 503])
    })
  })

  test('a limit is not bypassed by another spelling of a parameter', async () => {
    await withServer(subject, { rules: [{ id: 'key', by: 'query:k', limit: '1/h' }] }, async call => {
      expect(await call('/hello?k=a+b')).toBe(200)
      for (const query of ['?k=a%20b', '?k=%61+b', '?%6b=a+b', '?x=1&k=a+b', '?k=a+b#c']) {
        expect([query, await call(`/hello${query}`)]).toEqual([query, 503])
      }
      expect([await call('/hello?k=a'), await call('/hello?k=b')]).toEqual([200, 200])
    })
  })

  test('a limit is not bypassed by a second value of a parameter or a cookie', async () => {
    const rules = [
      { id: 'key', by: 'query:k', limit: '1/h', missing: 'skip' },
      { id: 'cookie', by: 'session', limit: '1/h', missing: 'skip' },
    ]
    const identify = { session: ['cookie:c', 'header:x-session'] }
    await withServer(subject, { identify, rules } as never, async (call, service) => {
      expect(await call('/hello?k=X')).toBe(200)
      expect(await call('/hello', ['Cookie: c=X'])).toBe(200)
      const queries = [
        'k=X&k=N',
        'k=N&k=X',
        'k=X&k[]=N',
        'k[]=X&k[]=N',
        'k[0]=N&k[1]=X',
        'K=N&k=X',
        'k=X;N',
        'k=N;k=X',
        '%6b=N&k=X',
      ]
      const cookies = ['c=X; c=N', 'c=N; c=X', 'c=N;a=b;c="X"', 'C=N; c=X', 'a="; c=N; b="; c=X']
      const served = service.served.length
      for (const [at, text] of queries.entries()) {
        expect([text, await call(`/hello?${text.replaceAll('N', `r${at}`)}`)]).toEqual([text, 400])
      }
      for (const [at, text] of cookies.entries()) {
        const lines = [`Cookie: ${text.replaceAll('N', `r${at}`)}`, `X-Session: s${at}`]
        expect([text, await call('/hello', lines)]).toEqual([text, 400])
      }
      for (const query of ['k=X&k=X', 'k[]=X', 'K=X', 'k=+X', 'a=1;k=X', 'k=&k=X']) {
        expect([query, await call(`/hello?${query}`)]).toEqual([query, 503])
      }
      expect(service.served.length).toBe(served)
    })
  })

  test('a limit is not bypassed by the method', async () => {
    const rules = [{ id: 'hello', match: { path: '/hello', method: 'GET' }, limit: '1/h' }]
    await withServer(subject, { rules }, async (call, service) => {
      expect(await call('/hello')).toBe(200)
      expect(await call('/hello', [], 'HEAD')).toBe(503)
      const disguised = ['X-HTTP-Method-Override: GET', 'X-HTTP-Method: GET', 'X-Method-Override: GET']
      for (const header of disguised) await call('/hello?_method=GET', [header], 'DELETE')
      await call('/hello', [], 'OPTIONS')
      if (!isHttp2) expect(await call('/hello', [], 'get')).toBe(400)
      expect(service.served).toEqual(['hello'])
    })
  })

  test('a limit is not bypassed by a forwarded address if no proxy is trusted', async () => {
    await withServer(subject, { rules: [{ id: 'each', by: 'ip', limit: '1/h' }] }, async call => {
      expect(await call('/hello')).toBe(200)
      const tried = [...ofOneAddress, ...ofOneNetwork, ...junk]
      for (const name of ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP']) {
        expect([name, await all(call, tried, name)]).toEqual([name, refusedAll(tried.length)])
      }
    })
  })

  const trusting = { trustProxy: 1, rules: [{ id: 'each', by: 'ip', limit: '1/h' }] }

  test('a limit is not bypassed by another spelling of the address, and other addresses are distinct', async () => {
    await withServer(subject, trusting, async call => {
      expect(await all(call, ofOneAddress)).toEqual([200, ...refusedAll(ofOneAddress.length - 1)])
      expect(await all(call, ofOneNetwork)).toEqual([200, ...refusedAll(ofOneNetwork.length - 1)])
      const others = [
        '203.0.113.8',
        '2001:db8:0:1::1',
        '2001:db7:ffff:ffff::1',
        '64:ff9b::203.0.113.9',
        '64:ff9b::203.0.113.8',
      ]
      expect(await all(call, others)).toEqual(others.map(() => 200))
    })
  })

  test('a limit is not bypassed by junk instead of an address', async () => {
    await withServer(subject, trusting, async call => {
      expect(await call('/hello')).toBe(200)
      expect(await all(call, junk)).toEqual(refusedAll(junk.length))
    })
  })

  test('a limit is not bypassed by fewer addresses than there are proxies', async () => {
    await withServer(subject, { ...trusting, trustProxy: 2 }, async call => {
      expect(await call('/hello')).toBe(200)
      expect(await all(call, ['203.0.113.1', '203.0.113.2', '203.0.113.3'])).toEqual(refusedAll(3))
      expect(await call('/hello', ['X-Forwarded-For: 203.0.113.1, 10.0.0.1'])).toBe(200)
    })
  })

  test('a limit is not bypassed by several header lines, other headers, or Connection', async () => {
    await withServer(subject, trusting, async call => {
      const him = 'X-Forwarded-For: 203.0.113.9'
      expect(await call('/hello', [him])).toBe(200)
      expect(await call('/hello', ['X-Forwarded-For: 198.51.100.1', him])).toBe(503)
      expect(await call('/hello', ['X-Forwarded-For: 198.51.100.1, 198.51.100.2', him])).toBe(503)
      expect(await call('/hello', [him, 'Forwarded: for=198.51.100.3', 'X-Real-IP: 198.51.100.4'])).toBe(503)
      expect(await call('/hello', [him, 'X_Forwarded_For: 198.51.100.5'])).toBe(503)
      expect(await call('/hello', [him, 'Connection: close, x-forwarded-for'])).toBe(503)
    })
  })

  const keyed = { rules: [{ id: 'key', by: 'header:x-api-key', limit: '1/h' }] }

  test('a limit is not bypassed by an unusual key, and different keys stay different', async () => {
    await withServer(subject, keyed, async call => {
      const nfc = Buffer.from('caf\u00e9').toString('latin1')
      const nfd = Buffer.from('cafe\u0301').toString('latin1')
      const keys = [
        'A',
        'a',
        'A, B',
        '__proto__',
        'constructor',
        'toString',
        '{a}',
        '{}',
        'a_b',
        'a b',
        nfc,
        nfd,
        Buffer.from('１').toString('latin1'),
        '0',
        'x'.repeat(8000),
      ]
      const inBytes = isHttp2 ? keys.filter(key => /^[\x20-\x7e]*$/.test(key)) : keys
      expect(await all(call, inBytes, 'X-Api-Key')).toEqual(inBytes.map(() => 200))
      expect(await all(call, inBytes, 'X-Api-Key')).toEqual(refusedAll(inBytes.length))
      expect(await all(call, [' A', 'A ', '\tA'], 'x-api-KEY')).toEqual(refusedAll(3))
      expect(await call('/hello', ['X-Api-Key: A', 'X-Api-Key: B'])).toBe(503)
    })
  })

  test('a limit is not bypassed by a missing, empty or invalid key', async () => {
    await withServer(subject, keyed, async (call, service) => {
      await call('/hello')
      await all(call, ['', ' ', '\t', ''], 'X-Api-Key')
      const served = service.served.length
      expect(served).toBeLessThanOrEqual(2)
      if (!isHttp2) {
        expect(await all(call, ['a\0b', 'a\rb', 'a\r\n b'], 'X-Api-Key')).toEqual([400, 400, 400])
        expect(await call('/hello', ['X-Api-Key : a'])).toBe(400)
        expect(await call('/hello', [`X-Api-Key: ${'x'.repeat(65_536)}`])).toBe(431)
      }
      expect(service.served.length).toBe(served)
    })
  })

  test('a limit is not bypassed by the case of a scheme', async () => {
    await withServer(subject, { rules: [{ id: 'token', by: 'header:authorization', limit: '1/h' }] }, async call => {
      const tokens = ['Bearer t1', 'bearer t1', 'BEARER t1', 'Bearer  t1']
      expect(await all(call, tokens, 'Authorization')).toEqual([200, 503, 503, 503])
      expect(await all(call, ['Bearer T1', 'Basic t1', 'Bearer'], 'Authorization')).toEqual([200, 200, 200])
    })
  })

  test('a limit is not bypassed by values that run into each other', async () => {
    const rules = [{ id: 'pair', by: ['header:x-a', 'header:x-b'], limit: '1/h' }]
    await withServer(subject, { rules }, async call => {
      const pairs = [
        ['a', 'b_c'],
        ['a_b', 'c'],
        ['a', 'b'],
        ['a|b', ''],
        ['', 'a|b'],
        ['a:b', 'c'],
        ['a', 'b:c'],
      ]
      const statuses: number[] = []
      for (const [one, two] of pairs) statuses.push(await call('/hello', [`X-A: ${one}`, `X-B: ${two}`]))
      expect(statuses).toEqual(pairs.map(() => 200))
    })
  })
})

describe.each(Object.entries(subjects))('%s: a limit of 0', (_name, subject) => {
  test('a limit of 0 refuses every call', async () => {
    await withServer(subject, { rules: [{ id: 'none', limit: '0/s' }] }, async (call, service) => {
      expect([await call('/hello'), await call('/hello'), service.served]).toEqual([503, 503, []])
    })
  })
})

test.each([-1, Number.NaN, 0.5, 2 ** 53, Number.POSITIVE_INFINITY, '1' as never])(
  'a cost of %s is rejected',
  async cost => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '5/h' }] })
    const call = { method: 'GET', path: '/' }
    await expect(limiter.check(call, { cost })).rejects.toThrow('cost must be a whole number')
    expect((await limiter.check(call, { cost: 6 })).allowed).toBe(false)
    expect((await limiter.check(call, { cost: 0 })).decisions[0]!.remaining).toBe(5)
    await limiter.close()
  },
)

test('a trusted network of IPv4-mapped addresses cannot include all addresses', async () => {
  await expect(createLimiter({ rules: [], trustProxy: ['::ffff:10.0.0.0/8'] })).rejects.toThrow('::ffff:10.0.0.0/8')
})
