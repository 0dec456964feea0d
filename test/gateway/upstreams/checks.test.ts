import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { createAdmin } from '../../../packages/gateway/src/admin/server/create-admin.ts'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const statusOf = async (url: string, method: 'GET' | 'POST' = 'GET') => {
  const { statusCode, body } = await request(url, { method, body: method === 'POST' ? 'x' : null })
  await body.dump()
  return statusCode
}

/** A service whose health is as the test says, and that answers all other calls with its own status. */
async function moody() {
  const mood = { health: 200, calls: 0, checks: 0, status: 200 }
  const { url } = await rig.serve((incoming, response) => {
    if (incoming.url === '/up') mood.checks++
    else mood.calls++
    const status = incoming.url === '/up' ? mood.health : mood.status
    // one that hangs
    if (status !== 0) response.writeHead(status).end()
  })
  return { mood, url }
}

const check = { path: '/up', interval: '50ms', timeout: '200ms', healthy: 2, unhealthy: 2 }

describe('a health-checked address', () => {
  test.each([500, 0])(
    'a health-checked address gets no calls while checks get the status %i, and gets them again after',
    async bad => {
      const [one, two] = [await moody(), await moody()]
      const { url } = await rig.guard({ gateway: { routes: [{ to: [one.url, two.url], health: { check } }] } })
      one.mood.health = bad
      await expect
        .poll(
          async () => {
            const before = one.mood.calls
            for (let i = 0; i < 4; i++) await statusOf(url, 'POST')
            return one.mood.calls - before
          },
          { timeout: 10_000 },
        )
        .toBe(0)
      // without a single failed call
      one.mood.status = 500
      for (let i = 0; i < 10; i++) expect(await statusOf(url, 'POST')).toBe(200)
      one.mood.status = 200
      one.mood.health = 200
      const before = one.mood.calls
      await expect
        .poll(
          async () => {
            await statusOf(url)
            return one.mood.calls - before
          },
          { timeout: 10_000 },
        )
        .toBeGreaterThan(2)
    },
  )

  test('a health-checked address is used if all others are unhealthy, too', async () => {
    const [one, two] = [await moody(), await moody()]
    one.mood.health = two.mood.health = 503
    const { url } = await rig.guard({ gateway: { routes: [{ to: [one.url, two.url], health: { check } }] } })
    await expect.poll(() => Math.min(one.mood.checks, two.mood.checks), { timeout: 10_000 }).toBeGreaterThan(3)
    for (let i = 0; i < 4; i++) expect(await statusOf(url)).toBe(200)
  })

  test('a health-checked address is not checked any more once no route leads there, or the gateway has ended', async () => {
    const [one, two] = [await moody(), await moody()]
    const { rewrite, gateway } = await rig.guard({ gateway: { routes: [{ to: one.url, health: { check } }] } })
    await expect.poll(() => one.mood.checks).toBeGreaterThan(1)
    rewrite({ gateway: { routes: [{ to: two.url, health: { check } }] } })
    await expect.poll(() => two.mood.checks, { timeout: 10_000 }).toBeGreaterThan(1)
    const before = one.mood.checks
    await expect.poll(() => two.mood.checks).toBeGreaterThan(6)
    expect(one.mood.checks - before).toBeLessThanOrEqual(1)
    await gateway.close()
    const after = two.mood.checks
    await new Promise(resolve => setTimeout(resolve, 200))
    expect(two.mood.checks - after).toBeLessThanOrEqual(1)
  })
})

describe('the admin API', () => {
  test('the admin API reports the health of the addresses of every route', async () => {
    const held: (() => void)[] = []
    const slow = await rig.serve((_request, response) => void held.push(() => response.end()))
    const dead = rig.nowhere()
    const lookup = async () => {
      throw new Error('getaddrinfo ENOTFOUND app.invalid')
    }
    const guarded = await rig.guard(
      {
        gateway: {
          routes: [
            { to: [{ url: dead, weight: 2 }, slow.url], health: { failures: 1, rest: '1m' }, slowStart: '1m' },
            { host: 'shop.test', path: '/api', to: 'http://app.invalid' },
          ],
        },
      },
      { lookup },
    )
    const admin = await createAdmin({ limiter: guarded.limiter, host: '127.0.0.1' })
    rig.later(() => admin.close())
    const calls = [statusOf(guarded.url), statusOf(guarded.url, 'POST')]
    await expect.poll(() => held.length).toBe(2)
    const { statusCode, body } = await admin.inject({ url: '/api/v1/upstreams', headers: { host: 'localhost' } })
    expect(statusCode).toBe(200)
    expect(JSON.parse(body)).toEqual({
      routes: [
        {
          ...{ id: expect.any(String), host: [], path: '/', method: [], headers: [] },
          addresses: [
            {
              ...{ address: dead, state: 'resting', weight: 2, share: 2, underWay: 0, waiting: 0, connections: 0 },
              ...{
                forMs: expect.any(Number),
                restMs: expect.any(Number),
                why: expect.stringContaining('ECONNREFUSED'),
              },
            },
            { address: slow.url, state: 'healthy', weight: 1, share: 1, underWay: 2, waiting: 0, connections: 2 },
          ],
          troubles: [],
        },
        {
          ...{ id: expect.any(String), host: ['shop.test'], path: '/api', method: [], headers: [] },
          addresses: [expect.objectContaining({ address: 'http://app.invalid', state: 'healthy' })],
          troubles: ['app.invalid: getaddrinfo ENOTFOUND app.invalid'],
        },
      ],
    })
    for (const end of held) end()
    expect(await Promise.all(calls)).toEqual([200, 200])
  })
})
