import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readLimits, readRetryAfter } from './read-limits.ts'

const NOW = Date.UTC(2026, 10, 15, 12)
const read = (headers: Record<string, string>) => readLimits(new Headers(headers), NOW)
const one = { name: '', limit: 100, remaining: 40, resetMs: 30_000, windowMs: undefined, countsCalls: true }

it.each([
  [
    'draft 11',
    {
      'ratelimit-policy': '"a;b, c";q=100;w=60, "in-flight";q=5;qu="concurrent-requests"',
      ratelimit: '"a;b, c";r=40;t=30, "in-flight";r=1',
    },
    [{ ...one, name: 'a;b, c', windowMs: 60_000 }],
  ],
  [
    'draft 11 with tokens',
    { 'ratelimit-policy': '"t";q=100;qu="tokens";w=60', ratelimit: '"t";r=40;t=30' },
    [{ ...one, name: 't', windowMs: 60_000, countsCalls: false }],
  ],
  [
    'draft 7',
    { 'ratelimit-policy': '100;w=60', ratelimit: 'limit=100, remaining=40, reset=30' },
    [{ ...one, windowMs: 60_000 }],
  ],
  ['draft 6', { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '40', 'ratelimit-reset': '30' }, [one]],
  [
    'X-RateLimit with seconds',
    { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '40', 'x-ratelimit-reset': '30' },
    [one],
  ],
  [
    'GitHub',
    {
      date: new Date(NOW - 5000).toUTCString(),
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '40',
      'x-ratelimit-reset': `${(NOW - 5000) / 1000 + 30}`,
      'x-ratelimit-resource': 'search',
    },
    [{ ...one, name: 'search' }],
  ],
  [
    'milliseconds since 1970',
    { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '40', 'x-ratelimit-reset': `${NOW + 30_000}` },
    [one],
  ],
  ['Discord', { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '40', 'x-ratelimit-reset-after': '30.0' }, [one]],
  [
    'OpenAI',
    {
      'x-ratelimit-limit-requests': '100',
      'x-ratelimit-remaining-requests': '40',
      'x-ratelimit-reset-requests': '30s',
      'x-ratelimit-limit-tokens': '9000',
      'x-ratelimit-remaining-tokens': '8000',
      'x-ratelimit-reset-tokens': '6m0s',
    },
    [
      { ...one, name: 'requests' },
      { ...one, name: 'tokens', limit: 9000, remaining: 8000, resetMs: 360_000, countsCalls: false },
    ],
  ],
  [
    'Anthropic',
    {
      'anthropic-ratelimit-requests-limit': '100',
      'anthropic-ratelimit-requests-remaining': '40',
      'anthropic-ratelimit-requests-reset': new Date(NOW + 30_000).toISOString(),
    },
    [{ ...one, name: 'requests' }],
  ],
  ['Shopify', { 'x-shopify-shop-api-call-limit': '60/100' }, [{ ...one, name: 'bucket', resetMs: undefined }]],
])('the limits of an answer are read as %s reports them', (_name, headers, reported) => {
  expect(read(headers as Record<string, string>)).toEqual(reported)
})

it.each([
  [
    'more is left than the limit',
    { ratelimit: '"a";r=500;t=1', 'ratelimit-policy': '"a";q=100;w=1' },
    { remaining: 100 },
  ],
  ['a negative number is left', { 'ratelimit-remaining': '-5', 'ratelimit-limit': '100' }, { remaining: 0 }],
  ['a negative limit', { 'ratelimit-remaining': '5', 'ratelimit-limit': '-100' }, { remaining: 5, limit: undefined }],
  ['a reset in the past', { 'ratelimit-remaining': '5', 'ratelimit-reset': '-9' }, { resetMs: 0 }],
  ['a date in the past', { 'ratelimit-remaining': '5', 'ratelimit-reset': '1000000001' }, { resetMs: 0 }],
])('contradictory numbers are bounded: %s', (_name, headers, reported) => {
  expect(read(headers as Record<string, string>)[0]).toMatchObject(reported)
})

it.each([
  ['5', 5000],
  ['2.0', 2000],
  ['-3', 0],
  ['Sun, 15 Nov 2026 12:00:30 GMT', 30_000],
  ['Sun, 15 Nov 2020 12:00:30 GMT', 0],
  ['soon', undefined],
  ['1e400', undefined],
  ['', undefined],
])('Retry-After %j is %s ms', (text, ms) => {
  expect(readRetryAfter(new Headers({ 'retry-after': text }), NOW)).toBe(ms)
})

it('a date of Retry-After is read by the clock of the server', () => {
  const headers = { date: 'Sun, 15 Nov 2026 11:00:00 GMT', 'retry-after': 'Sun, 15 Nov 2026 11:00:07 GMT' }
  expect(readRetryAfter(new Headers(headers), NOW)).toBe(7000)
  expect(readRetryAfter(new Headers({ 'retry-after-ms': '120' }), NOW)).toBe(120)
})

it('no text of a server makes numbers that are not finite, negative or of more limits than eight', () => {
  const names = [
    'ratelimit',
    'ratelimit-policy',
    'ratelimit-remaining',
    'ratelimit-limit',
    'ratelimit-reset',
    'retry-after',
    'date',
  ]
  const piece = fc.constantFrom(
    '"a"',
    'b',
    ';r=',
    ';q=',
    ';w=',
    ';t=',
    '=',
    ',',
    '"',
    '\\',
    '1',
    '-9',
    '9'.repeat(400),
    '1e9',
    'limit=',
    'remaining=',
    'reset=',
    ' ',
    '6m0s',
  )
  const text = fc.array(piece, { maxLength: 30 }).map(pieces => pieces.join(''))
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), text), headers => {
      const reported = read(headers)
      expect(reported.length).toBeLessThanOrEqual(8)
      for (const { limit = 1, remaining, resetMs = 0, windowMs = 1 } of reported) {
        expect([limit, remaining, resetMs, windowMs].every(Number.isFinite)).toBe(true)
        expect(limit > 0 && remaining >= 0 && resetMs >= 0 && windowMs > 0).toBe(true)
      }
      const after = readRetryAfter(new Headers(headers), NOW)
      expect(after === undefined || (Number.isFinite(after) && after >= 0)).toBe(true)
    }),
    { numRuns: randomRuns(300) },
  )
})
