import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HeaderNames } from './header-names.ts'

const bytes = fc.uint8Array({ maxLength: 60 })
// few letters, so that many names share a place
const similar = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '-'), maxLength: 6 }).map(text => Buffer.from(text))

it('the text of a header name is its bytes in lower case, whichever names came before', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(bytes, similar), { maxLength: 80 }), all => {
      const names = new HeaderNames()
      for (const one of all) {
        const buffer = Buffer.from(one)
        const expected = buffer.toString('latin1').toLowerCase()
        expect(names.textOf(buffer)).toBe(expected)
        // what was received is overwritten later
        buffer.fill(0x78)
      }
    }),
  )
})
