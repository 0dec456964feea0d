import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAdmin } from './server/create-admin.ts'

let limiter: Limiter
let app: FastifyInstance
beforeEach(async () => {
  limiter = await createLimiter({
    identify: { account: ['header:x-account-id'] },
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

describe('an explained call of the admin API', () => {
  const request = { method: 'GET', path: '/', headers: { 'x-account-id': 'annabel' }, ip: '203.0.113.9' }

  it('an explained call of the admin API says that its caller is blocked, by which rule and for how long', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(of('annabel'))
    const { body } = await ask('POST', '/explain', request)
    expect(body).toMatchObject({ allowed: false, refusedBy: 'login' })
    expect(body.caller).toEqual([
      { is: 'blocked', rule: 'login', leftMs: expect.any(Number), means: expect.stringContaining('blocked by rule') },
    ])
    expect((await ask('POST', '/explain', { ...request, ip: '203.0.113.10' })).body.caller).toEqual([])
  })

  it('an explained call of the admin API says that its caller is on a list, and which rules do not match', async () => {
    await limiter.close()
    limiter = await createLimiter({
      deny: { ip: ['203.0.113.66'] },
      rules: [
        { id: 'burst', limit: '10/s', algorithm: 'token-bucket', burst: 200 },
        { id: 'orders', match: { path: '/orders/**' }, limit: '5/s' },
      ],
    })
    await app.close()
    app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
    const { body: denied } = await ask('POST', '/explain', { ...request, ip: '203.0.113.66' })
    expect(denied.caller).toMatchObject([{ is: 'denied', means: expect.stringContaining('deny list') }])
    const { body } = await ask('POST', '/explain', request)
    expect(body.rules).toMatchObject([{ rule: 'burst', limits: [{ count: 10, periodMs: 1000 }], burst: 200 }])
    expect(body.misses).toMatchObject([{ rule: 'orders', reason: expect.stringContaining('path') }])
  })

  it('an explained call of the admin API reads the address from the header that the rules trust', async () => {
    await limiter.close()
    limiter = await createLimiter({
      trustProxy: ['10.0.0.0/8'],
      forwardedBy: 'forwarded',
      rules: [{ id: 'each', by: 'ip', limit: '5/s' }],
    })
    await app.close()
    app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
    const headers = { Forwarded: 'for=203.0.113.5', 'X-Forwarded-For': '198.51.100.1' }
    const { body } = await ask('POST', '/explain', { ...request, headers, ip: '10.0.0.1' })
    expect(body.call.ip).toBe('203.0.113.5')
    expect(body.rules[0].key).toEqual({ ip: { countedBy: 'value', value: '203.0.113.5' } })
  })
})

describe('the blocks of the admin API', () => {
  it('the blocks of the admin API list a caller that a rule has blocked, masked, with the remaining time', async () => {
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

  it('an unblocked caller passes, and is not blocked again by the next call', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(of('annabel'))
    const { blocks } = (await ask('GET', '/blocks')).body
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).body).toEqual({ ended: true })
    expect((await limiter.check(of('annabel'))).allowed).toBe(true)
    expect((await ask('GET', '/blocks')).body.blocks).toEqual([])
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(404)
  })

  it('the blocks of the admin API list a caller once, even if it was blocked both by its row and by its name', async () => {
    const { body } = await ask('POST', '/blocks', { rule: 'other', key: 'bob', for: '1m' })
    const { blocks } = (await ask('GET', '/blocks')).body
    expect(blocks).toMatchObject([{ id: body.id, rule: 'other', key: body.key, since: body.since }])
    expect(Math.abs(blocks[0].until - body.until)).toBeLessThan(1000)
  })

  it('the blocks of the admin API are shown with the refused callers, also if a rule has set them', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(of('annabel'))
    const { blocks } = (await ask('GET', '/blocks')).body
    const { callers } = (await ask('GET', '/callers')).body
    expect(callers).toMatchObject([{ id: blocks[0].id, rule: 'login', blockedUntil: expect.any(Number) }])
    expect(Math.abs(callers[0].blockedUntil - blocks[0].until)).toBeLessThan(1000)
    await ask('DELETE', `/blocks/${blocks[0].id}`)
    expect((await ask('GET', '/callers')).body.callers[0]).not.toHaveProperty('blockedUntil')
  })

  it('the blocks of the admin API can be ended for a caller that is known only by a digest', async () => {
    const long = 'x'.repeat(5000)
    for (let i = 0; i < 3; i++) await limiter.check(of(long))
    const { blocks } = (await ask('GET', '/blocks')).body
    expect((await ask('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(200)
    expect((await limiter.check(of(long))).allowed).toBe(true)
  })
})
