import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parseGatewaySettings } from '../packages/gateway/src/settings/gateway-settings.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = readFileSync(`${root}docs/hardening.md`, 'utf8')
const rows = [...page.matchAll(/^\| `([\w.]+)` \| (`[^`]+`|any size) \|/gm)].map(([, name, value]) => ({
  name: name!,
  value: value!.replaceAll('`', ''),
}))

/** A section with one setting, at its place. */
function sectionOf(name: string, value: string): object {
  const leaf = /^\d+$/.test(value) ? Number(value) : value
  return name.split('.').reduceRight<unknown>((inner, word) => ({ [word]: inner }), leaf) as object
}

const routes = [{ to: 'http://127.0.0.1:3000' }]

test('docs/hardening.md lists every bound on callers and on connections to services', () => {
  const { limits } = parseGatewaySettings({})
  expect(rows.filter(({ name }) => name.startsWith('limits.'))).toHaveLength(Object.keys(limits).length)
  expect(rows.length).toBeGreaterThan(10)
})

test.each(rows)('docs/hardening.md shows the default of $name', ({ name, value }) => {
  const stated = value === 'any size' ? {} : sectionOf(name, value)
  expect(parseGatewaySettings({ ...stated, routes })).toEqual(parseGatewaySettings({ routes }))
})
