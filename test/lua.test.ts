import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { engineWith } from '../packages/limiter/src/stores/redis/engine/engine.ts'
import { luaModules } from '../scripts/lua-modules.mjs'

describe('the Lua that counts in Redis', () => {
  it.each(luaModules())('is current in the module of $folder: npm run lua writes it', ({ path, text }) => {
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  // a system whose package manager does not have it goes without
  describe.skipIf(spawnSync('luacheck', ['--version']).error)('has no finding of luacheck', () => {
    it('in the engine', () => {
      const folder = mkdtempSync(join(tmpdir(), 'diana-lua-'))
      const file = join(folder, 'engine.lua')
      writeFileSync(file, engineWith([]).script.text)
      try {
        expect(luacheck([file])).toContain('0 warnings / 0 errors')
      } finally {
        rmSync(folder, { recursive: true })
      }
    })

    it('in the smaller scripts', () => {
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
