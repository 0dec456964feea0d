import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { randomRuns } from '../../../../test/helpers/random-runs.ts'
import { createClient } from './client.ts'

// A server may say anything of its limits. It makes its own callers wait, by no more than `maxWait` at a time, and those of no other server.

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const number = fc.oneof(
  fc.constantFrom(
    '0',
    '-1',
    '-0',
    '1',
    '60',
    '1e308',
    '1e400',
    'NaN',
    'Infinity',
    '-Infinity',
    '0x10',
    '',
    ' ',
    '9'.repeat(300),
  ),
  fc.constantFrom(
    '0.0000001',
    '1.5',
    '2147483648',
    '4102444800',
    '4102444800000',
    '١',
    '1_000',
    '1,000',
    '9'.repeat(3000),
  ),
  fc.constantFrom(
    'Wed, 01 Jan 2200 00:00:00 GMT',
    '0001-01-01T00:00:00Z',
    '6m0s',
    '999999999d',
    '1ms1ms',
    '1h'.repeat(900),
  ),
  fc.integer().map(String),
)
const list = fc.tuple(number, number, number, number).map(([r, t, q, w]) => ({
  ratelimit: `"a";r=${r};t=${t}, limit=${q}, remaining=${r}, reset=${t}`,
  'ratelimit-policy': `"a";q=${q};w=${w};qu="requests", ${'"'.repeat(50)}\\`,
}))
const plain = fc
  .tuple(
    fc.constantFrom('ratelimit', 'x-ratelimit', 'x-rate-limit', 'anthropic-ratelimit-tokens'),
    number,
    number,
    number,
  )
  .map(([prefix, limit, remaining, reset]) => ({
    [`${prefix}-limit`]: limit,
    [`${prefix}-remaining`]: remaining,
    [`${prefix}-reset`]: reset,
    [`${prefix}-reset-after`]: reset,
  }))
const wait = fc
  .tuple(fc.constantFrom('retry-after', 'retry-after-ms', 'date'), number)
  .map(([name, text]) => ({ [name]: text }))
const answer = fc.record({
  status: fc.constantFrom(200, 429, 503),
  headers: fc
    .array(fc.oneof(list, plain, wait), { maxLength: 4 })
    .map(all => Object.assign({}, ...all) as Record<string, string>),
})

function responseOf({ status, headers }: { status: number; headers: Record<string, string> }): Response {
  const sent = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    // what fetch itself does not accept never arrives
    try {
      sent.append(name, value)
    } catch {}
  }
  return new Response('body', { status, headers: sent })
}

it('every call ends in a bounded time and number of requests, and other servers are called at once, whatever a server says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(answer, { minLength: 1, maxLength: 12 }), async answers => {
      let requests = 0
      const client = createClient({
        fetch: async url =>
          String(url).includes('good') ? new Response('ok') : responseOf(answers[requests++ % answers.length]!),
        clock: Date.now,
        maxWait: '10s',
        random: () => 0.5,
      })
      let ended = 0
      const calls = 6
      for (let call = 0; call < calls; call++) {
        void client('https://bad.example/a').then(
          () => ended++,
          () => ended++,
        )
      }
      await vi.advanceTimersByTimeAsync(10)
      let isGoodDone = false
      void client('https://good.example/a').then(() => {
        isGoodDone = true
      })
      await vi.advanceTimersByTimeAsync(10)
      expect(isGoodDone).toBe(true)
      // each call is repeated three times at most, after a wait of 10 s, its spread, and the interval to the call before it
      for (let step = 0; step < 100 && ended < calls; step++) await vi.advanceTimersByTimeAsync(10_000)
      expect(ended).toBe(calls)
      expect(requests).toBeLessThanOrEqual(calls * 4)
      for (const { limit, remaining, resetMs = 0 } of client.limits('https://bad.example/a')) {
        expect([limit, remaining, resetMs].every(one => Number.isFinite(one) && one >= 0)).toBe(true)
      }
      await client.close()
    }),
    { numRuns: randomRuns(200) },
  )
})

it('a limit of one call has room for a call after a refusal, when it begins again', async () => {
  let requests = 0
  const client = createClient({
    clock: Date.now,
    random: () => 0.5,
    fetch: async () => {
      requests++
      const headers = { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }
      return new Response(
        '',
        requests === 2 ? { status: 429, headers: { ...headers, 'retry-after': '60' } } : { headers },
      )
    },
  })
  let ended = 0
  for (let call = 0; call < 3; call++) void client('https://api.example/a').then(() => ended++)
  await vi.advanceTimersByTimeAsync(10 * 60_000)
  expect(ended).toBe(3)
  await client.close()
})
