import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse, parseDocument } from 'yaml'
import { editOptions } from './edit-options.ts'

const file = `# who calls
identify:
  account: [header:x-account]   # set by the gateway

rules:
  # the whole system
  - id: all      # everybody
    limit: 100/s
  # each account
  - id: each
    match:           # only these
      path: /a
      header: { x-plan: free }  # not paid
    by: account
    limit: [10/s,
      100/m]  # two levels

  - { id: flow, limit: 5/s, block: 10m }  # short
  - id: last
    limit: 1/s # slow`

const changesOf = (changes: Record<string, unknown>) =>
  Object.entries(changes).map(([name, value]) => ({ path: name.split('.'), value }))
const edit = (id: string | undefined, changes: Record<string, unknown>, text = file) =>
  editOptions(text, id, changesOf(changes))?.text

describe('options of one rule', () => {
  it('a changed limit changes its own text and nothing else', () => {
    expect(edit('all', { limit: '200/s' })).toBe(file.replace('100/s\n', '200/s\n'))
    expect(edit('flow', { limit: '6/s' })).toBe(file.replace('5/s', '6/s'))
    expect(edit('last', { limit: '2/s' })).toBe(file.replace('1/s #', '2/s #'))
    expect(edit('each', { limit: '5/s' })).toBe(file.replace('[10/s,\n      100/m]', '5/s'))
  })

  it('an option inside another is changed, added and removed', () => {
    expect(edit('each', { 'match.path': ['/a', '/b'] })).toBe(file.replace('path: /a', 'path: [/a, /b]'))
    expect(edit('each', { 'match.path': null })).toBe(file.replace('path: /a\n      ', ''))
    expect(edit('each', { 'match.method': 'POST' })).toBe(
      file.replace('# not paid\n', '# not paid\n      method: POST\n'),
    )
    expect(edit('all', { 'match.path': '/x' })).toBe(file.replace('100/s\n', '100/s\n    match: { path: /x }\n'))
  })

  it('one value of a plan is changed, whatever its name', () => {
    const plans =
      'rules:\n  - id: a\n    limit:\n      values:\n        free: 1/s  # all\n        "pro.2 x": 2/s\n      default: 1/s\n'
    const change = { path: ['limit', 'values', 'pro.2 x'], value: '3/s' }
    expect(editOptions(plans, 'a', [change])?.text).toBe(plans.replace('2/s', '3/s'))
  })

  it('a value on lines of its own is replaced', () => {
    expect(parse(edit('each', { match: { path: '/c' } })!).rules[1].match).toEqual({ path: '/c' })
  })

  it('options are added behind the last one, and removed with their line', () => {
    expect(edit('all', { by: 'ip', block: '1h' })).toBe(
      file.replace('limit: 100/s\n', 'limit: 100/s\n    by: ip\n    block: 1h\n'),
    )
    expect(edit('last', { by: 'ip' })).toBe(`${file}\n    by: ip`)
    expect(edit('last', { limit: null })).toBe(file.replace('\n    limit: 1/s # slow', ''))
    expect(edit('each', { by: null })).toBe(file.replace('    by: account\n', ''))
    expect(edit('flow', { by: 'ip', block: null })).toBe(file.replace('block: 10m', 'by: ip'))
    expect(edit('flow', { limit: null })).toBe(file.replace('limit: 5/s, ', ''))
    expect(edit('all', { missing: null })).toBe(file)
  })

  it('a rule is added after the others, also beside one of the same name', () => {
    expect(edit(undefined, { id: 'all', limit: '1/s' })).toBe(`${file}\n  - id: all\n    limit: 1/s\n`)
    expect(edit(undefined, { id: 'a', limit: '1/s' }, '')).toBe('rules:\n  - id: a\n    limit: 1/s\n')
  })

  it('Windows line ends and JSON stay what they are', () => {
    const windows = 'rules:\r\n  - id: a\r\n    limit: 1/s\r\n'
    expect(edit('a', { limit: '2/s', by: 'ip' }, windows)).toBe(
      'rules:\r\n  - id: a\r\n    limit: 2/s\r\n    by: ip\r\n',
    )
    expect(edit(undefined, { id: 'b', limit: '1/s' }, windows)).toBe(`${windows}  - id: b\r\n    limit: 1/s\r\n`)
    const json = '{ "rules": [\n  { "id": "a", "limit": "1/s" } ] }'
    expect(edit('a', { limit: '2/s', by: ['ip'] }, json)).toBe(
      '{ "rules": [\n  { "id": "a", "limit": "2/s", "by": ["ip"] } ] }',
    )
  })

  it('a value that other rules share is not changed', () => {
    const shared = 'rules:\n  - id: a\n    limit: &l 1/s\n  - id: b\n    limit: *l\n'
    expect(edit('a', { limit: '2/s' }, shared)).toBeUndefined()
    expect(edit('b', { limit: '2/s' }, shared)).toBe(shared.replace('*l', '2/s'))
  })

  it('a change of options returns the rule that results', () => {
    const edited = editOptions(file, 'each', changesOf({ by: 'ip' }))!
    expect(edited.rule).toContain('by: ip')
    expect(edited.options).toMatchObject({ id: 'each', by: 'ip', match: { path: '/a', header: { 'x-plan': 'free' } } })
    expect(editOptions(file, 'none', [])).toBeUndefined()
    expect(editOptions('rules: {}', undefined, changesOf({ id: 'a' }))).toBeUndefined()
  })

  it('any change of any rule changes this rule alone, in blocks and in braces', () => {
    const names = ['limit', 'by', 'match.path', 'match.method', 'block', 'zone']
    const value = fc.oneof(
      fc.constant(null),
      fc.string(),
      fc.constantFrom('1/s', '# no', '- x', 'a: b', '}', ']', ', x: 1', '\n  - id: evil'),
      fc.array(fc.string(), { maxLength: 3 }),
    )
    fc.assert(
      fc.property(
        fc.constantFrom('all', 'each', 'flow', 'last'),
        fc.dictionary(fc.constantFrom(...names), value),
        (id, changes) => {
          const edited = edit(id, changes)!
          expect(parseDocument(edited).errors).toEqual([])
          const [before, after] = [parse(file), parse(edited)]
          const others = (document: { rules: { id: string }[] }) => ({
            ...document,
            rules: document.rules.filter(rule => rule.id !== id),
          })
          expect(others(after)).toEqual(others(before))
          for (const comment of file.match(/# .+/g)!) {
            if (!/only these|not paid|two levels|slow/.test(comment)) expect(edited).toContain(comment)
          }
        },
      ),
    )
  })
})
