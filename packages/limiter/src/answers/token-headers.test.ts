import { describe, expect, it } from 'vitest'
import type { Decision } from '../verdict.ts'
import { rateLimitHeaders } from './headers.ts'
import { resetText } from './token-headers.ts'

const decision = (more: Partial<Decision>): Decision => ({
  ...{ rule: 'calls', limit: 60, periodMs: 60_000, allowed: true, shadow: false },
  ...{ remaining: 59, resetAfterMs: 1000, retryAfterMs: 0 },
  ...more,
})

describe('headers of rules that count tokens', () => {
  const tokens = decision({ rule: 'tokens', limit: 1000, unit: 'tokens', remaining: 150, resetAfterMs: 51_000 })
  const daily = decision({ rule: 'daily', limit: 5000, unit: 'tokens', remaining: 4000, periodMs: 86_400_000 })
  const spend = decision({ rule: 'spend', limit: 9, unit: 'microdollars', remaining: 1 })
  const decisions = [
    decision({}),
    tokens,
    daily,
    spend,
    decision({ rule: 'slots', limit: 5, periodMs: 0, remaining: 0 }),
  ]
  const answer = { status: 429, headers: 'draft-11' } as const

  it('the policy of a rule names its unit', () => {
    expect(rateLimitHeaders({ decisions, answer }, 0)).toEqual([
      [
        'RateLimit-Policy',
        '"calls";q=60;w=60, "tokens";q=1000;qu="tokens";w=60, "daily";q=5000;qu="tokens";w=86400, ' +
          '"spend";q=9;qu="microdollars";w=60, "slots";q=5;qu="concurrent-requests"',
      ],
      ['RateLimit', '"calls";r=59;t=1, "tokens";r=150;t=51, "daily";r=4000;t=1, "spend";r=1;t=1, "slots";r=0;t=1'],
    ])
  })

  it('on request, calls and tokens have headers of their own, of the tightest limit of each', () => {
    const lines = rateLimitHeaders({ decisions, answer: { ...answer, headers: 'none', tokenHeaders: true } }, 0)
    expect(Object.fromEntries(lines)).toEqual({
      'X-RateLimit-Limit-Requests': '60',
      'X-RateLimit-Remaining-Requests': '59',
      'X-RateLimit-Reset-Requests': '1s',
      'X-RateLimit-Limit-Tokens': '1000',
      'X-RateLimit-Remaining-Tokens': '150',
      'X-RateLimit-Reset-Tokens': '51s',
    })
  })

  it.each([
    [0, '0ms'],
    [0.2, '1ms'],
    [999, '999ms'],
    [1001, '2s'],
    [60_000, '1m0s'],
    [360_000, '6m0s'],
    [5_400_000, '1h30m0s'],
    [3_605_000, '1h0m5s'],
  ])('a reset in %d ms is written as %s', (ms, text) => {
    expect(resetText(ms)).toBe(text)
  })
})
