import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdServer, startEtcd } from '@test/servers/etcd-server'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { adminOf } from './limiter-admin.ts'

const call = { method: 'GET', path: '/', ip: '203.0.113.1' }
const good = '# mine\nrules:\n  - { id: all, limit: 5/m } # few\n'

let folder: string
let etcd: EtcdServer
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-documents-'))
  etcd = await startEtcd()
})
afterAll(async () => {
  await etcd.close()
  await rm(folder, { recursive: true })
})

let files = 0
async function limiterOf(text: string) {
  const config = join(folder, `${++files}.yaml`)
  await writeFile(config, text)
  const limiter = await createLimiter({ config })
  onTestFinished(() => limiter.close())
  return { config, limiter }
}

describe('the rule file', () => {
  it('the rule file is written, in force at the next call, and kept over a restart', async () => {
    const { config, limiter } = await limiterOf(good)
    const { text, version, writable } = await adminOf(limiter).documents.read('local')
    expect([text, writable]).toEqual([good, true])
    const edited = await adminOf(limiter).documents.edit(text, 'all', 'id: all\nlimit: 1/m')
    const written = await adminOf(limiter).documents.write('local', edited, version)
    expect([(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]).toEqual([true, false])
    expect(await readFile(config, 'utf8')).toBe('# mine\nrules:\n  - id: all\n    limit: 1/m\n')
    expect((await adminOf(limiter).documents.read('local')).version).toBe(written)
    const again = await createLimiter({ config })
    expect((await again.peek(call)).decisions[0]?.limit).toBe(1)
    await again.close()
  })

  it('a rule file that was changed since it was read is not overwritten', async () => {
    const { config, limiter } = await limiterOf(good)
    const { version } = await adminOf(limiter).documents.read('local')
    const theirs = good.replace('5/m', '7/m')
    await writeFile(config, theirs)
    await expect(adminOf(limiter).documents.write('local', good.replace('5/m', '9/m'), version)).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(await readFile(config, 'utf8')).toBe(theirs)
  })

  it('of two writers who read the same rule file, one succeeds', async () => {
    const { limiter } = await limiterOf(good)
    const { version } = await adminOf(limiter).documents.read('local')
    const both = [1, 2].map(n => adminOf(limiter).documents.write('local', good.replace('5/m', `${n}/m`), version))
    const results = await Promise.allSettled(both)
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  })

  it('an invalid rule file, or one that needs a restart, is not written', async () => {
    const { config, limiter } = await limiterOf(good)
    const { version } = await adminOf(limiter).documents.read('local')
    for (const text of ['', 'rules: []', 'rules: [', `store: { redis: redis://127.0.0.1 }\n${good}`]) {
      expect(await adminOf(limiter).documents.check('local', text)).not.toEqual([])
      await expect(adminOf(limiter).documents.write('local', text, version)).rejects.toMatchObject({
        code: 'BAD_RULES',
      })
    }
    expect(await readFile(config, 'utf8')).toBe(good)
    expect((await adminOf(limiter).documents.check('local', 'rules:\n  - id: a\n    limit: many\n'))[0]).toMatchObject({
      line: 3,
      rule: 'a',
    })
  })

  it('the rule file is written with a thousand rules, or as many as are in force already, and with no more', async () => {
    const many = (count: number) =>
      JSON.stringify({ rules: Array.from({ length: count }, (_, i) => ({ id: `rule-${i}`, limit: '1/s' })) })
    const few = await limiterOf(good)
    const { version } = await adminOf(few.limiter).documents.read('local')
    await expect(adminOf(few.limiter).documents.write('local', many(1001), version)).rejects.toMatchObject({
      code: 'BAD_RULES',
      message: expect.stringContaining('1001 rules'),
    })
    expect(await readFile(few.config, 'utf8')).toBe(good)
    await adminOf(few.limiter).documents.write('local', many(1000), version)
    const large = await limiterOf(many(1500))
    const stored = await adminOf(large.limiter).documents.read('local')
    await adminOf(large.limiter).documents.write('local', many(1500).replace('1/s', '2/s'), stored.version)
    expect(large.limiter.rules[0]?.limits[0]?.count).toBe(2)
  })

  it('the rule file is returned rule by rule as written', async () => {
    const { limiter } = await limiterOf(good)
    expect([...(await adminOf(limiter).documents.ruleTexts('local'))]).toEqual([['all', '{ id: all, limit: 5/m }']])
  })
})

describe('rules given in code', () => {
  it('rules given in code cannot be written, and the error says why', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/s' }] })
    onTestFinished(() => limiter.close())
    expect(await adminOf(limiter).documents.read('local')).toMatchObject({
      writable: false,
      reason: expect.stringContaining('code'),
    })
    await expect(adminOf(limiter).documents.write('local', good, '')).rejects.toMatchObject({ code: 'READ_ONLY' })
    expect(await adminOf(limiter).documents.read('remote')).toMatchObject({
      writable: false,
      reason: expect.stringContaining('remote'),
    })
  })
})

describe('the document of a config center', () => {
  it('the document of a config center is written at its key, in force at the next call, and kept over a restart', async () => {
    const local = `remote: { etcd: 'http://${etcd.authority}', key: /diana/written }\nrules:\n  - { id: all, limit: 5/m }\n`
    const { config, limiter } = await limiterOf(local)
    const empty = await adminOf(limiter).documents.read('remote')
    expect(empty).toMatchObject({ text: '', writable: true })
    const text = await adminOf(limiter).documents.edit(empty.text, 'all', 'id: all\nlimit: 1/m')
    await adminOf(limiter).documents.write('remote', text, empty.version)
    expect([(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]).toEqual([true, false])
    expect(limiter.rules[0]).toMatchObject({ id: 'all', origin: expect.stringContaining('etcd') })
    await expect(
      adminOf(limiter).documents.write('remote', text.replace('1/m', '2/m'), empty.version),
    ).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    await expect(adminOf(limiter).documents.write('remote', 'rules: []', empty.version)).rejects.toMatchObject({
      code: 'BAD_RULES',
    })
    await limiter.close()
    const again = await createLimiter({ config })
    expect((await again.peek(call)).decisions[0]?.limit).toBe(1)
    await again.close()
  })
})
