// Runs before diana-limiter is packed: compiles it, and puts docs/diana.schema.json beside it, without spaces.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './run.mjs'
import { writeLua } from './write-lua.mjs'

writeLua()
const { code, output } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'])
if (code !== 0) console.error(output)
const schema = JSON.parse(readFileSync(join(root, 'docs/diana.schema.json'), 'utf8'))
writeFileSync(join(root, 'packages/limiter/diana.schema.json'), `${JSON.stringify(schema)}\n`)
process.exitCode = code
