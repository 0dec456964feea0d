import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operations } from './operations/index.ts'
import { createAdmin } from './server/create-admin.ts'

const tokens = { operator: 'the-token-of-operators', viewer: 'the-token-of-viewers!' }
const folder = mkdtempSync(join(tmpdir(), 'diana-roles-'))
const config = join(folder, 'diana.yaml')
let limiter: Limiter
let app: FastifyInstance
beforeAll(async () => {
  writeFileSync(config, 'rules:\n  - { id: each, by: account, limit: 5/h, block: manual }\n')
  limiter = await createLimiter({ config })
  const options = { token: tokens.operator, viewToken: tokens.viewer }
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere', ...options })
})
afterAll(async () => {
  await app.close()
  await limiter.close()
  rmSync(folder, { recursive: true })
})

async function ask(role: keyof typeof tokens, method: string, path: string, payload?: object) {
  const headers = { host: '127.0.0.1', authorization: `Bearer ${tokens[role]}` }
  const request = { method: method as 'GET', url: `/api/v1${path}`, headers }
  const reply = await app.inject({ ...request, ...(payload && { payload }) })
  return { status: reply.statusCode, body: reply.json() }
}

describe('the roles of the admin API', () => {
  it('a viewer may read everything but documents, and change nothing', async () => {
    const open = new Set(['/explain'])
    for (const { method, path } of operations) {
      const { status } = await ask('viewer', method, path.replace('{id}', 'each'), method === 'GET' ? undefined : {})
      const isClosed = (method !== 'GET' && !open.has(path)) || /^\/(document|versions)/.test(path)
      expect([method, path, status === 403]).toEqual([method, path, isClosed])
    }
    expect((await ask('viewer', 'GET', '/session')).body).toEqual({ role: 'viewer', via: 'token' })
    expect((await ask('operator', 'GET', '/session')).body).toEqual({ role: 'operator', via: 'token' })
    const both = { host: '127.0.0.1', page: '/nowhere', limiter }
    await expect(createAdmin({ ...both, viewToken: tokens.viewer })).rejects.toThrow('read-only admin token')
    const same = { token: tokens.operator, viewToken: tokens.operator }
    await expect(createAdmin({ ...both, ...same })).rejects.toThrow('differ')
  })

  it('every change is in the audit log, without the name of a caller, and reading is not', async () => {
    await ask('operator', 'POST', '/blocks', { rule: 'each', key: 'annabel', for: '1m' })
    await ask('operator', 'POST', '/explain', { request: 'GET /' })
    await ask('operator', 'POST', '/blocks', { rule: 'none', key: 'annabel', for: '1m' })
    await ask('operator', 'POST', '/trials', { rule: 'each', text: 'id: each\nby: account\nlimit: 2/h' })
    await ask('viewer', 'DELETE', '/blocks/each')
    await ask('viewer', 'DELETE', '/blocks/each')
    const { changes, refused } = (await ask('viewer', 'GET', '/audit')).body
    const by = { at: expect.any(Number), from: '127.0.0.1', who: 'operator token', via: 'token', role: 'operator' }
    expect(changes).toEqual([
      { ...by, operation: 'postTrials', subject: 'each' },
      { ...by, operation: 'postBlocks', subject: expect.stringMatching(/^each an… #/) },
    ])
    // the same again within a minute is one entry
    const viewer = { ...by, who: 'viewer token', role: 'viewer', refused: 'read only' }
    expect(refused.filter((one: { operation: string }) => one.operation === 'deleteBlocksById')).toEqual([
      { ...viewer, operation: 'deleteBlocksById', subject: 'each' },
    ])
  })
})
