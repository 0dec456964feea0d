import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SettleInput } from './cost-input.ts'
import { AnswerReader } from './read-answer.ts'
import { usageFormats } from './usage/index.ts'

const weights = { input: 1, cached: 1, output: 1 }
const byUsage = (name: string, more: Partial<SettleInput> = {}): SettleInput => {
  const format = usageFormats.find(one => one.name === name)!
  return { from: [{ kind: 'usage', format }], weights, max: 1_000_000, ...more }
}
const byPath = (path: string): SettleInput => ({
  from: [{ kind: 'json', path: path.split('.') }],
  weights,
  max: 1_000_000,
})

type Headers = Readonly<Record<string, string>>
const eventStream = { 'content-type': 'text/event-stream; charset=utf-8' }

async function amountIn(
  body: string | Buffer,
  input: SettleInput,
  headers: Headers = {},
  cuts: readonly number[] = [],
) {
  const reader = new AnswerReader([input], name => headers[name])
  const bytes = Buffer.from(body as string)
  const ends = [...new Set(cuts.map(cut => cut % (bytes.length + 1)))].sort((one, other) => one - other)
  for (const [index, at] of [0, ...ends].entries()) reader.add(bytes.subarray(at, ends[index] ?? bytes.length))
  const [cost] = await reader.read()
  return cost?.amount
}

const stream = (events: readonly unknown[], lineEnd = '\n') =>
  events.map(event => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}${lineEnd}${lineEnd}`).join('')

const delta = (text: string) => ({ choices: [{ delta: { content: text } }], usage: null })
const chat = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 60 },
}
const response = {
  input_tokens: 100,
  output_tokens: 20,
  input_tokens_details: { cached_tokens: 60 },
  total_tokens: 120,
}
const start = {
  type: 'message_start',
  message: { usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 1 } },
}
const gemini = {
  promptTokenCount: 100,
  cachedContentTokenCount: 60,
  candidatesTokenCount: 15,
  thoughtsTokenCount: 5,
  totalTokenCount: 120,
}
const long = 'é"{"usage":{"prompt_tokens":1}}\n'.repeat(6000)

describe('the usage in an answer', () => {
  it.each<[string, string, unknown]>([
    ['chat completion', 'openai', { choices: [], usage: chat }],
    ['response', 'openai', { output: [], usage: response }],
    ['embedding', 'openai', { data: [], usage: { prompt_tokens: 120, total_tokens: 120 } }],
    [
      'message',
      'anthropic',
      {
        content: [],
        usage: { input_tokens: 30, cache_creation_input_tokens: 10, cache_read_input_tokens: 60, output_tokens: 20 },
      },
    ],
    ['Gemini', 'gemini', { candidates: [], usageMetadata: gemini }],
    ['Gemini, as a list of parts', 'gemini', [{ usageMetadata: { promptTokenCount: 100 } }, { usageMetadata: gemini }]],
  ])('the usage of a %s is read from a short, a long and a cut answer', async (_title, format, answer) => {
    const text = JSON.stringify(answer)
    const withText = Array.isArray(answer) ? [{ text: long }, ...answer] : { text: long, ...(answer as object) }
    expect(await amountIn(text, byUsage(format))).toBe(120)
    expect(await amountIn(JSON.stringify(withText), byUsage(format))).toBe(120)
    expect(await amountIn(JSON.stringify(withText, undefined, 2), byUsage(format))).toBe(120)
  })

  it.each<[string, string, readonly unknown[]]>([
    ['chat completion', 'openai', [delta('a'), delta(long), { choices: [], usage: chat }, '[DONE]']],
    [
      'response',
      'openai',
      [
        { type: 'response.output_text.delta', delta: 'x' },
        { type: 'response.completed', response: { output: 'x', usage: response, user: null } },
      ],
    ],
    [
      'response with all of a long answer in its last event',
      'openai',
      [
        {
          type: 'response.completed',
          response: { output: [{ text: long, usage: { input_tokens: 1 } }], usage: response, metadata: {} },
        },
      ],
    ],
    [
      'message',
      'anthropic',
      [
        start,
        { type: 'content_block_delta', delta: { text: long } },
        { type: 'message_delta', usage: { output_tokens: 20 } },
        { type: 'message_stop' },
      ],
    ],
    [
      'Gemini',
      'gemini',
      [{ usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 3 } }, { usageMetadata: gemini }],
    ],
  ])('%s as a stream, with chunks cut anywhere', async (_title, format, events) => {
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const body = stream(events, lineEnd)
      expect(await amountIn(body, byUsage(format), eventStream)).toBe(120)
    }
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(1_000_000), { maxLength: 20 }),
        fc.constantFrom('\n', '\r\n'),
        async (cuts, lineEnd) => {
          expect(await amountIn(stream(events, lineEnd), byUsage(format), eventStream, cuts)).toBe(120)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('events may have names, ids and comments', async () => {
    const [first, last] = [start, { type: 'message_delta', usage: { output_tokens: 20 } }].map(event =>
      JSON.stringify(event),
    )
    const body = `: hello\r\nevent: message_start\r\ndata:${first}\r\n\r\nid: 5\r\nevent: message_delta\r\ndata: ${last}\r\n\r\n`
    expect(await amountIn(body, byUsage('anthropic'), eventStream)).toBe(120)
    expect(await amountIn(body.slice(9), byUsage('anthropic'), eventStream)).toBe(120)
    const spread = `data: {"usage":\ndata: ${JSON.stringify(chat)}}\n\n`
    expect(await amountIn(spread, byUsage('openai'), eventStream)).toBe(120)
  })

  it('chunks of one byte keep no more memory than the ends of an answer', async () => {
    const reader = new AnswerReader([byUsage('openai')], name => (eventStream as Headers)[name])
    const body = Buffer.from(stream([delta('x'.repeat(100_000)), { usage: chat }]))
    for (const byte of body) reader.add(Buffer.from([byte]))
    expect((await reader.read())[0]).toEqual({ amount: 120, by: 'usage', isBounded: false })
  })

  it('weights distinguish input, cached and output tokens; the sum is rounded up once', async () => {
    const answer = JSON.stringify({ usage: chat })
    const cost = (one: number, other: number, third: number) =>
      amountIn(answer, byUsage('openai', { weights: { input: one, cached: other, output: third } }))
    expect(await Promise.all([cost(1, 0.1, 4), cost(0.1, 0.1, 0.1), cost(0.001, 0, 0), cost(0, 0, 0)])).toEqual([
      126, 12, 1, 0,
    ])
  })

  it('several formats can be named: each answer is read by its own', async () => {
    const from = usageFormats.map(format => ({ kind: 'usage', format }) as const)
    for (const order of [from, from.toReversed()]) {
      const input = { from: order, weights: { input: 1, cached: 0, output: 1 }, max: 1000 }
      const message = { usage: { input_tokens: 30, cache_read_input_tokens: 60, output_tokens: 20 } }
      const bodies = [{ usage: chat }, { usage: response }, message, { usageMetadata: gemini }]
      const amounts = await Promise.all(bodies.map(body => amountIn(JSON.stringify(body), input)))
      expect(amounts).toEqual([60, 60, 50, 60])
    }
  })

  it('more cached tokens than input tokens count as the input only', async () => {
    const lies = { prompt_tokens: 10, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 1000 } }
    const input = byUsage('openai', { weights: { input: 1, cached: 0.5, output: 1 } })
    expect(await amountIn(JSON.stringify({ usage: lies }), input)).toBe(5)
  })

  it.each([
    '{"usage":{"prompt_tokens":-5,"completion_tokens":20}}',
    '{"usage":{"prompt_tokens":5,"completion_tokens":-20}}',
    '{"usage":{"prompt_tokens":"5","completion_tokens":20}}',
    '{"usage":{"prompt_tokens":5,"completion_tokens":[20]}}',
    '{"usage":[]}',
    '{"usage":null}',
    'usage: 5',
    '',
    '['.repeat(100_000),
  ])('%.60s reports no usage', async body => {
    expect(await amountIn(body, byUsage('openai'))).toBeUndefined()
  })

  it.each([
    ['{"usage":{"total":2.25}}', 3, false],
    ['{"usage":{"total":1000000}}', 1_000_000, false],
    ['{"usage":{"total":1000001}}', 1_000_000, true],
    ['{"usage":{"total":1e308}}', 1_000_000, true],
    ['{"usage":{"total":1e999}}', 1_000_000, true],
    ['{"usage":{"total":0}}', 0, false],
  ])('%s counts as %i', async (body, amount, isBounded) => {
    const reader = new AnswerReader([byPath('usage.total')], () => undefined)
    reader.add(Buffer.from(body))
    expect(await reader.read()).toEqual([{ amount, by: 'usage', isBounded }])
  })

  it('usage of a stream that was broken off counts only if it names the output', async () => {
    const begun = stream([start, { type: 'content_block_delta', delta: { text: 'Hello' } }])
    expect(await amountIn(begun, byUsage('anthropic'), eventStream)).toBeUndefined()
    const parts = stream([
      { usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3 } },
      { usageMetadata: gemini },
    ])
    expect(await amountIn(parts.slice(0, -30), byUsage('gemini'), eventStream)).toBe(13)
  })

  it('one JSON value a line is read like a stream', async () => {
    const lines = [
      { done: false, text: long },
      { done: true, eval_count: 7 },
    ]
      .map(line => `${JSON.stringify(line)}\n`)
      .join('')
    expect(await amountIn(lines, byPath('eval_count'), { 'content-type': 'application/x-ndjson' })).toBe(7)
  })
})

describe('an encoded answer', () => {
  const body = JSON.stringify({ text: long, usage: chat })
  it.each([
    ['gzip', gzipSync(body), 120],
    ['deflate', deflateSync(body), 120],
    ['br', brotliCompressSync(body), 120],
    ['gzip', Buffer.from(body), undefined],
    ['gzip', gzipSync(body).subarray(0, 100), undefined],
    ['zstd', Buffer.from(body), undefined],
    ['gzip, br', brotliCompressSync(gzipSync(body)), undefined],
    ['gzip', gzipSync(Buffer.alloc(50_000_000)), undefined],
  ])('usage is read from an encoded answer: %s', async (encoding, bytes, amount) => {
    expect(await amountIn(bytes, byUsage('openai'), { 'content-encoding': encoding })).toBe(amount)
  })

  it('a compressed stream is read, too', async () => {
    const bytes = gzipSync(stream([delta(long), { usage: chat }]))
    expect(await amountIn(bytes, byUsage('openai'), { ...eventStream, 'content-encoding': 'gzip' })).toBe(120)
  })

  it('a header settles what the body does not', async () => {
    const from = [
      { kind: 'json', path: ['usage', 'x'] },
      { kind: 'header', name: 'x-tokens-used' },
    ] as const
    const cost = (text: string) => amountIn('{}', { from, weights, max: 1000 }, { 'x-tokens-used': text })
    expect(await Promise.all(['7', ' 7.2 ', '-7', '1e3', '5000', 'x', ''].map(cost))).toEqual([
      7,
      8,
      undefined,
      undefined,
      1000,
      undefined,
      undefined,
    ])
  })
})
