import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { editOptions } from '../../../../limiter/src/rules/edit/edit-options.ts'
import { ruleYaml } from '../../../../limiter/src/rules/edit/flow-yaml.ts'
import { names, schema } from '../../../fake-admin/rules.ts'
import type { RuleNames } from '../../api/generated.ts'
import type { Schema } from '../../editor/schema-options.ts'
import { byField, fieldOf } from './field-of.ts'
import { changesBetween, isMap, type Options, formOptions as optionsOf } from './form-options.ts'
import { readForm as formOfRule } from './read-form.ts'
import { algorithmsFor, emptyForm, type Level, ownOptions, type RuleForm, UNITS, withOptions } from './rule-form.ts'
import { formOf, TEMPLATES } from './templates.ts'

const root = new URL('../../../../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const documents = [
  read('examples/llm/diana.yaml'),
  read('packages/gateway/demo/diana.yaml'),
  ...readdirSync(new URL('examples/recipes', root)).map(name => read(`examples/recipes/${name}`)),
  ...['rules', 'plans', 'recipes'].flatMap(page =>
    [...read(`docs/${page}.md`).matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(match => match[1]!),
  ),
]
const rules: Options[] = documents.flatMap(text => (parse(text) as { rules?: Options[] }).rules ?? [])

const known = withOptions(names as RuleNames, schema as Schema).algorithms
const formOptions = (form: RuleForm): Options => optionsOf(form, known)
const readForm = (rule: Options) => formOfRule(rule, known)

/** A list of one is the item alone. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.length === 1 ? plain(value[0]) : value.map(plain)
  if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]))
  return value
}

const merge = (one: Options, other: Options): Options =>
  Object.fromEntries(
    [...new Set([...Object.keys(one), ...Object.keys(other)])].map(name => {
      const [a, b] = [one[name], other[name]]
      return [name, isMap(a) && isMap(b) ? merge(a, b) : (b ?? a)]
    }),
  )

describe('rules as forms', () => {
  it('every rule of the examples and the documentation that fits a form comes out of it as it was', () => {
    const shown = rules.flatMap(rule => {
      const { form, others = {} } = readForm(rule)
      if (form === undefined) return []
      const text = ruleYaml(merge(others, formOptions(form)))
      expect(plain(parse(text))).toEqual(plain(rule))
      return [rule.id]
    })
    // the form is for nearly all of them
    expect(shown.length).toBeGreaterThan(rules.length * 0.9)
    expect(rules.length).toBeGreaterThan(80)
  })

  it('a rule that does not fit a form is named with the options that do not', () => {
    expect(readForm({ id: 'a', match: 'none', limit: '1/s' }).unreadable).toEqual(['match'])
    expect(readForm({ id: 'a', enabled: false }).unreadable).toEqual(['limit'])
    const plan = { by: 'ip', values: { pro: { limit: '1/s', burst: 5 } }, default: '1/s' }
    expect(readForm({ id: 'a', limit: plan }).unreadable).toEqual(['limit'])
    expect(readForm({ id: 'a', limit: ['1/s', {}], by: [['ip']], block: 5 }).unreadable).toEqual([
      'by',
      'limit',
      'block',
    ])
  })

  it('options that the form does not know are left over, also inside those that it knows', () => {
    const rule = { id: 'a', match: { path: '/a', host: 'b.c' }, limit: '1/s', lease: 'off', queue: { size: 5 } }
    expect(readForm(rule).others).toEqual({ match: { host: 'b.c' }, lease: 'off', queue: { size: 5 } })
  })

  it.each([
    ['sliding-window', ['segments']],
    ['fixed-window', ['align']],
    ['token-bucket', ['burst', 'start', 'refill']],
    ['leaky-bucket', ['burst', 'delay']],
    ['warm-up', ['warmUp', 'coldFactor']],
    ['concurrency', []],
    ['adaptive', ['min']],
    ['', []],
  ])('the schema of the rule file says that the algorithm "%s" has the options %j', (algorithm, expected) => {
    expect(ownOptions({ algorithm }, known).map(({ name }) => name)).toEqual(expected)
  })

  it('an algorithm that the page does not know has a field for each of its options', () => {
    const plain = { id: {}, algorithm: { const: 'plain' } }
    const mine = { id: {}, algorithm: { const: 'mine' }, size: { type: 'number', description: 'its size' } }
    const shape = { type: 'string', enum: ['round', 'flat'], description: 'its shape' }
    const items = { anyOf: [{ properties: plain }, { properties: { ...mine, shape, map: { type: 'object' } } }, {}] }
    const given = { ...names, algorithms: ['plain', 'mine'].map(name => ({ name, limit: 'rate' })) } as RuleNames
    const { algorithms } = withOptions(given, { properties: { rules: { items } } })
    expect(ownOptions({ algorithm: 'mine' }, algorithms)).toEqual([
      { name: 'size', description: 'its size', values: undefined, isNumber: true },
      { name: 'shape', description: 'its shape', values: ['round', 'flat'], isNumber: false },
    ])
    const rule = { id: 'a', limit: '1/s', algorithm: 'mine', size: 2.5, shape: 'flat', map: { a: 1 } }
    const { form, others } = formOfRule(rule, algorithms)
    expect(form?.own).toEqual({ size: '2.5', shape: 'flat' })
    expect({ ...others, ...optionsOf(form!, algorithms) }).toEqual(rule)
  })

  it('a form offers the algorithms that can count its limits, and writes an option only for an algorithm that has it', () => {
    const monthly = { ...emptyForm, levels: [{ count: '5', every: '', unit: 'month' as const }] }
    expect(algorithmsFor(monthly, known)).toEqual(['', 'fixed-window'])
    expect(algorithmsFor({ ...emptyForm, levels: [{ ...monthly.levels[0]!, unit: 'at-once' }] }, known)).toEqual([
      'concurrency',
      'adaptive',
    ])
    const typed = { ...emptyForm, own: { burst: '7', warmUp: '1m' } }
    expect(formOptions({ ...typed, algorithm: 'token-bucket' })).toMatchObject({ burst: 7 })
    expect(formOptions({ ...typed, algorithm: 'sliding-log' })).not.toHaveProperty('burst')
  })

  it('an option of another algorithm goes when the algorithm is changed', () => {
    const rule = { id: 'a', limit: '1/s', algorithm: 'token-bucket', burst: 5, start: 'empty' }
    const { form: shown, others } = readForm(rule)
    expect([shown!.own, others]).toEqual([{ burst: '5', start: 'empty' }, {}])
    expect(changesBetween(rule, formOptions(shown!), formOptions({ ...shown!, algorithm: 'leaky-bucket' }))).toEqual([
      { path: ['algorithm'], value: 'leaky-bucket' },
      { path: ['start'], value: null },
    ])
  })

  it('every template is a form that is read back as it is, under a name of its own', () => {
    for (const template of TEMPLATES) {
      const form = formOf(template, new Set(['login', 'login-2']), ['jwt'])
      expect(readForm(formOptions(form)).form).toEqual(form)
    }
    expect(formOf('login', new Set(['login', 'login-2']), []).id).toBe('login-3')
    expect(formOf('plans', new Set(), ['jwt']).plans?.by).toBe('jwt:plan')
  })

  const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,6}$/)
  const level: fc.Arbitrary<Level> = fc
    .record({
      count: fc.nat(10_000).map(String),
      every: fc.constantFrom('', '5', '15'),
      unit: fc.constantFrom(...UNITS.slice(0, 5)),
    })
    .map(one => one)
  const number = fc.constantFrom('', '7', '20')
  const form: fc.Arbitrary<RuleForm> = fc.record({
    id: word,
    paths: fc
      .array(
        word.map(one => `/${one}/**`),
        { maxLength: 3 },
      )
      .map(paths => paths.join('\n')),
    methods: fc.uniqueArray(fc.constantFrom('GET', 'POST'), { maxLength: 2 }),
    by: fc.uniqueArray(fc.constantFrom('ip', 'account', 'header:x-a'), { maxLength: 3 }),
    levels: fc.array(level, { minLength: 1, maxLength: 3 }),
    plans: fc.option(
      fc.record({
        by: fc.constantFrom('', 'header:x-plan'),
        values: fc.uniqueArray(fc.record({ name: fc.constantFrom('free', 'pro plus', 'a.b', '7x'), level }), {
          selector: one => one.name,
        }),
        standard: level,
      }),
      { nil: undefined },
    ),
    algorithm: fc.constantFrom('', 'sliding-window', 'token-bucket', 'leaky-bucket'),
    own: fc.record({ segments: number, burst: number, start: fc.constantFrom('', 'full', 'empty') }),
    beyond: fc.constantFrom('refuse', 'shadow'),
    status: fc.constantFrom('', '429'),
    waitFor: fc.constant(''),
    countWhen: fc.constantFrom('', 'failed', '401, 5xx'),
    resetWhen: fc.constantFrom('', 'success'),
    block: fc.constantFrom(
      { kind: 'none', first: '', max: '' },
      { kind: 'manual', first: '', max: '' },
      { kind: 'time', first: '1h', max: '' },
      { kind: 'growing', first: '1m', max: '1d' },
    ),
    zone: fc.constant(''),
    anchor: fc.constant(''),
  })

  it('any form is read back from the rule that it makes', () => {
    fc.assert(
      fc.property(form, one => {
        const again = readForm(parse(ruleYaml(formOptions(one))) as Options).form!
        expect(formOptions(again)).toEqual(formOptions(one))
      }),
    )
  })

  it('changes of a form make the rule that the form shows, and keep what it does not know', () => {
    const kept = { lease: 'off', match: { host: 'b.c' }, answer: { headers: 'none' } }
    fc.assert(
      fc.property(form, form, (before, after) => {
        const rule = merge(kept, formOptions({ ...before, id: 'a' }))
        const text = `rules:\n  - ${ruleYaml(rule).replaceAll('\n', '\n    ')}\n  - { id: other, limit: 1/s }\n`
        const changes = changesBetween(rule, formOptions({ ...before, id: 'a' }), formOptions({ ...after, id: 'a' }))
        const edited = editOptions(text, 'a', changes)!
        expect(edited.options).toEqual(merge(kept, formOptions({ ...after, id: 'a' })))
        expect((parse(edited.text) as { rules: Options[] }).rules).toEqual([
          edited.options,
          { id: 'other', limit: '1/s' },
        ])
      }),
    )
  })

  it('a form that was not changed changes nothing, and one changed limit is one change', () => {
    const rule = { id: 'a', by: ['ip'], limit: { by: 'jwt:plan', values: { free: '1/s', pro: '2/s' }, default: '1/s' } }
    const { form: shown } = readForm(rule)
    const before = formOptions(shown!)
    expect(changesBetween(rule, before, before)).toEqual([])
    const [free, pro] = shown!.plans!.values
    const raised = { ...pro!, level: { ...pro!.level, count: '3' } }
    const after = formOptions({ ...shown!, plans: { ...shown!.plans!, values: [free!, raised] } })
    expect(changesBetween(rule, before, after)).toEqual([{ path: ['limit', 'values', 'pro'], value: '3/s' }])
  })

  it('a rule that waits no longer has no queue, whatever the queue had', () => {
    const rule = { id: 'a', limit: '1/s', whenFull: 'wait', queue: { size: 5 } }
    const { form: shown } = readForm(rule)
    const after = formOptions({ ...shown!, beyond: 'refuse' })
    expect(changesBetween(rule, formOptions(shown!), after)).toEqual([
      { path: ['whenFull'], value: null },
      { path: ['queue'], value: null },
    ])
  })
})

describe('mistakes beside their fields', () => {
  const mistake = (message: string, rule?: string) => ({
    line: 1,
    column: 1,
    message,
    ...(rule !== undefined && { rule }),
  })

  it('a mistake is shown beside the field of the option that its message begins with', () => {
    const own = ownOptions({ algorithm: 'token-bucket' }, known)
    expect(fieldOf(mistake('limit[1] "x" is not a limit', 'a'), 'a', own)).toBe('limit')
    expect(fieldOf(mistake('limit.values.pro 5 has no period', 'a'), 'a', own)).toBe('limit')
    expect(fieldOf(mistake('match.path "x" must begin with /', 'a'), 'a', own)).toBe('paths')
    expect(fieldOf(mistake('burst must be a number', 'a'), 'a', own)).toBe('own.burst')
    expect(fieldOf(mistake('byte is no option', 'a'), 'a', own)).toBeUndefined()
    expect(fieldOf(mistake('limit 5 has no period', 'b'), 'a', own)).toBeUndefined()
  })

  it('all other mistakes are shown below, with their rule', () => {
    const found = byField([mistake('limit 5 has no period', 'b'), mistake('the document is empty')], 'a', [])
    expect(found.get(undefined)).toEqual(['b: limit 5 has no period', 'the document is empty'])
  })
})
