import { readdirSync, readFileSync } from 'node:fs'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Algorithm, InvalidLimitError, type Meter } from '../algorithms/algorithm.ts'
import { algorithms } from '../algorithms/index.ts'
import { dimensions } from '../dimensions/index.ts'
import * as z from '../shapes/index.ts'
import { sources } from '../sources/index.ts'
import { formatMistake } from './mistake.ts'
import { type Parsed, parseOptions, type Vocabulary } from './parse.ts'
import { parseText } from './parse-text.ts'
import type { RuleDocument } from './rule.ts'

const folder = new URL('../../../../test/rules/', import.meta.url)
const filesIn = (name: string) => readdirSync(new URL(`${name}/`, folder)).map(file => `${name}/${file}`)
const textOf = (file: string) => readFileSync(new URL(file, folder), 'utf8')
const own: Vocabulary = { algorithms, dimensions, sources }

const taken: RuleDocument = {
  identify: {},
  trustProxy: 0,
  forwardedBy: 'x-forwarded-for',
  ipv6Prefix: 64,
  answer: { status: 503, headers: 'draft-11' },
  rules: [],
}
const ruleOf = (options: string) => `rules: [{ id: sms, ${options} }]`
const read = (text: string, vocabulary = own) => parseText(text, 'diana.yaml', vocabulary)
const said = (parsed: Parsed) => parsed.mistakes.map(formatMistake)

describe('a bad file', () => {
  it.each(filesIn('bad'))('the bad file %s has exactly the mistake in its first line', file => {
    const [, line, column, what] = /^# expect (\d+):(\d+) (.+)\n/.exec(textOf(file))!
    const { document, mistakes } = parseText(textOf(file), file, own)
    expect(document).toBeUndefined()
    expect(mistakes).toEqual([expect.objectContaining({ file, line: Number(line), column: Number(column) })])
    expect(mistakes[0]!.message).toContain(what)
  })

  it('a mistake is one line with position, rule and remedy', () => {
    expect(said(read('rules:\n  - id: sms\n    limit: 5/sec\n'))).toEqual([
      'diana.yaml:3:12 rule "sms": limit "5/sec" is not a limit: did you mean 5/s?',
    ])
    expect(said(read('rules: 5'))).toEqual(['diana.yaml:1:8: rules must be a list, not 5'])
  })

  it('a bad file reports all its mistakes in the order of the lines', () => {
    const parsed = read(`
trustProxy: -1
rules:
  - id: a
    by: acount
    limit: 5/s
    limit: 6/s
    whenFul: wait
  - by: ip
    limit: 5
    algorithm: nonsense
  - id: a
    limit: 5/s
    count: distributed
store: {}
`)
    const lines = parsed.mistakes.map(({ line, rule }) => [line, rule])
    expect(lines).toEqual([
      [2, undefined],
      [5, 'a'],
      [7, 'a'],
      [8, 'a'],
      [9, undefined],
      [11, undefined],
      [12, 'a'],
      [15, undefined],
    ])
  })

  it('a bad file reports at most 50 mistakes', () => {
    const rules = Array.from({ length: 60 }, (_, index) => `  - { id: r${index}, limit: 5 }\n`)
    const { mistakes } = read(`rules:\n${rules.join('')}`)
    expect(mistakes).toHaveLength(50)
    expect(mistakes.at(-1)).toMatchObject({ line: 51, rule: 'r49' })
  })

  it('the mistakes of a bad file show no control characters, no very long text and no password', () => {
    const rule = `"\\e[31m${'x'.repeat(500)}"`
    const text = `store: { redis: rediss, timeout: redis://u:secret@h/0 }\nrules: [{ id: ${rule}, limit: "\\u202e5/s" }]`
    const whole = said(read(text)).join('\n')
    expect(whole).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
    expect(whole).not.toContain('secret')
    expect(whole.length).toBeLessThan(1000)
  })
})

describe('a document beyond all bounds', () => {
  it.each([
    ['larger than 4 MiB', ruleOf(`limit: 5/s, by: ${' '.repeat(4 * 1024 * 1024)} ip`), 'larger than 4 MiB'],
    ['of 10 001 rules', `rules: [${'{ id: a, limit: 5/s },'.repeat(10_001)}]`, 'this list has 10001 things'],
    ['of endless brackets', '['.repeat(1_000_000), 'nested over 64 levels deep'],
    ['of endless dashes', '- '.repeat(1_000_000), 'nested over 64 levels deep'],
    ['of closing brackets', ']'.repeat(1_000_000), 'this is not YAML'],
    ['of 100 000 errors', `[${','.repeat(100_000)}]`, 'this is not YAML'],
    ['of endless commas', `[${','.repeat(2_000_000)}`, 'over 2000000 tokens'],
    [
      'of 1001 entries',
      Array.from({ length: 1001 }, (_, index) => `w${index}: 1\n`).join(''),
      'this map has 1001 entries',
    ],
  ])('%s is a mistake', (_, text, what) => {
    expect(read(text).mistakes[0]?.message).toContain(what)
  })

  it('options in code beyond the bounds are a mistake too', () => {
    const rules = Array.from({ length: 10_001 }, (_, index) => ({ id: `r${index}`, limit: '5/s' }))
    expect(said(parseOptions({ rules }, own))).toEqual(['rules must be at most a list of 10000, not 10001'])
    const identify = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`name${index}`, 'ip']))
    expect(said(parseOptions({ identify }, own))).toEqual(['identify has over 100 names: keep those that rules use'])
  })

  it('a very deep document does not change the stack trace limit', () => {
    const before = Error.stackTraceLimit
    read(']')
    expect(Error.stackTraceLimit).toBe(before)
  })
})

describe('a good file', () => {
  it.each(filesIn('good'))('the good file %s is accepted', file => {
    expect(said(parseText(textOf(file), file, own))).toEqual([])
  })

  it('a good file is parsed with all its options', () => {
    const { document } = parseText(textOf('good/every-word.yaml'), 'every-word.yaml', own)
    expect(document).toMatchObject({
      identify: {
        account: ['header:x-account-id', 'cookie:uid', 'query:account'],
        tenant: ['header:x-tenant'],
        plan: [],
      },
      trustProxy: ['10.0.0.0/8', '192.168.1.1', 'fd00::/8', '::1'],
      store: {
        redis: ['redis://127.0.0.1:7000', 'rediss://user:secret@127.0.0.1:7001/1'],
        timeoutMs: 20,
        prefix: 'shop',
      },
      remote: { source: 'http', address: 'https://127.0.0.1/rules.yaml' },
      answer: { status: 429, headers: 'draft-6' },
    })
    const rules = Object.fromEntries(document!.rules.map(rule => [rule.id, rule]))
    expect(rules['default.rule_1']).toEqual({
      id: 'default.rule_1',
      enabled: true,
      match: {},
      by: [],
      algorithm: 'sliding-window',
      options: { segments: 20 },
      limits: [{ count: 5000, periodMs: 1000 }],
      count: 'distributed',
      whenFull: 'refuse',
      whenStoreDown: 'share',
      lease: 'auto',
      queue: { size: 1000 },
    })
    expect(rules.off).toMatchObject({ enabled: false, limits: [{ count: 0, periodMs: 1000 }] })
    expect(rules.matched).toMatchObject({
      match: {
        path: ['/orders/**', '/users/:id/*', '/img/*.png', '**', '/'],
        method: ['GET', 'POST'],
        host: ['api.example.com', '*.example.org', '[::1]'],
        header: { 'x-plan': ['gold'], 'x-client': ['web', 'app'] },
      },
      by: ['tenant', 'plan', 'device', 'ip', 'header:x-a', 'resource', 'host', 'method'],
      limits: [1000, 60_000, 100, 3_600_000, 604_800_000].map(periodMs => expect.objectContaining({ periodMs })),
      options: { align: 'first-call' },
      count: 'local',
      whenFull: 'shadow',
      answer: { status: 503, headers: 'none' },
    })
    expect(rules.log).toMatchObject({ whenStoreDown: 'refuse', lease: 'off', count: 'distributed' })
    expect(rules.bucket?.answer).toEqual({ status: 418 })
    expect(rules.leaky).toMatchObject({ whenFull: 'wait', queue: { size: 20, timeoutMs: 2000 } })
    expect(rules.warm?.options).toEqual({ warmUp: 10_000, coldFactor: 2.5 })
    expect(rules.held?.limits).toEqual([{ count: 50, periodMs: 0 }])
  })

  it('a good file means the same in JSON and in YAML', () => {
    const { document } = parseText(textOf('good/tabs.json'), 'tabs.json', own)
    expect(parseText(JSON.stringify(JSON.parse(textOf('good/tabs.json'))), 'one-line.json', own).document).toEqual(
      document,
    )
    expect(parseOptions(JSON.parse(textOf('good/tabs.json')), own).document).toEqual(document)
  })

  it('a good file without a store counts in this process', () => {
    expect(read(ruleOf('limit: 5/s')).document).toMatchObject({ rules: [{ count: 'local' }], trustProxy: 0 })
  })

  it('a good file may use YAML anchors', () => {
    const { document } = parseText(textOf('good/anchors.yaml'), 'anchors.yaml', own)
    const [orders, perAddress, writes] = document!.rules
    expect(perAddress?.match).toEqual(orders?.match)
    expect(writes?.match.path).toEqual(['/orders/**'])
  })

  it('a mistake inside a repeated part is shown where it is written', () => {
    const text = 'rules:\n  - { id: a, limit: 5/s, match: &m { pth: /a } }\n  - { id: b, limit: 5/s, match: *m }\n'
    expect(read(text).mistakes).toMatchObject([
      { line: 2, rule: 'a' },
      { line: 2, rule: 'b' },
    ])
  })
})

describe('options of other rate limiters', () => {
  const meter = (): Meter => ({}) as Meter
  const seen: unknown[] = []
  const dice: Algorithm = {
    name: 'dice',
    limit: 'rate',
    options: { sides: z.int().min(2).default(6) },
    meter(...given) {
      seen.push(given)
      if (given[0].count > 100) throw new InvalidLimitError('sides', 'are too few; use more')
      if (given[0].count === 100) throw new Error('out of luck')
      return meter()
    },
  }
  const tray: Algorithm = { name: 'tray', limit: 'count', options: { lid: z.boolean().optional() }, meter }
  const vocabulary: Vocabulary = {
    algorithms: [dice, tray],
    dimensions: [
      { name: 'shop', argument: 'none' },
      { name: 'claim', argument: 'required' },
    ],
    sources: [],
  }

  it('the options of a passed algorithm are known', () => {
    const { document } = read(ruleOf('limit: 5/s, by: [shop, claim:sub], sides: 20'), vocabulary)
    expect(document?.rules).toMatchObject([{ algorithm: 'dice', options: { sides: 20 }, by: ['shop', 'claim:sub'] }])
    expect(read(ruleOf('limit: 5, algorithm: tray, lid: true'), vocabulary).document?.rules).toMatchObject([
      { algorithm: 'tray', options: { lid: true }, limits: [{ count: 5, periodMs: 0 }] },
    ])
  })

  it('the options of an algorithm that was not passed are unknown', () => {
    expect(said(read(ruleOf('limit: 5/s, by: shop')))[0]).toContain('by "shop" is not a dimension: write account')
    expect(said(read(ruleOf('limit: 5/s, by: ip'), vocabulary))[0]).toContain(
      'write account, device, shop or claim:<name>',
    )
    expect(said(read(ruleOf('limit: 5/s, lid: true'), vocabulary))[0]).toContain('lid belongs to tray')
    expect(said(read(ruleOf('limit: 5/s, algorithm: token-bucket'), vocabulary))[0]).toContain('must be dice or tray')
  })

  it('an algorithm sees its limit, its options and the longest wait of the rule', () => {
    const tried = (options: string) => {
      seen.length = 0
      read(ruleOf(options), vocabulary)
      return seen
    }
    const limit = { count: 5, periodMs: 1000 }
    expect(tried('limit: [5/s, 9/m]')).toEqual([
      [limit, { sides: 6 }, undefined],
      [{ count: 9, periodMs: 60_000 }, { sides: 6 }, undefined],
    ])
    expect(tried('limit: 5/s, sides: 8, whenFull: wait')).toEqual([[limit, { sides: 8 }, { timeoutUs: undefined }]])
    expect(tried('limit: 5/s, whenFull: wait, queue: { timeout: 2ms }')).toEqual([
      [limit, { sides: 6 }, { timeoutUs: 2000 }],
    ])
  })

  it('an InvalidLimitError is a mistake at the option it names', () => {
    expect(read('rules:\n- id: a\n  limit: [500/s, 600/s]\n  sides: 3\n', vocabulary).mistakes).toEqual([
      { file: 'diana.yaml', line: 4, column: 10, rule: 'a', message: 'sides are too few; use more' },
    ])
    expect(said(read(ruleOf('limit: [5/s, 100/s]'), vocabulary))).toEqual([
      'diana.yaml:1:33 rule "sms": limit[1] cannot be counted: out of luck',
    ])
  })
})

describe('options in code', () => {
  it('options in code have the names of the rule file', () => {
    const rules = [{ id: 'a', by: 'tenant', limit: '5/s' }]
    const { document } = parseOptions({ rules, identify: { tenant: 'header:x-tenant' }, store: undefined }, own)
    expect(document).toMatchObject({ identify: { tenant: ['header:x-tenant'] }, rules: [{ id: 'a', by: ['tenant'] }] })
  })

  it('options in code may have no rules', () => {
    expect(parseOptions({}, own).document).toEqual(taken)
    expect(parseOptions({ rules: [] }, own).document).toEqual(taken)
  })

  it('options in code name the path of a mistake', () => {
    const rules = [{ id: 'a', limit: '5/s' }, { id: 'b', limit: ['5/s', '5/sec'], whenFul: 'wait' }, 7]
    expect(said(parseOptions({ rules, anwser: {} }, own))).toEqual([
      'anwser is not a known option: did you mean answer?',
      'rule "b": rules[1].limit[1] "5/sec" is not a limit: did you mean 5/s?',
      'rule "b": rules[1].whenFul is not a known option: did you mean whenFull?',
      'rules[2] must be a map of options, not 7',
    ])
    expect(said(parseOptions(undefined, own))).toEqual([
      'the value must be a map with a list of rules in it (rules: …), not nothing',
    ])
  })

  it('options in code ignore inherited properties', () => {
    const options = JSON.parse(
      '{ "identify": { "__proto__": "ip", "constructor": "ip" }, "__proto__": { "rules": 1 } }',
    )
    expect(said(parseOptions(options, own))).toEqual([expect.stringContaining('__proto__ is not a known option')])
    expect(({} as { rules?: unknown }).rules).toBeUndefined()
  })
})

describe('random documents', () => {
  const isSound = ({ document, mistakes }: Parsed) => (document ? mistakes.length === 0 : mistakes.length > 0)

  it('any text is a document or has a mistake', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), text => isSound(read(text))))
    const pieces = [
      'rules:',
      '- ',
      'id: a',
      '\n',
      '  ',
      '    ',
      'limit: ',
      '5/s',
      '[',
      ']',
      '{',
      '}',
      ',',
      '&a ',
      '*a',
      ':',
      '"',
      '|',
      '?',
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces)), parts => isSound(read(parts.join('')))),
      { numRuns: randomRuns(400) },
    )
  })

  it('any value is a document or has a mistake', () => {
    const few = { numRuns: randomRuns(40) }
    fc.assert(
      fc.property(fc.json(), text => isSound(read(text)) && isSound(parseOptions(JSON.parse(text), own))),
      few,
    )
    fc.assert(
      fc.property(fc.anything(), value => isSound(parseOptions(value, own))),
      few,
    )
    const options = fc.constantFrom(
      'id',
      'limit',
      'by',
      'match',
      'algorithm',
      'burst',
      'queue',
      'answer',
      'enabled',
      '__proto__',
    )
    const rules = fc.array(fc.dictionary(options, fc.anything()))
    fc.assert(
      fc.property(rules, value => isSound(parseOptions({ rules: value }, own))),
      few,
    )
  })

  it('a good file with some characters changed is a document or has a mistake', () => {
    const files = filesIn('good').map(textOf)
    const edit = fc.record({ at: fc.nat(3000), drop: fc.nat(5), add: fc.string({ unit: 'grapheme', maxLength: 3 }) })
    const mutated = fc
      .tuple(fc.constantFrom(...files), fc.array(edit, { minLength: 1, maxLength: 5 }))
      .map(([text, edits]) =>
        edits.reduce((now, { at, drop, add }) => {
          const start = at % now.length
          return now.slice(0, start) + add + now.slice(start + drop)
        }, text),
      )
    fc.assert(
      fc.property(mutated, text => {
        const { mistakes } = read(text)
        const lines = text.split(/\r\n|\n/).length
        return isSound(read(text)) && mistakes.every(({ line, column }) => line >= 1 && line <= lines && column >= 1)
      }),
      { numRuns: randomRuns(100) },
    )
  })
})
