import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { engineWith } from '../packages/limiter/src/stores/redis/engine/engine.ts'
import { luaModules } from '../scripts/lua-modules.mjs'

describe('the Lua that counts in Redis', () => {
  it.each(luaModules())('is current in the module of $folder: npm run lua writes it', ({ path, text }) => {
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  // a system whose package manager does not have it goes without
  it.skipIf(spawnSync('luacheck', ['--version']).error)('has no finding of luacheck', () => {
    const folder = mkdtempSync(join(tmpdir(), 'diana-lua-'))
    const file = join(folder, 'engine.lua')
    writeFileSync(file, engineWith([]).script.text)
    try {
      const globals = ['redis', 'cjson', 'cmsgpack', 'struct', 'KEYS', 'ARGV'].flatMap(name => ['--read-globals', name])
      const options = ['--no-color', '--codes', '--std', 'lua51', '--max-line-length', '140']
      const report = execFileSync('luacheck', [file, ...options, ...globals], { encoding: 'utf8' })
      expect(report).toContain('0 warnings / 0 errors')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
