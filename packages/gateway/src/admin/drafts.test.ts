import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdmin } from './server/create-admin.ts'

const file = `identify:
  tenant: header:x-tenant
rules:
  # all of them
  - id: all
    limit: 100/m   # a hundred
  - { id: flow, by: ip, limit: 5/s }
`
let folder: string
let config: string
let limiter: Limiter
let admin: FastifyInstance

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-drafts-'))
  config = join(folder, 'diana.yaml')
  await writeFile(config, file)
  limiter = await createLimiter({ config })
  admin = await createAdmin({ limiter, host: '127.0.0.1', page: join(folder, 'no-page') })
})
afterAll(async () => {
  await admin.close()
  await limiter.close()
  await rm(folder, { recursive: true })
})

async function send(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, payload?: object) {
  const url = `/api/v1${path}`
  const reply = await admin.inject({ method, url, headers: { host: '127.0.0.1' }, ...(payload && { payload }) })
  return { status: reply.statusCode, body: reply.json() }
}

const setOf = (options: Record<string, unknown>) =>
  Object.entries(options).map(([name, value]) => ({ path: name.split('.'), value }))
const versionNow = async () => (await send('GET', '/document')).body.version as string

describe('drafts of a document', () => {
  it('a change of one option is shown with the whole document, and nothing is written', async () => {
    const { status, body } = await send('POST', '/draft', { id: 'all', set: setOf({ limit: '200/m' }) })
    expect(status).toBe(200)
    expect(body.text).toBe(file.replace('100/m', '200/m'))
    expect(body.base).toMatchObject({ text: file, version: await versionNow(), writable: true })
    expect(body.options).toEqual({ id: 'all', limit: '200/m' })
    expect(body.rule).toBe('id: all\nlimit: 200/m   # a hundred')
    expect(body.mistakes).toEqual([])
    expect(await readFile(config, 'utf8')).toBe(file)
  })

  it('a new rule is checked together with the others', async () => {
    const set = setOf({ id: 'all', by: ['tenant'], 'match.path': 'orders', limit: '5 per minute' })
    const { body } = await send('POST', '/draft', { set })
    expect(body.rule).toBe("id: all\nby: [tenant]\nmatch: { path: orders }\nlimit: '5 per minute'")
    const about = (body.mistakes as { rule: string; message: string }[]).map(({ rule, message }) => [
      rule,
      message.split(' ')[0],
    ])
    expect(about).toEqual([
      ['all', 'id'],
      ['all', 'match.path'],
      ['all', 'limit'],
    ])
  })

  it.each([
    ['a name that is no option', { __proto__x: 1, 'limit.__proto__': 1 }],
    ['a path that is too long', { 'a.b.c.d.e': 1 }],
    ['an option that is nested too deep', { limit: JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) }],
    ['options that are too long', { limit: 'x'.repeat(20_000) }],
  ])('%s is refused', async (_, set) => {
    expect((await send('POST', '/draft', { id: 'all', set: setOf(set) })).status).toBe(400)
  })

  it('a rule that is not there is refused with what to do', async () => {
    const { status, body } = await send('POST', '/draft', { id: 'none', set: setOf({ limit: '1/s' }) })
    expect([status, body.detail]).toEqual([422, expect.stringContaining('change it as text')])
  })

  it('the names that rules may use are listed, with those of identify', async () => {
    const { body } = await send('GET', '/names')
    expect(body.dimensions).toEqual(expect.arrayContaining(['account', 'device', 'tenant', 'ip', 'resource']))
    expect(body.namedDimensions).toContain('header')
    // there is no jwt: in the file
    expect(body.namedDimensions).not.toContain('jwt')
    expect(body.algorithms).toContainEqual({ name: 'concurrency', limit: 'count' })
  })
})

describe('changes with a comment', () => {
  it('a comment is shown above the changed rules before it is written', async () => {
    const text = file.replace('5/s', '6/s')
    const { body } = await send('POST', '/changes', { text, comment: 'x\n  - id: evil\n    limit: 0/s' })
    expect(body).toEqual({
      rules: [{ id: 'flow', change: 'changed' }],
      others: false,
      findings: [],
      noted: text.replace('  - { id: flow', '  # x - id: evil limit: 0/s\n  - { id: flow'),
    })
    expect((await send('POST', '/changes', { text: file })).body).toEqual({ rules: [], others: false, findings: [] })
  })

  it('rules without effect are named before they are written', async () => {
    const text = `${file.trimEnd()}\n  - { id: loose, limit: 9000/s }\n  - { id: tight, limit: 10/s }\n`
    const { body } = await send('POST', '/changes', { text })
    expect(body.findings).toContainEqual({
      rule: 'loose',
      isFault: true,
      message: expect.stringContaining('can never refuse'),
    })
  })

  it('the comment is kept with the change and beside the version that it replaced', async () => {
    const text = file.replace('5/s', '7/s')
    const comment = `launch\nweek ${'!'.repeat(400)}`
    const done = await send('PUT', '/document', { text, version: await versionNow(), comment })
    expect(done.status).toBe(200)
    const short = expect.stringMatching(/^launch week !{287}…$/)
    const { changes } = (await send('GET', '/audit')).body
    expect(changes[0]).toMatchObject({ operation: 'putDocument', comment: short })
    const { versions } = (await send('GET', '/versions')).body
    expect(versions[0]).toMatchObject({
      from: '127.0.0.1',
      comment: short,
      rules: [{ id: 'flow', change: 'changed' }],
      changed: 1,
    })
    expect(versions[0].text).toBeUndefined()
    const removed = await send('DELETE', `/rules/flow?version=${encodeURIComponent(await versionNow())}&comment=gone`)
    expect(removed.status).toBe(200)
    expect((await send('GET', '/versions')).body.versions[0]).toMatchObject({
      comment: 'gone',
      rules: [{ id: 'flow', change: 'removed' }],
    })
    const rule = { text: 'id: flow\nlimit: 1/s', version: await versionNow() }
    expect((await send('PUT', '/rules/flow', rule)).status).toBe(200)
    expect((await send('GET', '/versions')).body.versions[0].comment).toBeUndefined()
    expect((await send('PUT', '/document', { text, version: 'x', comment: 'y'.repeat(3000) })).status).toBe(400)
  })
})
