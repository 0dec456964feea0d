import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { FakeConfigCenter, folder, limitsOf, localLimits, startLiveRules } from '@test/sources/config-center'
import { describe, expect, it, vi } from 'vitest'

describe('a snapshot', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }]'
  let count = 0
  const newPath = (): string => join(folder, `snapshot-${count++}.json`)

  async function written(path: string, text = remoteText): Promise<string> {
    const center = new FakeConfigCenter()
    const { live } = startLiveRules({ center, snapshot: path })
    center.publish(text, '1')
    await live.start()
    await live.close()
    return path
  }

  function replaceByLink(path: string): void {
    renameSync(path, `${path}.real`)
    symlinkSync(`${path}.real`, path)
  }

  it('a snapshot has the last good document, is readable by its owner only, and leaves no temporary files', async () => {
    const path = await written(newPath())
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ source: 'center', version: '1', text: remoteText })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter(name => name.endsWith('.new'))).toEqual([])
  })

  it('a snapshot is in force after a start without the config center, marked as such, until the center answers', async () => {
    const path = await written(newPath())
    const center = new FakeConfigCenter()
    const { live, after, remoteStatus } = startLiveRules({ center, snapshot: path })
    center.fail('connection refused')
    await live.start()
    expect(limitsOf(live)).toEqual({ ...localLimits, all: '20/1000 center' })
    expect(remoteStatus()).toMatchObject({ fromSnapshot: true, version: '1', trouble: 'center: connection refused' })
    await after('taken', () => center.publish('rules: [{ id: all, limit: 30/s }]', '2'))
    expect(limitsOf(live).all).toBe('30/1000 center')
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, version: '2', trouble: undefined })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ version: '2' })
  })

  it('the mark of a snapshot is removed when the config center has the same document', async () => {
    const path = await written(newPath())
    const center = new FakeConfigCenter()
    const { live, onRules, remoteStatus } = startLiveRules({ center, snapshot: path })
    center.publish(remoteText, '5')
    await live.start()
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, version: '5' })
    expect(onRules).toHaveBeenCalledTimes(1)
  })

  it('a snapshot stays in force and marked when the config center has an invalid document', async () => {
    const path = await written(newPath())
    const center = new FakeConfigCenter()
    const { live, remoteStatus } = startLiveRules({ center, snapshot: path })
    center.publish('')
    await live.start()
    expect(limitsOf(live).all).toBe('20/1000 center')
    expect(remoteStatus()).toMatchObject({ fromSnapshot: true, rejected: 1 })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8')).text).toBe(remoteText)
  })

  it.each([
    ['is empty', (path: string) => writeFileSync(path, '')],
    ['is half a one', (path: string) => writeFileSync(path, '{"source":"center","version":"1","text":"rul')],
    ['is of another shape', (path: string) => writeFileSync(path, '{"source":"center","version":1,"text":[]}')],
    ['is null', (path: string) => writeFileSync(path, 'null')],
    [
      'is another center’s',
      (path: string) => writeFileSync(path, JSON.stringify({ source: 'other', version: '1', text: remoteText })),
    ],
    [
      'holds rules that cannot be used',
      (path: string) => writeFileSync(path, JSON.stringify({ source: 'center', version: '1', text: 'rules: []' })),
    ],
    [
      'is huge',
      (path: string) =>
        writeFileSync(
          path,
          JSON.stringify({ source: 'center', version: '1', text: remoteText, more: 'x'.repeat(33 * 1024 * 1024) }),
        ),
    ],
    ['is a directory', (path: string) => execFileSync('mkdir', [path])],
    ['is a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('a snapshot is ignored with a warning if it %s', async (_, make) => {
    const path = newPath()
    make(path)
    const center = new FakeConfigCenter()
    const { live, remoteStatus } = startLiveRules({ center, snapshot: path, startTimeout: '1m' })
    center.fail('connection refused')
    const warned = new Promise<Error>(resolve => process.once('warning', resolve))
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, taken: 0 })
    expect(await warned).toMatchObject({
      code: 'DIANA_SNAPSHOT_IGNORED',
      message: expect.stringContaining(`the snapshot ${path} is ignored (`),
    })
  })

  it('a missing snapshot is no error', async () => {
    const warned = vi.fn()
    process.once('warning', warned)
    const center = new FakeConfigCenter()
    const { live } = startLiveRules({ center, snapshot: newPath(), startTimeout: '1m' })
    center.fail('connection refused')
    await live.start()
    await turn()
    process.removeListener('warning', warned)
    expect(warned).not.toHaveBeenCalled()
  })

  const foreign = (path: string): void => chownSync(path, 54_321, 54_321)
  it.each<[what: string, spoil: (path: string) => void, reason: string]>([
    ['may be written by its group', (path: string) => chmodSync(path, 0o620), 'others may write'],
    ['may be written by everybody', (path: string) => chmodSync(path, 0o602), 'others may write'],
    ['is behind a symbolic link', replaceByLink, 'ELOOP'],
    // only root can give a file away
    ...(process.getuid?.() === 0
      ? [['belongs to another user', foreign, 'belongs to another user'] as [string, typeof foreign, string]]
      : []),
  ])('a snapshot is ignored with a warning if it %s', async (_, spoil, reason) => {
    const path = await written(newPath())
    spoil(path)
    const center = new FakeConfigCenter()
    const { live, remoteStatus } = startLiveRules({ center, snapshot: path, startTimeout: '1m' })
    center.fail('connection refused')
    const warned = new Promise<Error>(resolve => process.once('warning', resolve))
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, taken: 0 })
    expect(await warned).toMatchObject({ message: expect.stringMatching(`snapshot ${path} is ignored.*${reason}`) })
  })

  it('a snapshot replaces a symbolic link and is never written through it', async () => {
    const path = newPath()
    const target = newPath()
    writeFileSync(target, 'precious')
    symlinkSync(target, path)
    await written(path)
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(lstatSync(path).isFile()).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('a snapshot that cannot be written is reported, and the rules are still in force', async () => {
    const center = new FakeConfigCenter()
    const { live, after, remoteStatus } = startLiveRules({
      center,
      snapshot: join(folder, 'no such folder', 'snapshot.json'),
    })
    center.publish(remoteText, '1')
    await after('failure', () => live.start())
    expect(limitsOf(live).all).toBe('20/1000 center')
    expect(remoteStatus().trouble).toMatch(/^center: the snapshot .* cannot be written: ENOENT/)
  })

  it('a snapshot is the last of many documents that come while one is written', async () => {
    const path = newPath()
    const center = new FakeConfigCenter()
    const { live, events } = startLiveRules({ center, snapshot: path })
    for (let version = 1; version <= 50; version++)
      center.publish(`rules: [{ id: all, limit: ${version}/s }]`, `${version}`)
    await live.start()
    await new Promise<void>(resolve => {
      events.on('taken', ({ version }) => version === '50' && resolve())
    })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ version: '50' })
  })
})
