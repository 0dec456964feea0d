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
  ])('lines of the screen fit into a terminal of %o', size => {
    const lines = drawTop({ at: 0, total: counts, rules }, status, { isClearing: true, size })
    const plain = lines.map(line => line.replace('\u001b[H\u001b[2J', ''))
    expect(Math.max(...plain.map(line => line.length))).toBeLessThanOrEqual(size.columns)
    if (size.rows >= 10) {
      expect(lines.length).toBeLessThan(size.rows)
      expect(plain.at(-1)).toMatch(/^and \d+ more rules$/)
    }
  })

  it.each([
    ['r', ['many', 'calls', 'slots', 'busy']],
    ['a', ['calls', 'busy', 'many', 'slots']],
    ['w', ['slots', 'many', 'calls', 'busy']],
    ['l', ['busy', 'many', 'calls', 'slots']],
    ['n', ['busy', 'calls', 'many', 'slots']],
  ])('with the key %s rules are listed in the order %j', (order, names) => {
    const some = {
      many: { ...counts, refused: 9 },
      calls: { ...counts, allowed: 50, refused: 3 },
      slots: { ...counts, waiting: 2, refused: 2 },
      busy: { ...counts, allowed: 6, load: 0.9 },
    }
    const lines = drawTop({ at: 0, total: counts, rules: some }, {}, { isClearing: true, order })
    expect(lines.slice(-4).map(line => line.split(' ')[0])).toEqual(names)
  })

  it('a terminal with colors shows rules that refuse in red, and others as they are', () => {
    const some = { hot: counts, cold: { ...counts, refused: 0 } }
    const lines = drawTop({ at: 0, total: counts, rules: some }, status, { isClearing: true, hasColors: true })
    const colorOf = (text: string) => {
      const line = lines.find(one => one.includes(text))!.replace('\u001b[H\u001b[2J', '')
      return line.startsWith('\u001b[') ? line.slice(2, line.indexOf('m')) : undefined
    }
    expect(['hot', 'cold', 'wrong', 'Diana'].map(colorOf)).toEqual(['31', undefined, '33', '1'])
    const plain = drawTop({ at: 0, total: counts, rules: some }, status, { isClearing: false })
    expect(plain.join('')).not.toContain('\u001b')
  })

  it('without a terminal lines are whole, and at most 40 rules are listed', () => {
    const lines = drawTop({ at: 0, total: counts, rules }, status, { isClearing: false })
    expect(lines[1]).toContain('wrong '.repeat(40).trim())
    expect(lines.at(-1)).toBe('and 20 more rules')
  })
})
