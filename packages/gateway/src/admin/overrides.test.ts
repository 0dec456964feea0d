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
      { id: 'each', by: 'account', limit: { overrides: true, default: '2/h' } },
      { id: 'plain', by: 'account', limit: '9/h' },
      { id: 'paid', by: 'account', limit: '9/h', credit: true },
    ],
  })
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
})
afterEach(async () => {
  await app.close()
  await limiter.close()
})

const ann = { method: 'GET', path: '/', headers: { 'x-account-id': 'ann' } }
const ask = async (method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object) => {
  const headers = { host: '127.0.0.1:8081' }
  const reply = await app.inject({ method, url: `/api/v1${path}`, headers, ...(payload ? { payload } : {}) })
  return { status: reply.statusCode, body: reply.json() }
}
const limitOfAnn = async () => {
  await limiter.peek(ann)
  await new Promise(resolve => setImmediate(resolve))
  const { body } = await ask('POST', '/explain', ann)
  return body.rules[0]
}

describe('an override set by the admin API', () => {
  it('an override set by the admin API is listed with who has set it and why, explained, and in force until it is removed', async () => {
    expect(await limitOfAnn()).toMatchObject({ limits: [{ count: 2 }], limitFrom: 'default' })
    const until = Date.now() + 3_600_000
    const words = { limit: '5000/h', until, setBy: 'eve', reason: 'launch week' }
    const set = await ask('POST', '/overrides', { rule: 'each', key: 'ann', ...words })
    expect(set).toMatchObject({ status: 200, body: { rule: 'each', key: 'account=ann', ...words } })
    expect((await ask('GET', '/overrides')).body.overrides).toEqual([set.body])
    expect(await limitOfAnn()).toMatchObject({
      limits: [{ count: 5000 }],
      limitFrom: `override until ${new Date(until).toISOString()}`,
    })
    expect(await ask('DELETE', `/overrides/${set.body.id}`)).toMatchObject({ status: 200, body: { ended: true } })
    expect((await ask('GET', '/overrides')).body.overrides).toEqual([])
    expect(await limitOfAnn()).toMatchObject({ limits: [{ count: 2 }], limitFrom: 'default' })
  })

  it.each([
    [{ rule: 'each', key: 'ann', limit: 'lots' }, 400, 'is no limit: write 5000/h'],
    [{ rule: 'each', key: 'ann', limit: '5/h', until: 1 }, 400, 'until is past'],
    [
      { rule: 'plain', key: 'ann', limit: '5/h' },
      400,
      'has no overrides: write limit: { default: 100/h, overrides: true }',
    ],
    [{ rule: 'none', key: 'ann', limit: '5/h' }, 404, 'There is no such rule'],
    [{ rule: 'each', limit: '5/h' }, 400, 'Name the caller: by key or call'],
    [{ rule: 'each', key: 'ann', limit: '50' }, 400, 'has no period'],
  ])('an invalid override is refused with the remedy: %j', async (question, status, detail) => {
    const { status: got, body } = await ask('POST', '/overrides', question)
    expect([got, JSON.stringify(body)]).toEqual([status, expect.stringContaining(detail)])
  })

  it('an override cannot be removed twice', async () => {
    expect((await ask('DELETE', '/overrides/none')).status).toBe(404)
  })
})

describe('credit granted by the admin API', () => {
  it('credit granted by the admin API is added up, explained and recorded, without the name of the caller', async () => {
    const grant = { rule: 'paid', key: 'ann', permits: 500 }
    expect(await ask('POST', '/credits', grant)).toMatchObject({
      status: 200,
      body: { key: 'account=ann', credit: 500 },
    })
    const { rule, permits } = grant
    expect((await ask('POST', '/credits', { rule, permits, call: ann })).body.credit).toBe(1000)
    expect((await ask('POST', '/explain', ann)).body.rules[2]).toMatchObject({ rule: 'paid', credit: 1000 })
    expect((await ask('GET', '/audit')).body.changes).toMatchObject([
      { operation: 'postCredits', subject: 'paid' },
      { operation: 'postCredits', subject: expect.not.stringContaining('ann') },
    ])
  })

  it('credit is granted to a caller of the list, by their id', async () => {
    await limiter.check(ann)
    const id = async () => (await ask('GET', '/callers?show=all&rule=paid')).body.callers[0]?.id
    await ask('GET', '/callers?show=all')
    await limiter.check(ann)
    await expect.poll(id).toEqual(expect.any(String))
    const grant = { rule: 'paid', caller: await id(), permits: 5 }
    expect((await ask('POST', '/credits', grant)).body).toMatchObject({ key: 'account=ann', credit: 5 })
    expect((await ask('POST', '/credits', { ...grant, rule: 'each' })).status).toBe(404)
  })

  it.each([
    [{ rule: 'paid', key: 'ann', permits: -5 }, 400, 'takes a whole number of permits, 1 or more, not -5'],
    [{ rule: 'paid', key: 'ann', permits: 0.5 }, 400, 'not 0.5'],
    [{ rule: 'plain', key: 'ann', permits: 5 }, 400, 'has no credit: add credit: true'],
    [{ rule: 'none', key: 'ann', permits: 5 }, 404, 'There is no such rule'],
    [{ rule: 'paid', permits: 5 }, 400, 'Name the caller: by key or call'],
    [{ rule: 'paid', caller: 'x', permits: 5 }, 404, 'There is no such caller'],
  ])('an invalid override is refused with the remedy: %j', async (question, status, detail) => {
    const { status: got, body } = await ask('POST', '/credits', question)
    expect([got, JSON.stringify(body)]).toEqual([status, expect.stringContaining(detail)])
  })
})

it('limits of single callers are answered with 503 and the cause while Redis is away', async () => {
  await app.close()
  await limiter.close()
  limiter = await createLimiter({
    store: { redis: 'redis://127.0.0.1:1' },
    rules: [{ id: 'each', by: 'ip', limit: { overrides: true, default: '2/h' } }],
  })
  limiter.events.on('store', () => undefined)
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
  const away = { status: 503, body: { detail: expect.stringContaining('(Redis refuses connections)') } }
  expect(await ask('GET', '/overrides')).toMatchObject(away)
  expect(await ask('POST', '/overrides', { rule: 'each', key: '203.0.113.9', limit: '5/h' })).toMatchObject(away)
  expect(await ask('DELETE', '/overrides/x')).toMatchObject(away)
})
