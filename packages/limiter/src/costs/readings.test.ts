import { gzipSync } from 'node:zlib'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Call } from '../call.ts'
import { bodyOfPrefix, bodyOfValue, PREFIX_BYTES } from './call-body.ts'
import { compileCosts } from './compile-costs.ts'
import type { ReserveSettings } from './cost-options.ts'

/*
 * Services read a request with parsers of their own: some take the first of two fields and some the last, some ignore case, some take
 * the spelling of Protocol Buffers. Whatever they read, no less is reserved than the largest of it.
 */

const TYPICAL = 300
const MAX = 8000
const reserve = { plus: [], typical: TYPICAL, min: 1, max: MAX }

type Name = { readonly spelled: string; readonly escaped: boolean[] }
type Value = number | string | boolean | null | Field[] | { readonly list: readonly Value[] }
type Field = readonly [Name, Value]

const written = (value: Value): string => {
  if (Array.isArray(value)) return `{${value.map(([name, one]) => `${quoted(name)}:${written(one)}`).join(',')}}`
  if (typeof value === 'object' && value !== null) return `[${value.list.map(written).join(',')}]`
  return typeof value === 'number' ? String(value) : JSON.stringify(value)
}

const quoted = ({ spelled, escaped }: Name): string => {
  const each = [...spelled].map((letter, at) =>
    escaped[at] === true
      ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
      : JSON.stringify(letter).slice(1, -1),
  )
  return `"${each.join('')}"`
}

/** How parsers look up a name, and which of several they take. */
const equal = {
  exactly: (one: string, other: string) => one === other,
  'as Go does': (one: string, other: string) => folded(one) === folded(other),
  'as Protocol Buffers do': (one: string, other: string) =>
    one === other || one === snake(other) || one === camel(other),
  'as C does': (one: string, other: string) => one.split('\0')[0] === other,
}
const folded = (text: string) => text.replaceAll('ſ', 's').replaceAll('\u212a', 'k').toLowerCase()
const snake = (text: string) => text.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
const camel = (text: string) => text.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

type Lookup = (one: string, other: string) => boolean

const readings: { readonly isEqual: Lookup; readonly takesFirst: boolean }[] = Object.values(equal).flatMap(isEqual => [
  { isEqual, takesFirst: true },
  { isEqual, takesFirst: false },
])

/** What one parser reads at a path. */
function readAt(
  value: Value | undefined,
  path: readonly string[],
  reading: (typeof readings)[number],
): Value | undefined {
  const [first, ...rest] = path
  if (first === undefined) return value
  if (!Array.isArray(value)) return undefined
  const found = value.filter(([{ spelled }]) => reading.isEqual(spelled, first))
  return readAt((reading.takesFirst ? found[0] : found.at(-1))?.[1], rest, reading)
}

/** What a service may use that reads the document so; undefined if it would refuse the call or coerce the value. */
function usedBy(document: Value, reading: (typeof readings)[number], limit: string, times: string): number | undefined {
  const most = readAt(document, limit.split('.'), reading) ?? null
  const choices = readAt(document, times.split('.'), reading) ?? null
  const factor = choices === null ? 1 : typeof choices === 'number' && choices >= 0 ? Math.max(1, choices) : undefined
  // Go cannot distinguish 0 from a field that is not there
  const each = most === null || most === 0 ? TYPICAL : typeof most === 'number' && most > 0 ? most : undefined
  return factor === undefined || each === undefined ? undefined : Math.min(MAX, Math.ceil(each * factor))
}

const spellings = (name: string): fc.Arbitrary<Name> => {
  const others = [
    name.toUpperCase(),
    camel(name),
    snake(name),
    `${name}\0x`,
    name.replace('k', '\u212a'),
    name.replace('s', 'ſ'),
  ]
  const spelled = fc.oneof({ weight: 3, arbitrary: fc.constant(name) }, fc.constantFrom(...others))
  return fc.record({ spelled, escaped: fc.array(fc.boolean(), { maxLength: 12 }) })
}

const amounts: fc.Arbitrary<Value> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 2 * MAX }) },
  { weight: 1, arbitrary: fc.constantFrom<Value>(null, 0, 1, -1, 1e300, 1.5, '500', true, [], { list: [5] }) },
)
const other: fc.Arbitrary<Name> = fc.record({ spelled: fc.string({ maxLength: 5 }), escaped: fc.constant([]) })
const rest: fc.Arbitrary<Value> = fc.oneof(
  fc.integer(),
  fc.string(),
  fc.constant(null),
  fc.constant({ list: [1, 'a'] }),
)

/** Objects with the names of `path` in any spelling, several times or not at all. */
const objects = (path: readonly string[], leaf: fc.Arbitrary<Value>): fc.Arbitrary<Value> => {
  const [name, ...deeper] = path
  if (name === undefined) return leaf
  const field = fc.tuple(spellings(name), fc.oneof({ weight: 5, arbitrary: objects(deeper, leaf) }, rest))
  return fc.array(fc.oneof({ weight: 3, arbitrary: field }, fc.tuple(other, rest)), { maxLength: 4 })
}

const rules: [from: string, limit: string, times: string][] = [
  ['json:max_tokens', 'max_tokens', 'n'],
  ['openai', 'max_completion_tokens', 'n'],
  ['openai', 'max_output_tokens', 'best_of'],
  ['gemini', 'generationConfig.maxOutputTokens', 'generationConfig.candidateCount'],
]

const callWith = (bytes: Buffer, type?: string): Call => {
  const isWhole = bytes.length <= PREFIX_BYTES
  const body = bodyOfPrefix(bytes.subarray(0, PREFIX_BYTES), { isWhole, bytes: bytes.length, type })
  return { method: 'POST', path: '/', body }
}
const estimateOf = (from: string, one: Call, more: Partial<ReserveSettings> = {}) =>
  compileCosts({
    reserve: { ...reserve, from: [from], times: [], ...more },
    weights: { input: 0, cached: 0, output: 1 },
  }).estimate!(one)

describe('a request that can be read in several ways', () => {
  it.each(rules)('%s reserves no less than any parser reads at %s, times %s', (from, limit, times) => {
    const merged = fc
      .tuple(objects(limit.split('.'), amounts), objects(times.split('.'), amounts))
      .map(([one, two]) => [...(one as Field[]), ...(two as Field[])])
    let read = 0
    fc.assert(
      fc.property(merged, document => {
        const text = written(document)
        const bodies = [bodyOfPrefix(Buffer.from(text), { isWhole: true, bytes: undefined })]
        const parsed = bodyOfValue(JSON.parse(text), undefined)!
        const used = readings.map(reading => usedBy(document, reading, limit, times)).filter(one => one !== undefined)
        read += used.length
        for (const body of bodies) {
          expect(estimateOf(from, { method: 'POST', path: '/', body })).toBeGreaterThanOrEqual(Math.max(0, ...used))
        }
        // what the application has parsed has no field twice, and names that differ may be read by whatever it calls
        const last = readings
          .filter(({ takesFirst }) => !takesFirst)
          .map(one => usedBy(fieldsOf(JSON.parse(text)), one, limit, times))
        expect(estimateOf(from, { method: 'POST', path: '/', body: parsed })).toBeGreaterThanOrEqual(
          Math.max(0, ...last.filter(one => one !== undefined)),
        )
      }),
      { numRuns: randomRuns(300) },
    )
    expect(read).toBeGreaterThan(100)
  })

  it('a request that can be read in one way only is charged exactly that', () => {
    const choices = fc.option(fc.integer({ min: 0, max: 9 }))
    const prompt = fc.oneof(fc.string(), fc.constant({ n: 100, max_tokens: MAX }), fc.constant([1, 2, 3]))
    fc.assert(
      fc.property(fc.option(fc.integer({ min: 1, max: MAX })), choices, prompt, (most, n, prompt) => {
        const document = { prompt, ...(most !== null && { max_tokens: most }), n, tools: [{ max_tokens: MAX, n: 50 }] }
        const expected = Math.min(MAX, (most ?? TYPICAL) * Math.max(1, n ?? 1))
        const bytes = Buffer.from(JSON.stringify(document))
        expect(estimateOf('json:max_tokens', callWith(bytes))).toBe(expected)
        expect(estimateOf('json:max_tokens', callWith(Buffer.concat([Buffer.from('\ufeff'), bytes])))).toBe(expected)
        const body = bodyOfValue(document, undefined)!
        expect(estimateOf('json:max_tokens', { method: 'POST', path: '/', body })).toBe(expected)
      }),
      { numRuns: randomRuns(200) },
    )
  })

  it.each<[string, number]>([
    ['{"max_tokens":1,"max_tokens":null}', TYPICAL],
    ['{"max_tokens":null,"max_tokens":1}', TYPICAL],
    ['{"max_tokens":1,"MAX_TOKENS":900}', 900],
    ['{"MAX_TOKENS":900}', 900],
    ['{"MAX_TOKENS":1}', TYPICAL],
    ['{"max_tokens":1,"maxTokens":900}', 900],
    ['{"max_tokens":1,"max-tokens":900}', 900],
    ['{"max_tokens":1,"max_to\u212aens":900}', 900],
    ['{"max_tokens":1,"max_token\u017f":900}', 900],
    ['{"max_tokens":1,"max_tokens\\u0000":900}', 900],
    [`{"max_tokens":1,"max_tokens\\u0000${'x'.repeat(2000)}":900}`, 900],
    ['{"max_tokens":1,"max\\u005ftokens":900}', 900],
    ['{"max_tokens":1,"max\\_tokens":900}', MAX],
    ['{"max_tokens":0}', TYPICAL],
    ['{"max_tokens":0.5}', TYPICAL],
    ['{"max_tokens":-1}', MAX],
    ['{"max_tokens":"1"}', MAX],
    ['{"max_tokens":1}{}', TYPICAL],
    ['{"max_tokens":1}\n{"max_tokens":900}', 900],
    ['[{"max_tokens":1}]', TYPICAL],
    [`{"max_tokens":1.${'0'.repeat(600)}e3}`, MAX],
    [`{"max_tokens":${'0'.repeat(600)}1000}`, MAX],
    ['{"max_tokens":01}', MAX],
    ['{"max_tokens":1,}', MAX],
    ['{"max_tokens":1/* */}', MAX],
    ['{"max_tokens":1}//', MAX],
    ["{'max_tokens':1}", MAX],
    ['{max_tokens:1}', MAX],
    ['{"max_tokens":+1}', MAX],
    ['{"max_tokens":NaN}', MAX],
    ['{"max_tokens":0x1}', MAX],
    ['{"max_tokens":1}\0', MAX],
    ['{"max_tokens":10,"n":100}', 1000],
    ['{"max_tokens":10,"n":3,"n":100}', 1000],
    ['{"max_tokens":10,"N":100}', 1000],
    ['{"max_tokens":10,"n":3,"best_of":20}', 200],
    ['{"max_tokens":10,"n":"100"}', MAX],
    ['{"max_tokens":10,"n":1e9}', MAX],
    ['{"max_tokens":10,"n":-1}', MAX],
    ['{"max_tokens":10,"n":null}', 10],
    ['{"max_tokens":10,"n":0}', 10],
    ['{"n":2}', 2 * TYPICAL],
    ['{"max_tokens":10,"prompt":["a","b","c"]}', 30],
    ['{"max_tokens":10,"prompt":["a","b","c"],"n":5}', 150],
    ['{"max_tokens":10,"prompt":[[1,2],[3]]}', 20],
    ['{"max_tokens":10,"prompt":[1,2,3]}', 10],
    ['{"max_tokens":10,"prompt":"a"}', 10],
    ['{"max_tokens":10,"prompt":[]}', 10],
    ['{"max_tokens":10,"prompt":"a","Prompt":["a","b"]}', 20],
    ['{"max_tokens":10,"prompt":["a",["b","c"],{"d":["e"]}]}', 30],
  ])('the body %s reserves %i', (text, amount) => {
    expect(estimateOf('json:max_tokens', callWith(Buffer.from(text)))).toBe(amount)
  })

  it.each<[string, Buffer, string | undefined]>([
    ['in UTF-16', Buffer.from('{"max_tokens":1}', 'utf16le'), undefined],
    ['in UTF-16 with its mark', Buffer.from('\ufeff{"max_tokens":1}', 'utf16le'), undefined],
    ['compressed', gzipSync('{"max_tokens":1}'), undefined],
    ['with bytes of another charset', Buffer.from('{"a":"\x81\\","max_tokens":1}', 'latin1'), undefined],
    ['with another charset', Buffer.from('{"max_tokens":1}'), 'application/json; charset=utf-7'],
    ['with another charset in quotes', Buffer.from('{"max_tokens":1}'), 'application/json;charset="UTF-16"'],
    ['with two charsets', Buffer.from('{"max_tokens":1}'), 'application/json; charset=utf-8; charset=hz'],
    [
      'that is a form, too',
      Buffer.from('{"max_tokens":1,"a":"&max_tokens=900&"}'),
      'application/x-www-form-urlencoded',
    ],
    ['of several parts', Buffer.from('{"max_tokens":1}'), 'multipart/form-data; boundary=b'],
    ['that is cut', Buffer.from(`{"max_tokens":1,"a":"${'x'.repeat(PREFIX_BYTES)}","max_tokens":900}`), undefined],
    [
      'that is cut in white space',
      Buffer.from(`{"max_tokens":1}${' '.repeat(PREFIX_BYTES)}{"max_tokens":900}`),
      undefined,
    ],
  ])('a body %s reserves the most', (_title, bytes, type) => {
    expect(estimateOf('json:max_tokens', callWith(bytes, type))).toBe(MAX)
    expect(estimateOf('openai', callWith(bytes, type))).toBe(MAX)
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;Charset="UTF-8"',
    'application/vnd.api+json; charset=us-ascii',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    undefined,
  ])('a body with the content type %s is read', type => {
    expect(estimateOf('json:max_tokens', callWith(Buffer.from('{"max_tokens":70}'), type))).toBe(70)
  })

  it('a rule can say what else multiplies', () => {
    const body = callWith(Buffer.from('{"limit":10,"rows":7,"n":100,"copies":9}'))
    expect(estimateOf('json:limit', body)).toBe(10)
    expect(estimateOf('json:limit', body, { times: ['json:rows'] })).toBe(70)
    expect(estimateOf('json:limit', body, { times: ['json:rows', 'json:copies', 'json:none'] })).toBe(90)
    expect(estimateOf('json:limit', body, { times: ['header:x-n'] })).toBe(10)
    expect(estimateOf('json:limit', { ...body, headers: { 'x-n': '4' } }, { times: ['header:x-n'] })).toBe(40)
    expect(estimateOf('json:limit', { ...body, headers: { 'x-n': 'x' } }, { times: ['header:x-n'] })).toBe(MAX)
  })
})

/** A parsed document in the form of the generator. */
function fieldsOf(value: unknown): Value {
  if (Array.isArray(value)) return { list: value.map(fieldsOf) }
  if (typeof value !== 'object' || value === null) return value as Value
  return Object.entries(value).map(([spelled, one]) => [{ spelled, escaped: [] }, fieldsOf(one)] as const)
}
