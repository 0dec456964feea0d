import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../algorithms/index.ts'
import type { Call } from '../call.ts'
import { dimensions } from '../dimensions/index.ts'
import { parseOptions } from '../rules/parse.ts'
import { sources } from '../sources/index.ts'
import { bodyOfPrefix, bodyOfValue, emptyBody, PREFIX_BYTES, unreadableBody } from './call-body.ts'
import { compileCosts } from './compile-costs.ts'
import type { MeasuredCost } from './cost-options.ts'

const reserve = { from: ['json:max_tokens'], plus: ['bytes/4'], min: 20, max: 8000 }
const call = (body: Call['body'], headers: Call['headers'] = {}): Call => ({ method: 'POST', path: '/', body, headers })
const estimate = (cost: MeasuredCost, one: Call) => compileCosts(cost).estimate!(one)

function bodyOf(text: string): Call['body'] {
  const bytes = Buffer.from(text)
  return bodyOfPrefix(bytes.subarray(0, PREFIX_BYTES), { isWhole: bytes.length <= PREFIX_BYTES, bytes: bytes.length })
}

describe('the estimate of a request', () => {
  const long = 'x'.repeat(PREFIX_BYTES)
  it.each<[string, Call['body'], number]>([
    ['the field and the size of the body', bodyOf('{"max_tokens":500}'), 505],
    ['no less than min', bodyOf('{"max_tokens":1}'), 20],
    ['no more than max', bodyOf('{"max_tokens":100000}'), 8000],
    ['a fraction, rounded up', bodyOf('{"max_tokens":500.2}'), 506],
    ['a body without the field', bodyOf('{"prompt":"Hello"}'), 8000],
    ['no body', undefined, 8000],
    ['an empty body', emptyBody, 8000],
    ['a negative field', bodyOf('{"max_tokens":-500}'), 8000],
    ['a field of another type', bodyOf('{"max_tokens":"500"}'), 8000],
    ['a field of another type, parsed', bodyOfValue({ max_tokens: '500' }, 20), 8000],
    ['a field twice', bodyOf('{"max_tokens":500,"max_tokens":7000}'), 7009],
    ['an escaped name', bodyOf('{"max_tokens":500,"max\\u005ftokens":7000}'), 7011],
    ['a field behind the first 64 KiB', bodyOf(`{"prompt":"${long}","max_tokens":1}`), 8000],
    ['a long body with the field first', bodyOf(`{"max_tokens":1,"prompt":"${'x'.repeat(20_000)}"}`), 5008],
    ['invalid JSON', bodyOf('{"max_tokens":1'), 8000],
    ['a form', bodyOf('max_tokens=1'), 8000],
    ['brackets without an end', bodyOf('['.repeat(100_000)), 8000],
    ['a body that cannot be read', unreadableBody(10), 8000],
    [
      'a body of unknown size',
      bodyOfPrefix(Buffer.from('{"max_tokens":1}'), { isWhole: false, bytes: undefined }),
      8000,
    ],
    ['a parsed body', bodyOfValue({ max_tokens: 500 }, 400), 600],
    ['a body as text', bodyOfValue('{"max_tokens":500}', undefined), 505],
    ['a body as bytes', bodyOfValue(new TextEncoder().encode('{"max_tokens":500}'), undefined), 505],
    ['a list as the body', bodyOfValue([{ max_tokens: 5 }], 16), 8000],
    ['infinitely many', bodyOf('{"max_tokens":1e999}'), 8000],
  ])('the cost of a request is estimated: %s', (_title, body, cost) => {
    expect(estimate({ reserve }, call(body))).toBe(cost)
  })

  it('a request that does not say how much counts as typical, one that cannot be read as max', () => {
    const typical = { reserve: { ...reserve, typical: 300 } }
    expect(estimate(typical, call(bodyOf('{"prompt":"Hello"}')))).toBe(305)
    expect(estimate(typical, call(bodyOf('{"max_tokens":null}')))).toBe(305)
    expect(estimate(typical, call(bodyOf('{"prompt":"Hello"')))).toBe(8000)
  })

  it('any body costs at least min and at most max', () => {
    const body = fc.oneof(
      fc.json(),
      fc.string(),
      fc.jsonValue().map(value => JSON.stringify({ max_tokens: value })),
    )
    fc.assert(
      fc.property(body, text => {
        const cost = estimate({ reserve }, call(bodyOf(text)))
        expect(Number.isSafeInteger(cost) && cost >= 20 && cost <= 8000).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  it('a header, a number or the size of the body can be the estimate', () => {
    const one = (from: string, headers: Call['headers'] = {}) =>
      estimate({ reserve: { from: [from], plus: [], min: 1, max: 1000 } }, call(bodyOf('12345'), headers))
    expect([one('500'), one('bytes'), one('bytes/4'), one('header:X-Max', { 'x-max': '70' })]).toEqual([500, 5, 2, 70])
    expect(['-1', '1.5', 'x', '', ['1', '2']].map(text => one('header:x-max', { 'x-max': text }))).toEqual(
      Array(5).fill(1000),
    )
  })

  it('a usage format knows the fields of its requests, and weights apply to input and output', () => {
    const cost = { reserve: { from: ['openai'], plus: [], min: 1, max: 100_000 } }
    expect(estimate(cost, call(bodyOfValue({ max_tokens: 10, max_completion_tokens: 500 }, 400)))).toBe(600)
    const settle = { from: ['openai'], max: 1000 }
    const dear = { ...cost, settle, weights: { input: 2, cached: 1, output: 10 } }
    expect(estimate(dear, call(bodyOfValue({ max_output_tokens: 500 }, 400)))).toBe(5200)
    expect(compileCosts(dear).unit).toBe('tokens')
  })
})

describe('the words of a cost in the rule file', () => {
  const rule = (cost: unknown, more: object = {}) => ({ rules: [{ id: 'tokens', limit: '1000/m', cost, ...more }] })
  const mistakesOf = (document: unknown) =>
    parseOptions(document, { algorithms, dimensions, sources })
      .mistakes.map(({ message }) => message)
      .join('\n')

  it.each([
    {
      reserve: { from: 'json:max_tokens', plus: 'bytes/4', min: 200, max: 8000 },
      settle: { from: ['json:usage.total_tokens', 'header:x-tokens-used'] },
      overrun: 'debt',
      hold: '10m',
    },
    { reserve: 500, settle: 'openai' },
    { reserve: 'anthropic', settle: ['anthropic', 'header:x-tokens'], weights: { output: 5, cached: 0.1 } },
    { settle: 'json:extensions.cost' },
    { reserve: { from: [1, 'header:x', 'bytes'] }, unit: 'bytes' },
  ])('%j is valid', cost => {
    expect(mistakesOf(rule(cost))).toBe('')
  })

  it.each([
    [{ reserve: { from: 'jsn:max_tokens' } }, 'did you mean json:max_tokens?'],
    [{ settle: { from: 'opnai' } }, 'did you mean openai?'],
    [{ settle: { form: 'openai' } }, 'did you mean from?'],
    [{ reserv: 5 }, 'did you mean reserve?'],
    [{ settle: 'bytes' }, 'is not a place to read a cost from: write json:<field>'],
    [{ reserve: 'json:' }, 'must name a field'],
    [{ reserve: 'json:a..b' }, 'must name a field'],
    [{ reserve: { from: 'json:x', min: 5, max: 2 } }, 'has a min above its max'],
    [{ reserve: -5 }, 'must be at least 1'],
    [{ reserve: 5, from: 'header:x' }, 'leave one of them out'],
    [{ settle: 'json:x', weights: { output: 2 } }, 'needs a usage that distinguishes tokens'],
    [{ settle: 'openai', weights: { output: -2 } }, 'must be at least 0'],
    [{ settle: 'openai', weights: { outputs: 2 } }, 'did you mean output?'],
    [{ settle: 'header:x y' }, 'must name a header'],
  ])('a mistake in the cost %j has a remedy: %s', (cost, text) => {
    expect(mistakesOf(rule(cost))).toContain(text)
  })

  it('a limit on calls under way has no cost to settle', () => {
    expect(mistakesOf(rule({ settle: 'openai' }, { algorithm: 'concurrency', limit: 5 }))).toContain(
      'leave reserve and settle out',
    )
  })
})
