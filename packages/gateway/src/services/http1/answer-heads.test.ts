import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnswerHeads } from './service-client.ts'

function readAll(text: string, cuts: readonly number[] = []): string {
  const heads = new AnswerHeads()
  heads.expect()
  const ends = [...new Set(cuts.map(cut => cut % (text.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...ends]
    .map((from, index) => heads.read(Buffer.from(text.slice(from, ends[index] ?? text.length), 'latin1')))
    .map(bytes => bytes.toString('latin1'))
    .join('')
}

const eol = fc.constantFrom('\r\n', '\n')
const line = fc
  .tuple(fc.constantFrom('X-A', 'Link', 'Date'), fc.constantFrom('', '1', 'a\rb', '</a>; rel=x', 'é'))
  .map(([name, value]) => `${name}: ${value}`)

/** A head, as it is sent and as it is to be parsed. */
function head(status: fc.Arbitrary<string>): fc.Arbitrary<[sent: string, parsed: string]> {
  return fc
    .tuple(status, fc.array(fc.tuple(line, eol), { maxLength: 4 }), eol, eol)
    .map(([said, lines, first, last]): [string, string] => [
      `HTTP/1.1 ${said}${first}${lines.map(([text, end]) => text + end).join('')}${last}`,
      said.startsWith('100') ? '' : `HTTP/1.1 ${said}\r\n${lines.map(([text]) => `${text}\r\n`).join('')}\r\n`,
    ])
}

describe('heads of answers', () => {
  test('heads of answers are the same in any split, without 100 and with CRLF, and bodies are unchanged', () => {
    fc.assert(
      fc.property(
        fc.array(head(fc.constantFrom('100 Continue', '100', '102 Processing', '103 Early Hints')), { maxLength: 4 }),
        head(fc.constantFrom('200 OK', '204', '304 Not Modified', '101 Switching', '500 é')),
        fc.constantFrom('', 'ok', '\n\n', 'HTTP/1.1 100 Continue\r\n\r\n', '\r\nHTTP/1.1 200\n'),
        fc.array(fc.nat(400), { maxLength: 12 }),
        (interims, [sent, parsed], body, cuts) => {
          const all = interims.map(([text]) => text).join('') + sent + body
          expect(readAll(all, cuts)).toBe(interims.map(([, text]) => text).join('') + parsed + body)
        },
      ),
      { numRuns: randomRuns(250) },
    )
  })

  test('heads of answers that need no change are passed on without a copy', () => {
    const heads = new AnswerHeads()
    heads.expect()
    const bytes = Buffer.from('HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nbody')
    expect(heads.read(bytes)).toBe(bytes)
  })

  test('the head of an answer begins with the first byte, and each call starts from the beginning', () => {
    const heads = new AnswerHeads()
    heads.expect()
    expect(heads.end()).toBe(false)
    heads.expect()
    heads.read(Buffer.from('\n'))
    expect(heads.end()).toBe(true)
    // a connection that could not be opened again has sent nothing
    expect(heads.end()).toBe(false)
  })
})
