import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAdmin } from './create-admin.ts'

let limiter: Limiter
let app: FastifyInstance
beforeEach(async () => {
  limiter = await createLimiter({
    rules: [
      { id: 'login', by: ['account', 'ip'], limit: '2/h', block: '10m' },
      { id: 'other', by: 'account', limit: '9/h', block: 'manual' },
    ],
  })
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
})
afterEach(async () => {
  await app.close()
  await limiter.close()
})

const of = (account: string) => ({ method: 'GET', path: '/', ip: '203.0.113.9', attributes: { account } })
const ask = async (method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object) => {
  const headers = { host: '127.0.0.1:8081' }
  const reply = await app.inject({ method, url: `/api/v1${path}`, headers, ...(payload ? { payload } : {}) })
  return { status: reply.statusCode, body: reply.json() }
}

describe('the blocks of the admin API', () => {
  it('list a caller whom a rule has blocked itself, masked, with the time', async () => {
    const before = Date.now()
    for (let i = 0; i < 3; i++) await limiter.check(of('annabel'))
    const { blocks } = (await ask('GET', '/blocks')).body
    expect(blocks).toEqual([
      {
        id: expect.any(String),
        rule: 'login',
        key: expect.stringMatching(/^account=an… #\S+ ip=203\.0\.\*/),
        since: expect.any(Number),
        until: expect.any(Number),
      },
    ])
    expect(blocks[0].until - blocks[0].since).toBe(600_000)
    expect(Math.abs(blocks[0].since - before)).toBeLessThan(2000)
  })

  it('end for good: a caller who is let in again passes, and is not blocked by the next call', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(of('annabel'))
    const { blocks } = (await ask('GET', '/blocks')).body
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).body).toEqual({ ended: true })
    expect((await limiter.check(of('annabel'))).allowed).toBe(true)
    expect((await ask('GET', '/blocks')).body.blocks).toEqual([])
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(404)
  })

  it('list a caller once under the id of the answer, though blocked by hand and by name', async () => {
    const { body } = await ask('POST', '/blocks', { rule: 'other', key: 'bob', for: '1m' })
    const { blocks } = (await ask('GET', '/blocks')).body
    expect(blocks).toMatchObject([{ id: body.id, rule: 'other', key: body.key, since: body.since }])
    expect(Math.abs(blocks[0].until - body.until)).toBeLessThan(1000)
  })

  it('can be ended for a caller who is only known by a digest', async () => {
    const long = 'x'.repeat(5000)
    for (let i = 0; i < 3; i++) await limiter.check(of(long))
    const { blocks } = (await ask('GET', '/blocks')).body
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(200)
    expect((await limiter.check(of(long))).allowed).toBe(true)
  })
})
