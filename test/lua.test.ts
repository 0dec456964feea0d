import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { engineWith } from '../packages/limiter/src/stores/redis/engine/engine.ts'
import { luaModules, writeLua } from '../scripts/write-lua.mjs'

describe('the Lua that counts in Redis', () => {
  it('every folder of .lua files has a module', () => {
    const source = fileURLToPath(new URL('../packages/limiter/src/', import.meta.url))
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.lua'))
    const folders = [...new Set(files.map(file => dirname(join(source, file))))]
    expect(
      luaModules()
        .map(({ path }) => dirname(path))
        .sort(),
    ).toEqual(folders.sort())
  })

  it('a module that is missing or stale is written, with the text of the .lua files but not their comments', async () => {
    const source = mkdtempSync(join(tmpdir(), 'diana-lua-'))
    const folder = join(source, 'stores/redis/script')
    mkdirSync(folder, { recursive: true })
    try {
      writeFileSync(join(folder, 'add-one.lua'), "-- adds\nreturn '`${x}\\n'\n")
      const module = join(folder, 'generated.ts')
      expect(writeLua(source)).toEqual([module])
      expect(writeLua(source)).toEqual([])
      expect(await import(/* @vite-ignore */ module)).toMatchObject({ addOne: "\nreturn '`${x}\\n'\n" })
      writeFileSync(join(folder, 'add-one.lua'), 'return 2\n')
      expect(writeLua(source)).toEqual([module])
      expect(readFileSync(module, 'utf8')).toContain('return 2')
      expect(readdirSync(folder).sort()).toEqual(['add-one.lua', 'generated.ts'])
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  // a system whose package manager does not have it goes without
  describe.skipIf(spawnSync('luacheck', ['--version']).error)('checked by luacheck', () => {
    it('luacheck finds nothing in the engine', () => {
      const folder = mkdtempSync(join(tmpdir(), 'diana-lua-'))
      const file = join(folder, 'engine.lua')
      writeFileSync(file, engineWith([]).script.text)
      try {
        expect(luacheck([file])).toContain('0 warnings / 0 errors')
      } finally {
        rmSync(folder, { recursive: true })
      }
    })

    it('luacheck finds nothing in the smaller scripts', () => {
      const folder = fileURLToPath(new URL('../packages/limiter/src/stores/redis/script/', import.meta.url))
      const files = readdirSync(folder).filter(file => file.endsWith('.lua'))
      const given = ['SILENT_PART', 'MOST_FIELDS', 'moves', 'floor', 'ceil', 'max', 'min']
      expect(
        luacheck(
          files.map(file => join(folder, file)),
          given,
        ),
      ).toContain(`0 warnings / 0 errors in ${files.length} files`)
    })
  })
})

function luacheck(files: readonly string[], given: readonly string[] = []): string {
  const globals = ['redis', 'cjson', 'cmsgpack', 'struct', 'KEYS', 'ARGV', ...given]
  const options = ['--no-color', '--codes', '--std', 'lua51', '--max-line-length', '140']
  return execFileSync('luacheck', [...files, ...options, ...globals.flatMap(name => ['--read-globals', name])], {
    encoding: 'utf8',
  })
}
