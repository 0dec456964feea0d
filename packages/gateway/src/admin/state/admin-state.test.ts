import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAdmin } from '../server/create-admin.ts'
import { AdminState } from './admin-state.ts'

const rules = [
  { id: 'login', by: ['account', 'ip'], limit: '2/h', block: 'manual' as const },
  { id: 'each', by: 'account', limit: '1000/h', block: 'manual' as const },
]
let folder: string
let warnings: string[]
let limiter: Limiter
let app: FastifyInstance | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'diana-state-'))
  warnings = []
})
afterEach(async () => {
  await stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Start {
  readonly changed?: object[]
  readonly config?: string
  readonly audit?: string
  readonly state?: string | false
  readonly now?: number
}

async function start({ changed = rules, config, audit, state = 'state', now }: Start = {}): Promise<void> {
  limiter = await createLimiter(config ? { config } : { rules: changed as typeof rules })
  const kept = new AdminState({ state: state || undefined, audit, folder, onWarning: one => warnings.push(one) })
  kept.restore(limiter, now)
  await kept.openAudit()
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere', state: kept })
}

async function stop(): Promise<void> {
  await app?.close()
  await limiter?.close()
  app = undefined
}

async function restart(options: Start = {}): Promise<void> {
  await stop()
  await start(options)
}

async function ask(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, payload?: object) {
  const request = { method, url: `/api/v1${path}`, headers: { host: '127.0.0.1' } }
  const reply = await app!.inject({ ...request, ...(payload && { payload }) })
  return reply.json()
}

const call = (account: string) => ({ method: 'GET', path: '/', ip: '203.0.113.9', attributes: { account } })
const isRefused = async (account: string) => !(await limiter.check(call(account))).allowed

describe('blocks by hand', () => {
  it('blocks by hand are in force after a restart for the time that is left, and can be ended', async () => {
    await start()
    await ask('POST', '/blocks', { rule: 'each', key: 'ann', for: '10m' })
    const both = { method: 'GET', path: '/', headers: {}, ip: '203.0.113.9' }
    const block = await ask('POST', '/blocks', { rule: 'login', call: both, for: '1h' })
    expect(block.until - block.since).toBe(3_600_000)
    await restart()
    expect([await isRefused('ann'), await isRefused('bob')]).toEqual([true, false])
    const { blocks } = await ask('GET', '/blocks')
    const told = blocks.find(({ rule }: { rule: string }) => rule === 'login')
    expect(told).toMatchObject({ since: block.since, until: block.until })
    const [ann] = blocks.filter(({ rule }: { rule: string }) => rule === 'each')
    await ask('DELETE', `/blocks/${ann.id}`)
    await restart()
    expect(await isRefused('ann')).toBe(false)
    expect((await ask('GET', '/blocks')).blocks).toHaveLength(1)
    expect(statSync(join(folder, 'state/blocks.json')).mode & 0o777).toBe(0o600)
    expect(warnings).toEqual([])
  })

  it('a block that has ended, or whose rule is gone, has changed or blocks no more, is not set again', async () => {
    await start()
    await ask('POST', '/blocks', { rule: 'each', key: 'ann', for: '10m' })
    const without = [
      [{ id: 'other', limit: '5/h' }],
      [{ ...rules[1], block: undefined }],
      [{ ...rules[1], by: ['account', 'ip'] }],
    ]
    const file = join(folder, 'state/blocks.json')
    await stop()
    const text = readFileSync(file, 'utf8')
    for (const changed of without) {
      writeFileSync(file, text)
      await start({ changed })
      expect((await ask('GET', '/blocks')).blocks).toEqual([])
      await stop()
    }
    writeFileSync(file, text)
    await start({ now: Date.now() + 600_001 })
    expect((await ask('GET', '/blocks')).blocks).toEqual([])
  })

  it('at most 1,000 blocks are kept, the newest ones', async () => {
    await start()
    const blocks = Array.from({ length: 1500 }, (_, i) => {
      return { rule: 'each', by: ['account'], key: `k${i}`, since: Date.now() + i, until: Date.now() + 1e7 }
    })
    await stop()
    writeFileSync(join(folder, 'state/blocks.json'), JSON.stringify({ blocks }))
    await start()
    expect((await ask('GET', '/blocks')).blocks).toHaveLength(1000)
  })
})

describe('a state folder', () => {
  it('the gateway starts with any content in the files of its state folder', async () => {
    await start()
    await stop()
    const good = { rule: 'each', by: ['account'], key: 'x', since: 1, until: 9e15 }
    const words = fc.constantFrom<unknown>(null, 1, 'x', [], {}, good, { ...good, until: '1' }, { ...good, key: 7 })
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.array(words, { maxLength: 3 }).map(list => JSON.stringify({ blocks: list, versions: list })),
      fc.constantFrom('', '{', '{"blocks":{"length":9}}', '[]', 'null', '{"versions":[{"id":"a","at":1e999}]}'),
    )
    await fc.assert(
      fc.asyncProperty(texts, texts, texts, async (one, two, three) => {
        writeFileSync(join(folder, 'state/blocks.json'), one)
        writeFileSync(join(folder, 'state/versions.json'), two)
        writeFileSync(join(folder, 'state/audit.jsonl'), three)
        const kept = new AdminState({ state: 'state', folder, onWarning: () => {} })
        kept.restore(limiter)
        await kept.openAudit()
        kept.audit.read(1000)
        await kept.close()
      }),
      { numRuns: 25 },
    )
    writeFileSync(join(folder, 'state/versions.json'), '{}')
    writeFileSync(join(folder, 'state/blocks.json'), '{"blocks":[{"rule":"each"')
    await start()
    expect((await ask('GET', '/blocks')).blocks).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(/blocks\.json cannot be read \(it is not JSON\)/)])
  })

  it('a folder that cannot be written is reported, and everything works on without it', async () => {
    writeFileSync(join(folder, 'file'), '')
    await start({ state: 'file/state' })
    expect(warnings[0]).toMatch(/^gateway\.admin\.state cannot be written \(ENOTDIR\)/)
    await ask('POST', '/blocks', { rule: 'each', key: 'ann', for: '10m' })
    expect(await isRefused('ann')).toBe(true)
    expect((await ask('GET', '/audit')).changes).toHaveLength(1)
  })

  it('without a folder nothing is written', async () => {
    await start({ state: false })
    await ask('POST', '/blocks', { rule: 'each', key: 'ann', for: '10m' })
    await stop()
    expect(existsSync(join(folder, 'state'))).toBe(false)
  })

  it('an earlier version of a document can be read after a restart, by its owner only', async () => {
    const config = join(folder, 'diana.yaml')
    writeFileSync(config, 'rules:\n  - { id: all, limit: 5/s } # 猎人\n')
    await start({ config })
    const { version } = await ask('GET', '/document')
    await ask('PUT', '/document', { text: 'rules:\n  - { id: all, limit: 6/s }\n', version })
    await restart({ config })
    const { versions } = await ask('GET', '/versions')
    expect((await ask('GET', `/versions/${versions[0].id}`)).text).toContain('5/s } # 猎人')
    expect(statSync(join(folder, 'state/versions.json')).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder, 'state')).mode & 0o777).toBe(0o700)
  })
})

describe('the list of changes in a file', () => {
  const block = (key: string) => ask('POST', '/blocks', { rule: 'each', key, for: '1m' })
  const operations = async () => (await ask('GET', '/audit')).changes.map((one: { who: string }) => one.who)

  it('the list of changes survives a restart, a cut line and lines that are none of its own', async () => {
    await start({ audit: 'changes.jsonl', state: false })
    await block('one')
    await stop()
    const path = join(folder, 'changes.jsonl')
    const line = readFileSync(path, 'utf8')
    expect(JSON.parse(line)).toMatchObject({ operation: 'postBlocks', who: 'no token', via: 'open', role: 'operator' })
    const entry = JSON.parse(line)
    const refused = { ...entry, who: 'eve', refused: 'no role' }
    appendFileSync(path, `nonsense\n${JSON.stringify({ ...entry, who: '猎人' })}\n${JSON.stringify(refused)}\n`)
    appendFileSync(path, `${JSON.stringify({ ...entry, who: 'x'.repeat(300) })}\n{"at":1}\n[]\n\n{"at":17949`)
    await start({ audit: 'changes.jsonl', state: false })
    expect(await operations()).toEqual(['猎人', 'no token'])
    expect((await ask('GET', '/audit')).refused).toEqual([refused])
    await block('two')
    await restart({ audit: 'changes.jsonl', state: false })
    expect(await operations()).toEqual(['no token', '猎人', 'no token'])
  })

  it('only the end of a long file is read, and a file that is too long is put aside', async () => {
    await start()
    await block('one')
    await stop()
    const path = join(folder, 'state/audit.jsonl')
    const line = readFileSync(path, 'utf8')
    writeFileSync(path, line.repeat(Math.ceil((16 * 1024 * 1024) / line.length)))
    await start()
    expect((await ask('GET', '/audit?top=1000')).changes).toHaveLength(1000)
    await block('two')
    await expect.poll(() => existsSync(`${path}.1`)).toBe(true)
    await block('three')
    await stop()
    expect(statSync(path).size).toBeLessThan(1000)
  })

  it('a file that was renamed is begun again', async () => {
    await start()
    await block('one')
    const path = join(folder, 'state/audit.jsonl')
    await expect.poll(() => readFileSync(path, 'utf8')).toContain('postBlocks')
    await stop()
    const kept = new AdminState({ state: 'state', folder })
    await kept.openAudit()
    renameSync(path, `${path}.older`)
    await kept.reopen()
    expect(existsSync(path)).toBe(true)
    await kept.close()
  })

  it('a file that the settings name and that cannot be written stops the start with the reason', async () => {
    await expect(start({ audit: 'none/changes.jsonl' })).rejects.toThrow(/^gateway\.admin\.audit cannot be written/)
    execFileSync('mkfifo', [join(folder, 'pipe')])
    await limiter.close()
    await expect(start({ audit: 'pipe' })).rejects.toThrow('not a regular file')
  })

  it('refusals push out no change, and the same one is listed once a minute', async () => {
    const { audit } = new AdminState()
    const entry = { at: 0, operation: 'signIn', subject: '', from: '', who: 'x', via: 'none', role: 'none' } as const
    audit.add({ ...entry, operation: 'putDocument', via: 'token', role: 'operator' })
    for (let i = 0; i < 50_000; i++) audit.add({ ...entry, at: i, from: `client ${i % 5000}`, refused: 'wrong tokens' })
    expect(audit.read(1000)).toHaveLength(1)
    expect(audit.readRefused(1000)).toHaveLength(60)
    for (let i = 0; i < 500; i++) audit.add({ ...entry, at: i * 60_000, refused: 'no role' })
    expect(audit.readRefused(1000)).toHaveLength(200)
    audit.add({ ...entry, subject: 's'.repeat(5000), who: 'w'.repeat(5000), from: 'f'.repeat(5000) })
    expect(JSON.stringify(audit.read(1)).length).toBeLessThan(1000)
  })
})
