import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { listApi } from './api/listing.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The entries of the packages that are code: the name to import, and the file of declarations that `tsc -b` writes. */
const entries = ['limiter', 'gateway'].flatMap(folder => {
  const text = readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')
  const { name, exports } = JSON.parse(text) as { name: string; exports: Record<string, string> }
  return Object.entries(exports)
    .filter(([, file]) => file.endsWith('.js'))
    .map(([entry, file]) => ({
      name: entry.replace('.', name),
      types: join(root, 'packages', folder, file.replace(/\.js$/, '.d.ts')),
      main: join(root, 'packages', folder, exports['.']!.replace(/\.js$/, '.d.ts')),
    }))
})

describe('the public API', () => {
  it.each(entries)(
    '$name exports the names and types that test/api lists; npm run write -- api writes the lists',
    async entry => {
      await expect(listApi(entry.types, entry.main)).toMatchFileSnapshot(`api/${entry.name.replace('/', '.')}.txt`)
    },
  )
})
