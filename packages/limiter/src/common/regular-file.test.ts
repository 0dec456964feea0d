import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { assertRegularFile, type ReadOptions, readRegularFile, readRegularFileSync } from './regular-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'diana-regular-'))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string) => join(folder, name)
writeFileSync(at('small'), 'text')
writeFileSync(at('large'), Buffer.alloc(2_000_000))
symlinkSync(at('small'), at('link'))
symlinkSync(at('pipe'), at('link-to-pipe'))
mkdirSync(at('folder'))
execFileSync('mkfifo', [at('pipe')])

type Read = (path: string, options?: ReadOptions) => Promise<Buffer>
const ways: readonly (readonly [name: string, read: Read])[] = [
  ['asynchronously', readRegularFile],
  ['synchronously', async (path, options) => readRegularFileSync(path, options)],
]

describe.each(ways)('a file that is read %s', (_, read) => {
  it('a file is read whole, also if it is several buffers long or behind a link', async () => {
    expect(String(await read(at('small')))).toBe('text')
    expect(String(await read(at('link')))).toBe('text')
    expect(await read(at('large'), { mostBytes: 2_000_000 })).toHaveLength(2_000_000)
  })

  it.each([
    ['pipe', 'not a regular file'],
    ['link-to-pipe', 'not a regular file'],
    ['folder', 'not a regular file'],
    ['../../../../../../../dev/zero', 'not a regular file'],
    ['large', 'larger than 1024 KiB'],
    ['none', 'ENOENT'],
  ])('a file is refused at once if it is %s', async (name, message) => {
    await expect(read(at(name))).rejects.toThrow(message)
  })

  it('a file behind a link is refused if links are not allowed', async () => {
    await expect(read(at('link'), { noLinks: true })).rejects.toThrow('ELOOP')
  })

  it('a file without a size, such as in /proc, is read up to the bound', async () => {
    await expect(read('/proc/self/status', { mostBytes: 10 })).rejects.toThrow('larger than')
  })
})

describe('a file that other code reads', () => {
  it('a file that other code reads must be a regular file', async () => {
    await assertRegularFile(at('link'))
    await expect(assertRegularFile(at('pipe'))).rejects.toThrow('not a regular file')
  })
})
