import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Schema, suggest } from './schema-options.ts'
import { placeAt } from './yaml-place.ts'

const schemaFile = new URL('../../../../docs/diana.schema.json', import.meta.url)
const schema = JSON.parse(readFileSync(schemaFile, 'utf8')) as Schema

/** The cursor stands at the bar. */
function at(text: string) {
  const offset = text.indexOf('|')
  const place = placeAt(text.replace('|', ''), offset)
  return { ...place, words: suggest(schema, place).map(({ label }) => label) }
}

describe('completion by the schema of the rule file', () => {
  it('the top level completes the options of the document', () => {
    expect(at('|').words).toEqual(expect.arrayContaining(['rules', 'identify', 'store', 'remote', 'answer']))
    expect(at('st|').prefix).toBe('st')
  })

  it.each([
    ['rules:\n  - i|', ['rules', '[]']],
    ['rules:\n- i|', ['rules', '[]']],
    ['rules:\n  - id: a\n    l|', ['rules', '[]']],
    ['rules:\n- id: a\n  l|', ['rules', '[]']],
    ['rules:\n  - id: a\n    match:\n      path: /x\n    l|', ['rules', '[]']],
    ['rules:\n  - id: a\n    limit: 5/s\n  # a comment\n\n  - id: b\n    w|', ['rules', '[]']],
  ])('a rule completes the options of a rule: %j', (text, path) => {
    const { path: found, kind, words } = at(text)
    expect({ found, kind }).toEqual({ found: path, kind: 'key' })
    expect(words).toEqual(expect.arrayContaining(['id', 'limit', 'by', 'match', 'algorithm', 'whenFull']))
    expect(words).not.toContain('rules')
  })

  it.each([
    ['rules:\n  - id: a\n    match:\n      m|', 'm'],
    ['rules:\n  - id: a\n    match: { m|', 'm'],
    ['rules:\n  - id: a\n    match: { path: /a, m|', 'm'],
    ['rules:\n  - { id: a, match: { path: [/a, /b], m|', 'm'],
  ])('match completes the options of match: %j', (text, prefix) => {
    expect(at(text)).toMatchObject({ prefix, kind: 'key', path: ['rules', '[]', 'match'] })
    expect(at(text).words).toEqual(['path', 'method', 'host', 'header', 'attribute', 'websocket'])
  })

  it('a value completes to the values that the schema lists', () => {
    expect(at('rules:\n  - id: a\n    whenFull: |').words).toEqual(['refuse', 'wait', 'shadow', 'drop'])
    expect(at('rules:\n  - { id: a, whenFull: s|').words).toEqual(['refuse', 'wait', 'shadow', 'drop'])
    expect(at('rules:\n  - id: a\n    enabled: |').words).toEqual(['true', 'false'])
    expect(at('rules:\n  - id: a\n    algorithm: t|').words).toEqual(
      expect.arrayContaining(['token-bucket', 'sliding-window', 'concurrency']),
    )
    expect(at('answer:\n  headers: d|').words).toEqual(['draft-11', 'draft-7', 'draft-6', 'legacy', 'none'])
    expect(at('rules:\n  - id: a\n    limit: 5|').words).toEqual([])
  })

  it('completion throws for no text and no position', () => {
    const piece = fc.constantFrom(
      'rules:',
      '\n',
      '  ',
      '- ',
      'id: a',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '#',
      'match: ',
      '|',
      '\t',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.nat(200), (pieces, offset) => {
        const text = pieces.join('')
        const place = placeAt(text, Math.min(offset, text.length))
        expect(Array.isArray(suggest(schema, place))).toBe(true)
        expect(text.slice(0, offset).endsWith(place.prefix)).toBe(true)
      }),
    )
  })
})
