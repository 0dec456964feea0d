import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { composeYaml } from '../yaml/compose-yaml.ts'
import { readNodes } from '../yaml/read-nodes.ts'
import { flowYaml, ruleYaml } from './flow-yaml.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom(
    'yes',
    'null',
    '5',
    '1e3',
    '0x10',
    '-',
    '*a',
    '&a',
    '# no',
    'a: b',
    'a #b',
    '!t',
    '',
    ' a',
    'a ',
    "it's",
  ),
  fc.constantFrom(
    '/users/:id',
    '/orders/**',
    '*.example.com',
    'header:x-plan',
    '100/m',
    '5/100ms',
    '10m',
    '2024-01-01',
  ),
)
const value = fc.letrec(tie => ({
  any: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    text,
    fc.integer(),
    fc.boolean(),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(
      text.filter(name => name !== '__proto__' && name !== '<<'),
      tie('any'),
      { maxKeys: 4 },
    ),
  ),
})).any

describe('a rule in YAML', () => {
  it('a rule in YAML is written as the documentation writes it', () => {
    const options = {
      id: 'login',
      match: { path: '/users/:id', method: ['POST', 'PUT'] },
      by: ['account', 'header:x-key'],
      limit: { by: 'jwt:plan', values: { free: '100/h', 'pro plus': '5000/h' }, default: '100/h' },
      countWhen: [401, '5xx'],
      block: '10m',
      note: 'yes',
    }
    expect(ruleYaml(options)).toBe(
      `id: login
match: { path: /users/:id, method: [POST, PUT] }
by: [account, header:x-key]
limit:
  by: jwt:plan
  values: { free: 100/h, pro plus: 5000/h }
  default: 100/h
countWhen: [401, '5xx']
block: 10m
note: 'yes'`,
    )
  })

  it('a rule in YAML is read as what was written, in a block, in brackets and as JSON, for any options', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          text.filter(name => name !== '__proto__' && name !== '<<'),
          value,
        ),
        options => {
          const block = Object.keys(options).length === 0 ? '{}' : ruleYaml(options)
          expect(parse(block)).toEqual(options)
          expect(parse(flowYaml(options))).toEqual(options)
          expect(JSON.parse(flowYaml(options, { json: true }))).toEqual(options)
          const { document, fault } = composeYaml(block)
          expect(fault).toBeUndefined()
          expect(readNodes(document!).value).toEqual(options)
        },
      ),
    )
  })

  it('a rule in YAML has no line that comes from a value', () => {
    fc.assert(
      fc.property(text, one => {
        expect(flowYaml(one)).not.toMatch(/[\n\r\u0085\u2028\u2029]/)
      }),
    )
  })

  it('a rule in YAML is refused if it is nested too deep', () => {
    const deep = JSON.parse(`${'['.repeat(20)}${']'.repeat(20)}`) as unknown
    expect(() => flowYaml(deep)).toThrow('nested over 8 levels')
  })
})
