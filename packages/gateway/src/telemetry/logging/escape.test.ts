import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { escapeJson, escapeLog } from './escape.ts'

// what Node makes of bytes in a header or target, and what HTTP/2 might
const hostile = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes).toString('latin1')),
  fc.constantFrom('\r\n{"status":200}', '" 200 0 "', '\\', '\u2028', '\ud800', '\x1b[31m', '\u0000'),
)

describe('escaping', () => {
  test('escaping for JSON gives one line of ASCII that is read back as it was', () => {
    fc.assert(
      fc.property(hostile, text => {
        const escaped = escapeJson(text, 1000)
        expect(escaped).toMatch(/^[\x20-\x7e]*$/)
        expect(JSON.parse(`"${escaped}"`)).toBe(text)
      }),
    )
  })

  test('escaping for the combined format gives ASCII without quotes and no backslash but its own', () => {
    fc.assert(
      fc.property(hostile, text => {
        expect(escapeLog(text, 1000)).toMatch(/^(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\x[0-9A-F]{2})*$/)
      }),
    )
    expect(escapeLog('a"b\\c\n\xff', 100)).toBe('a\\x22b\\x5Cc\\x0A\\xFF')
  })

  test('escaping keeps to a length and cuts no escape in two', () => {
    fc.assert(
      fc.property(hostile, fc.integer({ min: 10, max: 40 }), (text, maxLength) => {
        for (const escaped of [escapeJson(text, maxLength), escapeLog(text, maxLength)]) {
          expect(escaped.length).toBeLessThanOrEqual(maxLength)
        }
        expect(() => JSON.parse(`"${escapeJson(text, maxLength)}"`)).not.toThrow()
      }),
    )
    expect(escapeJson('x'.repeat(30), 20)).toBe(`${'x'.repeat(17)}...`)
  })
})
