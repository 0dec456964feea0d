import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonNumbersAtEnd } from './json-end.ts'
import { jsonNumbers, pathTree } from './json-numbers.ts'

const paths = [['max_tokens'], ['usage', 'total']]
const read = (text: string | Buffer) => jsonNumbers(Buffer.from(text as string), pathTree(paths))

describe('numbers in JSON', () => {
  it.each<[string, (number | undefined)[], string]>([
    ['{"max_tokens":5}', [5], 'whole'],
    [' \r\n\t{ "a" : [1,{"max_tokens":9}], "max_tokens" : 5.5e1 }\n', [55], 'whole'],
    ['\uFEFF{"max_tokens":5}', [5], 'whole'],
    ['{"usage":{"total":7,"max_tokens":1},"max_tokens":-2}', [-2, 7], 'whole'],
    ['{"max\\u005ftokens":5}', [5], 'whole'],
    ['{"max_tokens":5,"max_tokens":900}', [900], 'whole'],
    ['{"max_tokens":900,"max_tokens":5}', [900], 'whole'],
    ['{"max_tokens":"900"}', [Number.NaN], 'whole'],
    ['{"max_tokens":true}', [Number.NaN], 'whole'],
    ['{"max_tokens":[9]}', [Number.NaN], 'whole'],
    ['{"max_tokens":5,"max_tokens":{}}', [Number.NaN], 'whole'],
    ['{"max_tokens":null}', [], 'whole'],
    ['{"usage":[{"total":3}]}', [], 'whole'],
    ['[{"max_tokens":5},{"max_tokens":6}]', [6], 'whole'],
    ['{"max_tokens":5}\n{"max_tokens":6}', [6], 'whole'],
    ['{}', [], 'whole'],
    ['"max_tokens"', [], 'whole'],
    ['', [], 'cut'],
    ['{"max_tokens":12', [], 'cut'],
    ['{"max_tokens":12,"a":"\\', [12], 'cut'],
    ['{"text":"\\\\\\"max_tokens\\":3","max_tokens":4}', [4], 'whole'],
    ['{"max_tokens":0x10}', [], 'invalid'],
    ['{"max_tokens":1e}', [], 'invalid'],
    ['{max_tokens:1}', [], 'invalid'],
    ['{"a":1}}', [], 'invalid'],
    ['{"a":[1}', [], 'invalid'],
    ['max_tokens=5', [], 'invalid'],
    ['{"max_tokens":1e999}', [Number.POSITIVE_INFINITY], 'whole'],
  ])('numbers are read from the JSON %j', (text, numbers, end) => {
    expect(read(text)).toEqual({ numbers, end })
  })

  it('megabytes of brackets, quotes and backslashes are read in a bounded time, without a deep stack', () => {
    const started = performance.now()
    for (const text of ['[', '{"a":', '\\', '"', '[{"max_tokens":[', '""', '"\\"']) {
      read(text.repeat(65_536 / text.length))
      jsonNumbersAtEnd(Buffer.from(text.repeat(65_536 / text.length)), paths)
    }
    jsonNumbersAtEnd(Buffer.from('"usage":{"total":1},'.repeat(3000)), paths)
    expect(performance.now() - started).toBeLessThan(2000)
  })

  it('the reader of numbers agrees with JSON.parse on any document, and never reads more from a part of one', () => {
    const document = fc.record({
      max_tokens: fc.nat(),
      a: fc.jsonValue(),
      usage: fc.record({ total: fc.nat(), b: fc.jsonValue() }),
    })
    fc.assert(
      fc.property(document, fc.nat(), fc.constantFrom(undefined, 1, '\t'), (value, place, indent) => {
        const bytes = Buffer.from(JSON.stringify(value, undefined, indent))
        const all = [value.max_tokens, value.usage.total]
        expect(read(bytes)).toEqual({ numbers: all, end: 'whole' })
        const cut = place % bytes.length
        const part = read(bytes.subarray(0, cut))
        expect(part.end).toBe('cut')
        for (const [index, number] of part.numbers.entries()) if (number !== undefined) expect(number).toBe(all[index])
        const end = jsonNumbersAtEnd(bytes.subarray(cut), paths)
        for (const [index, number] of end?.numbers.entries() ?? [])
          if (number !== undefined) expect(number).toBe(all[index])
      }),
      { numRuns: 200 },
    )
  })

  it('any bytes are read without an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        expect(['whole', 'cut', 'invalid']).toContain(jsonNumbers(Buffer.from(bytes), pathTree(paths)).end)
        jsonNumbersAtEnd(Buffer.from(bytes), paths)
      }),
      { numRuns: 200 },
    )
  })
})

describe('numbers at the end of JSON', () => {
  const atEnd = (text: string) => jsonNumbersAtEnd(Buffer.from(text), paths)?.numbers

  it.each<[string, (number | undefined)[] | undefined]>([
    ['ext"}],"usage":{"total":7}}', [undefined, 7]],
    ['ext"}],"usage":{"a":{"total":1},"total":7},"id":"x"} \n', [undefined, 7]],
    ['ext"}],"usage":{"total":7}}]', [undefined, 7]],
    // a caller can have this name put into an inner object, or into a text
    ['"input":{"usage":{"total":7}}}]}', undefined],
    ['said \\"usage\\":{\\"total\\":7}"}', undefined],
    ['x\\"usage":{"total":7}}', undefined],
    ['{"usage":{"total":9}},"usage":{"total":7}}', [undefined, 7]],
    ['"usage":{"total":7', undefined],
    ['tal":5}}', undefined],
    ['"total":5},"max_tokens":3}', [3]],
    ['"other":{"total":5}}', undefined],
  ])('numbers are read from the end of JSON: %j', (text, numbers) => {
    expect(atEnd(text)).toEqual(numbers)
  })
})
