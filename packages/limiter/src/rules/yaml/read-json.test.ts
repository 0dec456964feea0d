import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { composeYaml } from './compose-yaml.ts'
import { readJson } from './read-json.ts'
import { readNodes } from './read-nodes.ts'

/** What YAML makes of a text, or undefined if it finds anything wrong with it. */
function readYaml(text: string): unknown {
  const { document, fault } = composeYaml(text)
  if (fault || !document?.contents) return undefined
  const { value, faults } = readNodes(document)
  return faults.length === 0 ? value : undefined
}

describe('JSON', () => {
  it('the JSON reader returns what the YAML parser returns, or nothing', () => {
    let count = 0
    const texts = fc.constantFrom('id', 'rules', 'limit', 'a b', '', '"', '\\', '1e3', ':', '订单', '__proto__', '<<')
    const number = fc.double({ noNaN: true, noDefaultInfinity: true })
    const leaf = fc.oneof(fc.string(), texts, number, fc.integer(), fc.boolean(), fc.constant(null))
    const value = fc.object({ maxDepth: 4, key: fc.oneof(texts, fc.string()), values: [leaf] })
    const property = fc.property(value, fc.constantFrom(0, 2, 4), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      const read = readJson(text)
      if (read === undefined) return
      count++
      expect(read).toEqual(readYaml(text))
    })
    fc.assert(property, { numRuns: randomRuns(500) })
    expect(count).toBeGreaterThan(randomRuns(50))
  })

  it('the JSON reader reads plain JSON', () => {
    const text = '{ "a" : [1, 2.5, -3, "x:\\"y\\\\", true, null], "b": {"a": "1e5"} }\n'
    expect(readJson(text)).toEqual({ a: [1, 2.5, -3, 'x:"y\\', true, null], b: { a: '1e5' } })
  })

  it.each([
    ['a list', '[1]'],
    ['text', '"{"'],
    ['YAML', '{ a: 1 }'],
    ['a word given twice', '{"a": 1, "b": {"c": 1, "c" : 2}}'],
    ['a word given twice, spelled in two ways', '{"a": 1, "\\u0061": 2}'],
    ['an exponent', '{"a": 1e3}'],
    ['another exponent', '{"a": [1.5E+2]}'],
    ['a prototype', '{"__proto__": {}}'],
    ['a merge', '{"<<": {}}'],
    ['a comment', '{"a": 1} # one'],
    ['half a document', '{"a": [1, 2'],
    ['a nest', `{"a": ${'['.repeat(17)}${']'.repeat(17)}}`],
    ['a bottomless nest', `{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a long list', `{"a": [${'1,'.repeat(10_000)}1]}`],
    ['a wide map', JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`w${i}`, 1])))],
    ['nothing', ''],
  ])('the JSON reader leaves JSON with %s to the YAML parser', (_, text) => {
    expect(readJson(text)).toBeUndefined()
  })
})
