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
      { id: 'orders', match: { path: '/orders' }, by: 'account', limit: '5/h' },
      { id: 'each', by: 'ip', limit: '100/h', block: 'manual' },
    ],
  })
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
})
afterEach(async () => {
  await app.close()
  await limiter.close()
})

const call = (account: string, times: number, path = '/orders') =>
  Promise.all(
    Array.from({ length: times }, () =>
      limiter.check({ method: 'POST', path, ip: '203.0.113.9', headers: { 'x-account-id': account } }),
    ),
  )
const ask = async (method: 'GET' | 'POST', path: string, payload?: object) => {
  const headers = { host: '127.0.0.1:8081' }
  const reply = await app.inject({ method, url: `/api/v1${path}`, headers, ...(payload ? { payload } : {}) })
  return { status: reply.statusCode, body: reply.json() }
}
const callers = async (query: string) => (await ask('GET', `/callers?${query}`)).body.callers

describe('the callers of the admin API', () => {
  it('every caller of a rule is listed with its calls and the exact distance to the limit', async () => {
    await call('annabel', 7)
    await call('bob', 2)
    const shown = await callers('rule=orders&show=all&unmask=true')
    expect(shown).toMatchObject([
      { key: 'account=annabel', calls: 7, refused: 2, limit: 5, remaining: 0, periodMs: 3_600_000, canBlock: false },
      { key: 'account=bob', calls: 2, refused: 0, limit: 5, remaining: 3, masked: false },
    ])
    expect(shown[0].refusedAt).toBeGreaterThan(0)
    expect(shown[1]).not.toHaveProperty('refusedAt')
    expect(shown[0].timeline.calls.at(-1)).toBe(7)
    // by default only those who were refused, masked
    expect(await callers('')).toMatchObject([{ rule: 'orders', masked: true, key: expect.stringContaining('an…') }])
  })

  it('a caller is found by a part of its value, and callers are sorted by calls or by how near the limit is', async () => {
    await call('bob', 3)
    await call('carla', 4, '/other')
    const keys = async (query: string) => (await callers(`${query}&unmask=true`)).map(({ key }: { key: string }) => key)
    expect(await keys('show=all&search=BO')).toEqual(['account=bob'])
    expect(await keys('show=all&sort=calls')).toEqual(['ip=203.0.113.9', 'account=bob'])
    expect(await keys('show=all&sort=used')).toEqual(['account=bob', 'ip=203.0.113.9'])
    expect(await keys('show=all&search=nobody')).toEqual([])
  })

  it('the last call of a caller is explained, with a request that can be asked about again', async () => {
    await call('bob', 6)
    const [bob] = await callers('')
    const { body } = await ask('POST', '/explain', { caller: bob.id })
    expect(body).toMatchObject({ allowed: false, refusedBy: 'orders', request: 'POST /orders\nx-account-id: bob' })
    const again = await ask('POST', '/explain', { request: body.request, ip: '203.0.113.9' })
    expect(again.body).toMatchObject({ allowed: false, refusedBy: 'orders' })
    expect((await ask('POST', '/explain', { caller: 'nobody' })).status).toBe(404)
  })
})

describe('the refusals of the admin API', () => {
  it('the last refusals are listed with rule, path and numbers, masked, and found by path, rule and value', async () => {
    await call('bob', 6)
    const refusals = async (query: string) => (await ask('GET', `/refusals?${query}`)).body.refusals
    const [bob] = await callers('')
    expect(await refusals('')).toMatchObject([
      {
        rule: 'orders',
        caller: bob.id,
        masked: true,
        method: 'POST',
        path: '/orders',
        limit: 5,
        remaining: 0,
        unsaid: 0,
      },
    ])
    expect((await refusals('unmask=true'))[0].key).toBe('account=bob')
    expect(await refusals('rule=each')).toEqual([])
    expect(await refusals('search=/ORD')).toHaveLength(1)
    expect(await refusals('search=bob')).toHaveLength(1)
    expect(await refusals('search=ann')).toEqual([])
    expect(JSON.stringify(await refusals(''))).not.toContain('203.0.113.9')
  })
})
