import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { commentLine, documentChange, noteChanges } from './rule-changes.ts'

const before =
  'answer: { status: 429 }\nrules:\n  - id: a\n    limit: 1/s\n  - { id: b, limit: 2/s }\n  - { id: c, limit: 3/s }\n'
const after = before
  .replace('1/s', '9/s')
  .replace('  - { id: b, limit: 2/s }\n', '')
  .concat('  - id: d\n    limit: 4/s\n')

describe('what changed between two texts of a document', () => {
  it('rules that were added, changed and removed are named, and whether anything else changed', () => {
    expect(documentChange(before, after)).toEqual({
      rules: [
        { id: 'a', change: 'changed' },
        { id: 'd', change: 'added' },
        { id: 'b', change: 'removed' },
      ],
      others: false,
    })
    expect(documentChange(before, before.replace('429', '503'))).toEqual({ rules: [], others: true })
    expect(documentChange(before, `# a comment\n${before}`)).toEqual({ rules: [], others: false })
    expect(documentChange('[', before).rules).toHaveLength(3)
  })

  it('a comment is written above each rule that was added or changed', () => {
    expect(noteChanges(before, after, 'launch week')).toBe(
      after.replace('  - id: a', '  # launch week\n  - id: a').replace('  - id: d', '  # launch week\n  - id: d'),
    )
    expect(noteChanges(before, before, 'nothing')).toBeUndefined()
    expect(noteChanges(before, after, ' \n ')).toBeUndefined()
    expect(noteChanges('', '{"rules": [{"id": "a", "limit": "1/s"}]}', 'JSON has none')).toBeUndefined()
    const flow = 'rules: [ { id: a, limit: 1/s,\n  x: "b\n  c" }, { id: e, limit: 1/s } ]\n'
    expect(noteChanges(flow, flow.replace('e, limit: 1', 'e, limit: 2'), 'inside a text')).toBeUndefined()
  })

  it('no comment changes what a document means, whatever it contains', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom(
        'x\n  - id: evil\n    limit: 0/s',
        'x\r  - { id: evil, limit: 0/s }',
        'x\u0085- id: evil',
        'x\u2028  - id: evil',
        '\u0000\u202e # x',
        '---\nrules: []',
      ),
    )
    fc.assert(
      fc.property(hostile, comment => {
        const noted = noteChanges(before, after, comment)
        if (noted === undefined) return
        expect(parse(noted)).toEqual(parse(after))
        expect(noted.split('\n')).toHaveLength(after.split('\n').length + 2)
      }),
      { numRuns: 60 },
    )
  })

  it('a comment is one line of bounded length', () => {
    expect(commentLine(' a\r\n\tb\u0000\u2029c ')).toBe('a b c')
    expect(commentLine('x'.repeat(1000))).toHaveLength(300)
    expect(commentLine(`${'x'.repeat(298)}😀y`)).toBe(`${'x'.repeat(298)}…`)
  })
})
