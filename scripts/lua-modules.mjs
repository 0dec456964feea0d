import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from './run.mjs'

const source = join(root, 'packages/limiter/src')

/** The modules that are generated from Lua sources: their paths and texts. A test keeps them current. */
export function luaModules() {
  return [
    moduleOf(join(source, 'algorithms/lua'), {
      head: "import type { LuaAlgorithm } from '../algorithm.ts'",
      declare: (name, text) => `export const ${camelCase(name)}Lua: LuaAlgorithm = { name: '${name}', lua: ${text} }`,
    }),
    ...['engine', 'script'].map(folder => {
      return moduleOf(join(source, 'stores/redis', folder), {
        head: '',
        declare: (name, text) => `export const ${camelCase(name)}: string = ${text}`,
      })
    }),
  ]
}

function moduleOf(folder, { head, declare }) {
  const files = readdirSync(folder).filter(file => file.endsWith('.lua'))
  const declarations = files.sort().map(file => {
    // lines of comments are for readers of the .lua files: they are neither bundled nor sent to Redis
    const code = readFileSync(join(folder, file), 'utf8').replace(/^ *--.*\n/gm, '')
    const text = code.replace(/[`\\$]/g, character => `\\${character}`)
    return declare(file.slice(0, -'.lua'.length), `\`\n${text}\``)
  })
  const note = '// Generated from the .lua files beside it by npm run lua: do not edit.'
  return {
    folder: basename(folder),
    path: join(folder, 'generated.ts'),
    text: `${[note, ...(head ? [head] : []), ...declarations].join('\n\n')}\n`,
  }
}

function camelCase(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())
}
