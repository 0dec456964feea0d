import { once } from 'node:events'
import fs from 'node:fs'
import { mkdir, mkdtemp, open, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSource } from '@test/sources/create-source'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { file, fileSource } from './file.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'diana-file-'))
})
afterAll(() => rm(root, { recursive: true }))

const newFolder = () => mkdtemp(join(root, 'f-'))

async function documents(path: string, intervalMs = 60_000) {
  const controller = new AbortController()
  const watch = fileSource(path, { intervalMs }).watch(controller.signal)[Symbol.asyncIterator]()
  return {
    next: async () => (await watch.next()).value?.text,
    end: () => controller.abort(),
  }
}

function spyOnWatch() {
  const spy = vi.spyOn(fs, 'watch')
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  return spy
}

it('an empty file is a document, one that does not exist is none', async () => {
  const path = join(await newFolder(), 'rules.yaml')
  const controller = new AbortController()
  const watch = fileSource(path, { intervalMs: 50 }).watch(controller.signal)[Symbol.asyncIterator]()
  expect((await watch.next()).value).toMatchObject({ text: '', isMissing: true })
  await writeFile(path, '')
  expect((await watch.next()).value).toEqual({ text: '', version: expect.any(String) })
  await rm(path)
  expect((await watch.next()).value).toMatchObject({ text: '', isMissing: true })
  controller.abort()
})

describe('a file keeps the promises of a source', () => {
  const tests = sourceSuite({
    writes: true,
    async create() {
      const folder = await newFolder()
      const path = join(folder, 'rules.yaml')
      let kept = ''
      return {
        source: fileSource(path, { intervalMs: 60_000 }),
        async put(text) {
          kept = text
          await writeFile(`${path}.new`, text)
          await rename(`${path}.new`, path)
        },
        remove: () => rm(path),
        async stop() {
          await rm(path, { force: true })
          await mkdir(path)
        },
        async start() {
          await rm(path, { recursive: true })
          await writeFile(path, kept)
        },
        close: () => rm(folder, { recursive: true }),
      }
    },
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('a file', () => {
  it('a change of a file that is written in place is seen', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, 'one')
    const watch = await documents(path)
    expect(await watch.next()).toBe('one')
    await writeFile(path, 'two')
    expect(await watch.next()).toBe('two')
    watch.end()
  })

  it('a change of a file is seen long before the next poll', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, 'one')
    const watch = await documents(path)
    await watch.next()
    const next = watch.next()
    const start = performance.now()
    await writeFile(path, 'two')
    await next
    expect(performance.now() - start).toBeLessThan(1000)
    watch.end()
  })

  it('a change of a file is seen when Kubernetes swaps the link to its directory', async () => {
    const folder = await newFolder()
    const publish = async (version: string, text: string) => {
      await mkdir(join(folder, version))
      await writeFile(join(folder, version, 'rules.yaml'), text)
      await symlink(version, join(folder, '..data_tmp'))
      await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    await publish('..2026_01', 'one')
    await symlink('..data/rules.yaml', join(folder, 'rules.yaml'))
    const watch = await documents(join(folder, 'rules.yaml'))
    expect(await watch.next()).toBe('one')
    await publish('..2026_02', 'two')
    expect(await watch.next()).toBe('two')
    await publish('..2026_03', 'three')
    expect(await watch.next()).toBe('three')
    watch.end()
  })

  it('a file is not read while it is being written', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, 'old')
    const watch = await documents(path)
    expect(await watch.next()).toBe('old')
    const next = watch.next()
    const writer = await open(path, 'w')
    for (let part = 0; part < 20; part += 1) {
      await writer.write(`part ${part}\n`)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    await writer.close()
    expect((await next)?.trimEnd().split('\n')).toHaveLength(20)
    watch.end()
  })

  it('a file that an editor moves away and writes again is not reported as deleted', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, 'one')
    const watch = await documents(path)
    await watch.next()
    const next = watch.next()
    await rename(path, `${path}~`)
    await writeFile(path, 'two')
    expect(await next).toBe('two')
    watch.end()
  })

  it('a file is found by polling when its directory is created later or replaced', async () => {
    const folder = join(await newFolder(), 'later')
    const path = join(folder, 'rules.yaml')
    const spy = spyOnWatch()
    const watch = await documents(path, 100)
    expect(await watch.next()).toBe('')
    await mkdir(folder)
    await writeFile(path, 'one')
    expect(await watch.next()).toBe('one')
    await rename(folder, `${folder}-old`)
    expect(await watch.next()).toBe('')
    const watchers = spy.mock.calls.length
    await mkdir(folder)
    await writeFile(path, 'two')
    expect(await watch.next()).toBe('two')
    expect(spy.mock.calls.length).toBeGreaterThan(watchers)
    watch.end()
  })

  it('a file that is not UTF-8 is an error', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, Buffer.from([0xff, 0xfe, 0x00]))
    const watch = await documents(path)
    await expect(watch.next()).rejects.toThrow(`file ${path}: holds bytes that are not UTF-8 text`)
  })

  it('the byte order mark of a file is removed', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    await writeFile(path, '\ufeffrules: []')
    const watch = await documents(path)
    expect(await watch.next()).toBe('rules: []')
    watch.end()
  })

  it('the watcher of a file is closed at the end', async () => {
    const path = join(await newFolder(), 'rules.yaml')
    const spy = spyOnWatch()
    const watch = await documents(path)
    await watch.next()
    expect(spy).toHaveBeenCalledOnce()
    const closed = once(spy.mock.results[0]!.value as fs.FSWatcher, 'close')
    watch.end()
    await closed
  })

  it('a file can be named in a rule file', () => {
    expect(createSource(file, '/etc/diana/rules.yaml').name).toBe('file /etc/diana/rules.yaml')
  })
})

describe('a file that is written', () => {
  const { signal } = new AbortController()

  it('a file that is written keeps its mode, and leaves nothing beside it', async () => {
    const folder = await newFolder()
    const path = join(folder, 'rules.yaml')
    await writeFile(path, 'one', { mode: 0o640 })
    await fileSource(path).write!('two', { text: 'one', version: '' }, signal)
    expect(fs.readFileSync(path, 'utf8')).toBe('two')
    expect(fs.statSync(path).mode & 0o777).toBe(0o640)
    expect(fs.readdirSync(folder)).toEqual(['rules.yaml'])
  })

  it('a written file behind a link is replaced at its target, and the link stays', async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'real.yaml'), 'one')
    await symlink('real.yaml', join(folder, 'rules.yaml'))
    await fileSource(join(folder, 'rules.yaml')).write!('two', { text: 'one', version: '' }, signal)
    expect(fs.readFileSync(join(folder, 'real.yaml'), 'utf8')).toBe('two')
    expect(fs.lstatSync(join(folder, 'rules.yaml')).isSymbolicLink()).toBe(true)
  })
})
