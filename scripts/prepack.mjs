// Builds a package before npm packs it, in the folder of the package: the page of the dashboard, or the code of the others.
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { buildPage } from './page.mjs'
import { root, run } from './run.mjs'
import { writeLua } from './write-lua.mjs'

const folder = basename(process.cwd())

if (folder === 'dashboard') await buildPage()
else {
  writeLua()
  const { code, output } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'])
  if (code !== 0) console.error(output)
  process.exitCode = code
}
if (folder === 'limiter') {
  // editors of users find the schema in the package, without spaces
  const schema = JSON.parse(readFileSync(join(root, 'docs/diana.schema.json'), 'utf8'))
  writeFileSync(join(root, 'packages/limiter/diana.schema.json'), `${JSON.stringify(schema)}\n`)
}
