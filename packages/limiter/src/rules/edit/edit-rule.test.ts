import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { editRule, ruleTextOf } from './edit-rule.ts'

const file = `# who calls
identify:
  account: [header:x-account]   # set by the gateway

rules:
  # the whole system
  - id: all      # everybody
    limit: 100/s
  # each account
  - id: each
    by: account
    limit: [10/s,
      100/m]  # two levels

  - { id: flow, limit: 5/s }  # short
answer: { status: 429 }
`

describe('one rule in a document', () => {
  it('one rule of a document is found as written', () => {
    expect(ruleTextOf(file, 'each')).toBe('id: each\nby: account\nlimit: [10/s,\n  100/m]  # two levels')
    expect(ruleTextOf(file, 'flow')).toBe('{ id: flow, limit: 5/s }')
    expect(ruleTextOf(file, 'none')).toBeUndefined()
  })

  it('one rule of a document is replaced, and everything else stays unchanged', () => {
    const edited = editRule(file, 'each', 'id: each\nby: account\nlimit: 20/s # more')
    expect(edited).toBe(file.replace('    limit: [10/s,\n      100/m]  # two levels\n\n', '    limit: 20/s # more\n\n'))
  })

  it('one rule in flow style is replaced', () => {
    expect(editRule(file, 'flow', '{ id: flow, limit: 6/s }')).toBe(
      file.replace('- { id: flow, limit: 5/s }  # short', '- { id: flow, limit: 6/s }'),
    )
  })

  it('one rule is added after the others', () => {
    const added = editRule(file, 'new', 'id: new\nlimit: 1/s\n')
    expect(added).toBe(file.replace('# short\n', '# short\n  - id: new\n    limit: 1/s\n'))
  })

  it('one rule is removed from a document', () => {
    expect(editRule(file, 'flow', undefined)).toBe(file.replace('  - { id: flow, limit: 5/s }  # short\n', ''))
    expect(editRule(file, 'none', undefined)).toBeUndefined()
  })

  it('one rule is added to an empty document', () => {
    expect(editRule('', 'a', 'id: a\nlimit: 1/s')).toBe('rules:\n  - id: a\n    limit: 1/s\n')
  })

  it('one rule is edited in a list without indent, with Windows line ends, and in JSON', () => {
    const flush = 'rules:\n- id: a\n  limit: 1/s\n- id: b\n  limit: 2/s\n'
    expect(editRule(flush, 'a', '- id: a\n  limit: 9/s')).toBe('rules:\n- id: a\n  limit: 9/s\n- id: b\n  limit: 2/s\n')
    const json = editRule('{"rules": [{"id": "a", "limit": "1/s"}]}', 'b', '{"id": "b", "limit": "2/s"}')
    expect(JSON.parse(json!)).toEqual({
      rules: [
        { id: 'a', limit: '1/s' },
        { id: 'b', limit: '2/s' },
      ],
    })
    const flow = editRule('rules: [ { id: a, limit: 1/s } ] # note\n', 'a', 'id: a\nlimit: 2/s')
    expect(parse(flow!)).toEqual({ rules: [{ id: 'a', limit: '2/s' }] })
    expect(flow).toContain('# note')
  })

  it('one rule is edited without changing the meaning of the others, in any document', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd')
    const rule = fc.record({ id, limit: fc.constantFrom('1/s', '2/m') })
    fc.assert(
      fc.property(
        fc.uniqueArray(rule, { selector: one => one.id, minLength: 1 }),
        rule,
        fc.nat(3),
        (rules, changed, indent) => {
          const pad = ' '.repeat(indent)
          const text = `rules:\n${rules.map(one => `${pad}- id: ${one.id} # c\n${pad}  limit: ${one.limit}\n`).join('# between\n')}`
          const edited = parse(editRule(text, changed.id, `id: ${changed.id}\nlimit: ${changed.limit}`)!)
          const known = rules.some(one => one.id === changed.id)
          const expected = known ? rules.map(one => (one.id === changed.id ? changed : one)) : [...rules, changed]
          expect(edited).toEqual({ rules: expected })
        },
      ),
    )
  })

  it.each(['rules: {}', 'rules: 5', '- a', '[', 'a: &x [*x]', 'rules: [*a]', '%'])(
    'editing the document %j never gives an invalid one',
    text => {
      expect(() => editRule(text, 'a', 'id: a\nlimit: 1/s')).not.toThrow()
    },
  )
})
