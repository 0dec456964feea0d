import { describe, expect, it } from 'vitest'
import { maskCaller } from './mask.ts'

describe('a masked caller', () => {
  it.each(['203.0.113.9', '2001:db8::1', 'ann@example.com', 'x', '界界界界界界界', '\u0000\u0007'])(
    'the masked caller %j is unreadable, and the same each time',
    name => {
      const masked = maskCaller(name)
      if (name.length > 1) expect(masked).not.toContain(name)
      expect(maskCaller(name)).toBe(masked)
      expect(maskCaller(`${name}2`)).not.toBe(masked)
    },
  )

  it('a masked address keeps only a small part', () => {
    expect(maskCaller('203.0.113.9')).toMatch(/^203\.0\.\*\.\* #[\da-f]{6}$/)
  })
})
