import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeaderStyle } from '../rules/rule.ts'
import type { Decision, Verdict } from '../verdict.ts'
import { refusal } from './answer.ts'
import { rateLimitHeaders } from './headers.ts'

const now = 1_700_000_000_000
const forever = Number.POSITIVE_INFINITY

function decision(parts: Partial<Decision> = {}): Decision {
  return {
    rule: 'login',
    limit: 100,
    periodMs: 60_000,
    allowed: true,
    shadow: false,
    remaining: 50,
    resetAfterMs: 30_000,
    retryAfterMs: 0,
    ...parts,
  }
}

function refusing(parts: Partial<Decision> = {}): Decision {
  return decision({ allowed: false, remaining: 0, retryAfterMs: 4200, ...parts })
}

function passed(decisions: readonly Decision[], headers: HeaderStyle = 'draft-11'): Verdict {
  const answer = { status: 503, headers }
  const ending = { holds: false, release: () => {}, settle: () => {}, refund: () => [], end: () => {} }
  return { allowed: true, waitMs: 0, retryAfterMs: 0, decisions, answer, ...ending }
}

function refused(decisions: readonly Decision[], parts: Partial<Verdict> = {}): Verdict {
  const retryAfterMs = Math.max(...decisions.map(one => one.retryAfterMs))
  return { ...passed(decisions), allowed: false, rule: 'login', reason: 'limit', retryAfterMs, ...parts }
}

function headersOf(verdict: Verdict): Record<string, string> {
  return Object.fromEntries(rateLimitHeaders(verdict, now))
}

describe('draft-11 headers', () => {
  test('draft-11 headers name each limit in both lists', () => {
    const daily = decision({
      rule: 'daily',
      limit: 1000,
      periodMs: 86_400_000,
      remaining: 999,
      resetAfterMs: 80_000_001,
    })
    expect(headersOf(passed([decision(), daily]))).toEqual({
      'RateLimit-Policy': '"login";q=100;w=60, "daily";q=1000;w=86400',
      RateLimit: '"login";r=50;t=30, "daily";r=999;t=80001',
    })
  })

  test('draft-11 headers give the levels of a rule names of their own', () => {
    const levels = [decision({ rule: 'a' }), decision({ limit: 10 }), decision({ limit: 20 }), decision({ limit: 30 })]
    expect(headersOf(passed(levels))['RateLimit-Policy']).toBe(
      '"a";q=100;w=60, "login";q=10;w=60, "login#2";q=20;w=60, "login#3";q=30;w=60',
    )
  })

  test('no rule gets the header name of a level of another rule', () => {
    const levels = [decision({ rule: 'a' }), decision({ rule: 'a' }), decision({ rule: 'a.2' })]
    const names = headersOf(passed(levels))
      ['RateLimit-Policy']!.split(', ')
      .map(item => item.split(';')[0])
    expect(names).toEqual(['"a"', '"a#2"', '"a.2"'])
  })

  test('draft-11 headers round periods and resets up to whole seconds', () => {
    expect(headersOf(passed([decision({ periodMs: 100, resetAfterMs: 0.25 })]))).toEqual({
      'RateLimit-Policy': '"login";q=100;w=1',
      RateLimit: '"login";r=50;t=1',
    })
    expect(headersOf(passed([decision({ periodMs: 1500, resetAfterMs: 0 })]))).toEqual({
      'RateLimit-Policy': '"login";q=100;w=2',
      RateLimit: '"login";r=50;t=0',
    })
  })

  test('draft-11 headers describe a limit without a period as concurrent requests, without a reset', () => {
    expect(headersOf(passed([decision({ limit: 5, periodMs: 0, remaining: 4, resetAfterMs: forever })]))).toEqual({
      'RateLimit-Policy': '"login";q=5;qu="concurrent-requests"',
      RateLimit: '"login";r=4',
    })
  })

  test('draft-11 headers have no integer beyond the range of structured fields', () => {
    const vast = decision({ limit: Number.MAX_SAFE_INTEGER, remaining: Number.MAX_SAFE_INTEGER })
    expect(headersOf(passed([vast]))).toEqual({
      'RateLimit-Policy': '"login";q=999999999999999;w=60',
      RateLimit: '"login";r=999999999999999;t=30',
    })
  })

  test('draft-11 headers of a refusing limit have the time until the call would pass, at least a second', () => {
    expect(headersOf(refused([refusing()])).RateLimit).toBe('"login";r=0;t=5')
    expect(headersOf(refused([refusing({ retryAfterMs: 0 })])).RateLimit).toBe('"login";r=0;t=1')
    expect(headersOf(refused([refusing({ retryAfterMs: forever })])).RateLimit).toBe('"login";r=0')
  })

  test('draft-11 headers have the current limit after a change', () => {
    const policies = (...limits: number[]): string | undefined => {
      return headersOf(passed(limits.map(limit => decision({ limit }))))['RateLimit-Policy']
    }
    expect(policies(1, 2)).toBe('"login";q=1;w=60, "login#2";q=2;w=60')
    expect(policies(1, 3)).toBe('"login";q=1;w=60, "login#2";q=3;w=60')
    expect(policies(4, 3)).toBe('"login";q=4;w=60, "login#2";q=3;w=60')
    expect(policies(1, 2)).toBe('"login";q=1;w=60, "login#2";q=2;w=60')
    expect(headersOf(passed([decision({ limit: 1, periodMs: 1 })]))['RateLimit-Policy']).toBe('"login";q=1;w=1')
  })

  test('draft-11 headers stay correct after any number of limits', () => {
    for (let i = 0; i < 25_000; i++) {
      const policies = headersOf(passed([decision({ rule: `r${i}` }), decision()]))['RateLimit-Policy']
      if (policies !== `"r${i}";q=100;w=60, "login";q=100;w=60`) expect.fail(`after ${i}: ${policies}`)
    }
  })

  test('draft-11 headers have the numbers of the right caller, after any number of callers', () => {
    const limits = ['a', 'b', 'a'].map(rule => decision({ rule }))
    for (let i = 0; i < 25_000; i++) {
      const [remaining, seconds] = [(i * i) % 977, i % 61]
      const told = limits.map((one, level) => ({ ...one, remaining: remaining + level, resetAfterMs: seconds * 1000 }))
      const standings = headersOf(passed(told)).RateLimit
      const [a, b, c] = [0, 1, 2].map(level => `r=${remaining + level};t=${seconds}`)
      if (standings !== `"a";${a}, "b";${b}, "a";${c}`) expect.fail(`after ${i}: ${standings}`)
    }
  })

  test('draft-11 headers are well-formed structured fields whatever the numbers', () => {
    const duration = fc.oneof(fc.double({ min: 0, max: 4e10, noNaN: true }), fc.constant(forever))
    const count = fc.oneof(fc.maxSafeNat(), fc.double({ min: 0, max: 1e15, noNaN: true }))
    const decisions = fc.record({
      rule: fc.constantFrom('a', 'b-c_d.e'),
      limit: fc.maxSafeNat(),
      periodMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 366 * 86_400_000 })),
      allowed: fc.boolean(),
      shadow: fc.boolean(),
      remaining: count,
      resetAfterMs: duration,
      retryAfterMs: duration,
    })
    const policy = /^"[\w.#-]+";q=\d{1,15}(;w=[1-9]\d*|;qu="concurrent-requests")$/
    const standing = /^"[\w.#-]+";r=\d{1,15}(;t=\d{1,15})?$/
    fc.assert(
      fc.property(fc.array(decisions, { maxLength: 5 }), list => {
        const headers = headersOf(passed(list))
        const shown = list.filter(one => !one.shadow).length
        const policies = headers['RateLimit-Policy']?.split(', ') ?? []
        const standings = headers.RateLimit?.split(', ') ?? []
        expect([policies.length, standings.length]).toEqual([shown, shown])
        for (const item of policies) expect(item).toMatch(policy)
        for (const item of standings) expect(item).toMatch(standing)
      }),
    )
  })
})

describe('draft-6 headers', () => {
  test('draft-6 headers have all policies, and the numbers of the limit with the least left', () => {
    const daily = decision({ rule: 'daily', limit: 1000, periodMs: 86_400_000, remaining: 7, resetAfterMs: 500 })
    expect(headersOf(passed([decision(), daily], 'draft-6'))).toEqual({
      'RateLimit-Policy': '100;w=60, 1000;w=86400',
      'RateLimit-Limit': '1000',
      'RateLimit-Remaining': '7',
      'RateLimit-Reset': '1',
    })
  })

  test('draft-6 headers of two limits with equal remaining numbers show the one that takes longer', () => {
    const slow = decision({ limit: 10, resetAfterMs: 31_000 })
    expect(headersOf(passed([slow, decision()], 'draft-6'))['RateLimit-Reset']).toBe('31')
    expect(headersOf(passed([decision(), slow], 'draft-6'))['RateLimit-Reset']).toBe('31')
  })

  test('draft-6 headers show the refusing limit, even if another has less left', () => {
    const waits = decision({ rule: 'waits', remaining: 0 })
    const answer = { status: 503, headers: 'draft-6' } as const
    const verdict = refused([waits, refusing({ limit: 9, remaining: 2 })], { answer })
    expect(headersOf(verdict)['RateLimit-Limit']).toBe('9')
  })

  test('draft-6 headers omit an unknown reset', () => {
    const places = decision({ limit: 5, periodMs: 0, remaining: 1, resetAfterMs: forever })
    expect(headersOf(passed([places], 'draft-6'))).toEqual({
      'RateLimit-Policy': '5;qu="concurrent-requests"',
      'RateLimit-Limit': '5',
      'RateLimit-Remaining': '1',
    })
  })
})

describe('other styles', () => {
  test('legacy headers have the reset in seconds since 1970', () => {
    expect(headersOf(passed([decision({ resetAfterMs: 1 })], 'legacy'))).toEqual({
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '50',
      'X-RateLimit-Reset': '1700000001',
    })
    expect(headersOf(passed([decision({ resetAfterMs: forever })], 'legacy'))).not.toHaveProperty('X-RateLimit-Reset')
  })

  test('the style none writes no headers', () => {
    expect(headersOf(passed([decision()], 'none'))).toEqual({})
  })

  test.each(['draft-11', 'draft-6', 'legacy'] as const)(
    '%s shows no shadow limit, and nothing where there is no other',
    style => {
      const shadow = refusing({ rule: 'secret', shadow: true })
      expect(rateLimitHeaders(passed([shadow], style), now)).toEqual([])
      expect(rateLimitHeaders(passed([], style), now)).toEqual([])
      expect(headersOf(passed([shadow, decision()], style))).toEqual(headersOf(passed([decision()], style)))
    },
  )
})

describe('a refusal', () => {
  test('a refusal says in headers and body which rule refused, and when to come again', () => {
    const { status, headers, body } = refusal(refused([refusing(), decision({ rule: 'daily' })]), now)
    expect(status).toBe(503)
    expect(Object.fromEntries(headers)).toEqual({
      'RateLimit-Policy': '"login";q=100;w=60, "daily";q=100;w=60',
      RateLimit: '"login";r=0;t=5, "daily";r=50;t=30',
      'Retry-After': '5',
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    })
    expect(JSON.parse(body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Service Unavailable',
      status: 503,
      detail: 'Too many calls for rule "login"; try again in 5 s.',
      rule: 'login',
      'violated-policies': ['login'],
      retryAfter: 5,
    })
  })

  test.each([
    [429, 'https://iana.org/assignments/http-problem-types#quota-exceeded', 'Too Many Requests'],
    [403, 'about:blank', 'Forbidden'],
    [599, 'about:blank', 'Refused'],
  ])('a refusal with status %i has its own problem type', (status, type, title) => {
    const answer = { status, headers: 'none' } as const
    const { headers, body, ...rest } = refusal(refused([refusing()], { answer }), now)
    expect(rest).toEqual({ status })
    expect(JSON.parse(body)).toMatchObject({ type, title, status })
    expect(headers.map(([name]) => name)).toEqual(['Retry-After', 'Cache-Control', 'Content-Type'])
  })

  test.each([
    ['never tells a caller to come back at once', refused([refusing({ retryAfterMs: 0 })]), '1'],
    ['rounds up', refused([refusing({ retryAfterMs: 1000.001 })]), '2'],
    [
      'names the longest period of the rule where no moment can be named',
      refused([
        refusing({ retryAfterMs: forever, periodMs: 1500 }),
        decision({ periodMs: 500 }),
        decision({ rule: 'other', periodMs: 86_400_000 }),
      ]),
      '2',
    ],
    ['names a second where there is no period', refused([refusing({ retryAfterMs: forever, periodMs: 0 })]), '1'],
  ])('Retry-After of a refusal %s', (_, verdict, seconds) => {
    expect(Object.fromEntries(refusal(verdict, now).headers)['Retry-After']).toBe(seconds)
  })

  test('Retry-After of a refusal is never earlier than the refusing limits', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 4 }), waits => {
        const decisions = waits.map((retryAfterMs, i) => refusing({ rule: `r${i}`, retryAfterMs }))
        const headers = Object.fromEntries(refusal(refused(decisions), now).headers)
        const resets = headers.RateLimit!.split(', ').map(item => Number(item.split(';t=')[1]))
        expect(Number(headers['Retry-After'])).toBeGreaterThanOrEqual(Math.max(...resets))
      }),
    )
  })

  test('a refusal names every refusing limit except shadow limits', () => {
    const decisions = [
      refusing({ rule: 'a' }),
      refusing({ rule: 'a' }),
      decision({ rule: 'b' }),
      refusing({ rule: 'c', shadow: true }),
    ]
    const { body } = refusal(refused(decisions, { rule: 'a' }), now)
    expect(JSON.parse(body)['violated-policies']).toEqual(['a', 'a#2'])
  })

  test('a refusal by a full queue or after a wait says so', () => {
    const full = refusal(refused([decision()], { reason: 'queue-full' }), now)
    expect(JSON.parse(full.body)).toMatchObject({
      detail: 'Too many calls wait for rule "login"; try again in 1 s.',
      'violated-policies': ['login'],
    })
    const late = refusal(refused([refusing({ retryAfterMs: forever })], { reason: 'timeout' }), now)
    expect(JSON.parse(late.body).detail).toBe('No place became free in time for rule "login"; try again in 60 s.')
  })
})
