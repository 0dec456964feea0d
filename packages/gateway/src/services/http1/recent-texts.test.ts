import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RecentTexts } from './whole-answer.ts'

const bytes = fc.uint8Array({ maxLength: 60 })
// few letters, so that many texts share a place
const similar = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '-'), maxLength: 6 }).map(text => Buffer.from(text))

it('a text is that of its bytes, whichever texts came before', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(bytes, similar), { maxLength: 80 }), all => {
      const texts = new RecentTexts('as they are')
      const names = new RecentTexts('in lower case')
      for (const one of all) {
        const buffer = Buffer.from(one)
        const expected = buffer.toString('latin1')
        expect(texts.textOf(buffer)).toBe(expected)
        expect(names.textOf(buffer)).toBe(expected.toLowerCase())
        // what was received is overwritten later
        buffer.fill(0x78)
      }
    }),
  )
})
