#!/usr/bin/env node
// Makes modules of the .lua files, so that the packages need no file but JavaScript. They are not committed: npm install,
// every command that compiles, and vitest.config.ts write them.
import { existsSync, readdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../packages/limiter/src', import.meta.url))

const folders = [
  {
    folder: 'algorithms/lua',
    head: [
      "import type { LuaAlgorithm } from '../algorithm.ts'",
      'type OwnLua = LuaAlgorithm & { readonly lua: string }',
    ],
    declare: (name, text) => `export const ${camelCase(name)}Lua: OwnLua = { name: '${name}', lua: ${text} }`,
  },
  ...['stores/redis/engine', 'stores/redis/script'].map(folder => ({
    folder,
    head: [],
    declare: (name, text) => `export const ${camelCase(name)}: string = ${text}`,
  })),
]

/** Writes the modules that are missing or differ from their .lua files, and returns the paths of those. */
export function writeLua(from = source) {
  const stale = luaModules(from).filter(({ path, text }) => !existsSync(path) || readFileSync(path, 'utf8') !== text)
  for (const { path, text } of stale) {
    // renamed into place, since another command may read it at this moment
    writeFileSync(`${path}.${process.pid}`, text)
    renameSync(`${path}.${process.pid}`, path)
  }
  return stale.map(({ path }) => path)
}

/** Returns the paths and texts of the modules, one for each folder of .lua files. */
export function luaModules(from = source) {
  return folders
    .filter(({ folder }) => existsSync(join(from, folder)))
    .map(({ folder, head, declare }) => {
      const files = readdirSync(join(from, folder)).filter(file => file.endsWith('.lua'))
      const declarations = files.sort().map(file => {
        // comments, blank lines and indentation are for readers of the .lua files: they are neither bundled nor sent to Redis
        const code = readFileSync(join(from, folder, file), 'utf8')
          .replace(/^ *--.*\n/gm, '')
          .replace(/^ +/gm, '')
          .replace(/^\n/gm, '')
        const text = code.replace(/[`\\$]/g, character => `\\${character}`)
        return declare(file.slice(0, -'.lua'.length), `\`\n${text}\``)
      })
      const note = '// Written by scripts/write-lua.mjs from the .lua files of this folder: change those.'
      return { path: join(from, folder, 'generated.ts'), text: `${[note, ...head, ...declarations].join('\n\n')}\n` }
    })
}

function camelCase(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) writeLua()
