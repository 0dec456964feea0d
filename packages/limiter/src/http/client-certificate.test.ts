import fc from 'fast-check'
import { expect, it } from 'vitest'
import { alternativeNames } from './client-certificate.ts'

/** As Node writes a name: as a JSON string if it has a character that could be taken for a separator. */
function written(name: string): string {
  return /[^\x20-\x7e]|[,"\\']/.test(name) ? JSON.stringify(name) : name
}

it('alternative names are read back as they were, also if a name holds separators, quotes and prefixes', () => {
  const kind = fc.constantFrom('DNS', 'URI', 'email', 'IP Address')
  const name = fc.stringMatching(/^[a-z:, "\\/.@-]{1,20}$/).map(text => text.trim() || 'x')
  fc.assert(
    fc.property(fc.array(fc.tuple(kind, name), { maxLength: 5 }), names => {
      const text = names.map(([kind, name]) => `${kind}:${written(name)}`).join(', ')
      expect(alternativeNames(text)).toEqual(names)
    }),
  )
})
