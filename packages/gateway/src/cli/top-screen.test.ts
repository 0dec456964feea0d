import { describe, expect, it } from 'vitest'
import { drawTop } from './top-screen.ts'

const counts = { allowed: 5, refused: 1, waited: 0, shadowRefused: 0, waiting: 0 }
const rules = Object.fromEntries(
  Array.from({ length: 60 }, (_, i) => [
    `a-rule-with-a-long-name-${'x'.repeat(i % 50)}-${i}`,
    { ...counts, refused: i },
  ]),
)
const status = { version: '1.0.0', sources: [{ name: 'diana.yaml', trouble: `line 3: ${'wrong '.repeat(40)}` }] }

describe('the screen of diana top', () => {
  it.each([
    { columns: 80, rows: 24 },
    { columns: 120, rows: 10 },
    { columns: 40, rows: 60 },
    { columns: 8, rows: 3 },
  ])('its lines fit into a terminal of %o', size => {
    const lines = drawTop({ at: 0, total: counts, rules }, status, { isClearing: true, size })
    const plain = lines.map(line => line.replace('\u001b[H\u001b[2J', ''))
    expect(Math.max(...plain.map(line => line.length))).toBeLessThanOrEqual(size.columns)
    if (size.rows >= 10) {
      expect(lines.length).toBeLessThan(size.rows)
      expect(plain.at(-1)).toMatch(/^and \d+ more rules$/)
    }
  })

  it('without a terminal lines are whole, and at most 40 rules are listed', () => {
    const lines = drawTop({ at: 0, total: counts, rules }, status, { isClearing: false })
    expect(lines[1]).toContain('wrong '.repeat(40).trim())
    expect(lines.at(-1)).toBe('and 20 more rules')
  })
})
