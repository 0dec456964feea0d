import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLimiter } from 'diana-limiter'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function get(url: string, headers: Record<string, string> = {}) {
  const { statusCode, headers: received, body } = await request(url, { headers })
  return { status: statusCode, headers: received, text: await body.text() }
}

describe('routing of a call', () => {
  test('a call is routed by its host and the longest matching path, in any spelling', async () => {
    const names = ['shop', 'cart', 'wild', 'rest'] as const
    const services = await Promise.all(names.map(name => rig.serve((_request, response) => response.end(name))))
    const [shop, cart, wild, rest] = services.map(({ url }) => url)
    const { url } = await rig.guard({
      gateway: {
        routes: [
          { to: rest },
          { host: 'shop.test', to: shop },
          { host: 'shop.test', path: '/cart', to: cart },
          { host: '*.shop.test', path: '/', to: wild },
        ],
      },
    })
    const where = async (path: string, host?: string) => (await get(`${url}${path}`, host ? { host } : {})).text
    expect(await where('/')).toBe('rest')
    expect(await where('/cart')).toBe('rest')
    expect(await where('/', 'SHOP.test:8080')).toBe('shop')
    expect(await where('/cart', 'shop.test')).toBe('cart')
    expect(await where('/cart/1?x=/', 'shop.test')).toBe('cart')
    expect(await where('/cart/1;x=1', 'shop.test')).toBe('cart')
    expect(await where('/cartoon', 'shop.test')).toBe('shop')
    expect(await where('/', 'a.b.shop.test')).toBe('wild')
    expect(await where('/', 'notshop.test')).toBe('rest')
  })

  test('a call without a route is not forwarded, but counted', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({
      rules: [{ id: 'all', limit: '1/m' }],
      gateway: { routes: [{ path: '/api', to: url }] },
    })
    expect((await get(`${guarded.url}/other`)).status).toBe(404)
    expect((await get(`${guarded.url}/api`)).status).toBe(503)
  })

  test('a call is forwarded with path and headers rewritten by its route', async () => {
    const { url, received } = await rig.serve((_request, response) => {
      response.setHeader('server', 'old').setHeader('x-powered-by', 'php').setHeader('set-cookie', ['a=1', 'b=2']).end()
    })
    const { url: gateway } = await rig.guard({
      gateway: {
        routes: [
          {
            path: '/api/v1',
            to: `${url}/base`,
            rewrite: '/v2',
            keepHost: true,
            requestHeaders: { set: { 'x-from': 'diana' }, remove: 'x-secret' },
            responseHeaders: { set: { server: 'new' }, remove: ['x-powered-by'] },
          },
          { path: '/bare', to: url, rewrite: '/' },
        ],
      },
    })
    const headers = { host: 'api.test', 'x-from': 'spoofed', 'x-secret': '1' }
    const answer = await get(`${gateway}/api/v1/orders?a=b`, headers)
    expect(received[0]!.url).toBe('/base/v2/orders?a=b')
    expect(received[0]!.headers).toMatchObject({ host: 'api.test', 'x-from': 'diana' })
    expect(received[0]!.headers).not.toHaveProperty('x-secret')
    expect(answer.headers).toMatchObject({ server: 'new', 'set-cookie': ['a=1', 'b=2'] })
    expect(answer.headers).not.toHaveProperty('x-powered-by')
    await get(`${gateway}/bare`)
    await get(`${gateway}/bare/x`)
    expect(received.slice(1).map(one => one.url)).toEqual(['/', '/x'])
  })
})

describe('several addresses of a service', () => {
  test('several addresses of a service are used in turn', async () => {
    const services = await Promise.all([rig.serve(), rig.serve(), rig.serve()])
    const { url } = await rig.guard({ gateway: { routes: [{ to: services.map(one => one.url) }] } })
    for (let i = 0; i < 9; i++) expect((await get(url)).status).toBe(200)
    expect(services.map(({ received }) => received.length)).toEqual([3, 3, 3])
  })

  test('an address that is down loses no call, gets no calls for a while, and comes back', async () => {
    const good = await rig.serve()
    const bad = await rig.serve()
    const { port } = new URL(bad.url)
    bad.server.close()
    const route = { to: [bad.url, good.url], health: { failures: 2, rest: '200ms' } }
    const { url } = await rig.guard({ gateway: { routes: [route] } })
    for (let i = 0; i < 8; i++) expect((await get(url)).status).toBe(200)
    expect(good.received).toHaveLength(8)
    bad.server.listen(Number(port), '127.0.0.1')
    await once(bad.server, 'listening')
    await expect
      .poll(async () => {
        await get(url)
        return bad.received.length
      })
      .toBeGreaterThan(2)
  })

  test('a call with a body, or one that must not be repeated, is sent once', async () => {
    const reached: string[] = []
    const resetting = await rig.serveRaw(socket =>
      socket.once('data', data => {
        reached.push(String(data).split(' ')[0]!)
        socket.destroy()
      }),
    )
    const { url } = await rig.guard({ gateway: { routes: [{ to: [resetting, resetting], health: { failures: 99 } }] } })
    for (const [method, body] of [
      ['POST', undefined],
      ['PUT', 'text'],
      ['DELETE', undefined],
    ] as const) {
      const { statusCode, body: answer } = await request(url, { method, body: body ?? null })
      await answer.dump()
      expect(statusCode).toBe(502)
    }
    expect(reached).toEqual(['POST', 'PUT', 'DELETE', 'DELETE'])
  })
})

describe('a failing service', () => {
  const within = async (ms: number, work: Promise<{ status: number; text: string }>) => {
    const begun = performance.now()
    const { status, text } = await work
    expect(performance.now() - begun).toBeLessThan(ms)
    return [status, (JSON.parse(text) as { detail: string }).detail]
  }

  test('a service that does not begin to answer gives a 504', async () => {
    const { url } = await rig.serve(() => {})
    const route = { to: url, timeouts: { headers: '300ms' } }
    const guarded = await rig.guard({ gateway: { routes: [route] } })
    expect(await within(3000, get(guarded.url))).toEqual([504, 'The service did not answer in time.'])
  })

  test('a service that stops in the middle of its answer ends the connection, since the status was sent', async () => {
    const { url } = await rig.serve((_request, response) =>
      response.writeHead(200, { 'content-length': 10 }).write('half'),
    )
    const guarded = await rig.guard({ gateway: { timeouts: { body: '300ms' }, routes: [{ to: url }] } })
    await expect(get(guarded.url)).rejects.toThrow()
  })

  test.each([
    ['hangs up', ''],
    ['speaks another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['breaks off within its headers', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['sends a header without a name', 'HTTP/1.1 200 OK\r\n: x\r\n\r\n'],
    ['has endless headers', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}\r\n`],
    ['upgrades though nobody asked', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
  ])('a service that %s gives a 502', async (_, bytes) => {
    const url = await rig.serveRaw(socket => socket.once('data', () => socket.end(bytes)))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const [status] = await within(5000, get(guarded.url))
    expect(status).toBe(502)
    expect((await get(guarded.url)).status).toBe(502)
  })
})

describe('a changed file', () => {
  test('a changed file changes routes and rules together, or neither', async () => {
    const [one, two] = [await rig.serve(), await rig.serve()]
    const guarded = await rig.guard({ gateway: { routes: [{ to: one.url }] } })
    await get(guarded.url)
    const reasons: string[] = []
    guarded.limiter.events.on('rejected', ({ trouble }) => reasons.push(trouble ?? ''))

    guarded.rewrite({ rules: [{ id: 'new', limit: '1/m' }], gateway: { routes: [{ to: 'ftp://x' }] } })
    await expect.poll(() => reasons.length, { timeout: 10_000 }).toBe(1)
    expect(reasons[0]).toMatch(/diana\.yaml:6:11: gateway\.routes\[0\]\.to is not the address of a service/)
    guarded.rewrite({
      rules: [{ id: 'new', limit: '1/m' }],
      gateway: { filters: ['./x.mjs'], routes: [{ to: two.url }] },
    })
    await expect.poll(() => reasons.length, { timeout: 10_000 }).toBe(2)
    expect(reasons[1]).toContain('gateway.filters is read at the start only')
    expect((await get(guarded.url)).headers.ratelimit).toContain('"all"')
    expect(two.received).toHaveLength(0)

    guarded.rewrite({ rules: [{ id: 'new', limit: '9/m' }], gateway: { routes: [{ to: two.url }] } })
    await expect.poll(async () => (await get(guarded.url)).headers.ratelimit, { timeout: 10_000 }).toContain('"new"')
    expect(two.received.length).toBeGreaterThan(0)
  })

  test('a changed file under load fails no call', async () => {
    const services = [await rig.serve(), await rig.serve()]
    const documents = services.map(({ url }) => ({ gateway: { routes: [{ to: url }] } }))
    const guarded = await rig.guard(documents[0]!)
    let taken = 0
    guarded.limiter.events.on('rules', () => taken++)
    let running = true
    const statuses = new Map<number, number>()
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const { status } = await get(guarded.url)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })
    for (let i = 1; i <= 6; i++) {
      guarded.rewrite({ ...documents[i % 2], rules: [{ id: `all-${i}`, limit: '1000000/s' }] })
      await expect.poll(() => taken, { timeout: 10_000 }).toBeGreaterThanOrEqual(i)
    }
    running = false
    await Promise.all(load)
    expect([...statuses.keys()]).toEqual([200])
    expect(services.every(({ received }) => received.length > 10)).toBe(true)
  })

  test('a changed file with a section for the gateway is a good rule file for the library', async () => {
    const folder = rig.folder()
    const config = join(folder, 'diana.yaml')
    writeFileSync(config, 'rules: [{ id: all, limit: 1/m }]\ngateway: { whatever: [the, gateway, says] }\n')
    const limiter = await createLimiter({ config })
    rig.later(() => limiter.close())
    expect((await limiter.check({ method: 'GET', path: '/' })).allowed).toBe(true)
  })
})

describe('the chain', () => {
  const key = 'a-long-random-key'
  const sha256 = createHash('sha256').update(key).digest('hex')

  test('the filters of the file run in their order, with their options, and not for refused calls', async () => {
    const { url, received } = await rig.serve()
    const folder = rig.folder()
    const module = (name: string) =>
      `export default async (app, { mark }) => app.addHook('onRequest', async ({ headers }, reply) => {
        headers['x-trail'] = (headers['x-trail'] ?? '') + '${name}' + mark
        reply.header('x-seen', headers['x-trail'])
      })`
    for (const name of ['a', 'b']) writeFileSync(join(folder, `${name}.mjs`), module(name))
    const guarded = await rig.guard(
      {
        rules: [{ id: 'all', limit: '2/m' }],
        gateway: {
          filters: [
            { use: './b.mjs', mark: 1 },
            { use: 'api-key', keys: [{ name: 'shop', sha256, paths: '/orders' }] },
            { use: './a.mjs', mark: 2 },
          ],
          routes: [{ to: url }],
        },
      },
      { folder },
    )
    const stranger = await get(`${guarded.url}/orders`)
    expect([stranger.status, stranger.headers['x-seen']]).toEqual([401, 'b1'])
    const passed = await get(`${guarded.url}/orders`, { 'x-api-key': key })
    expect([passed.status, passed.headers['x-seen']]).toEqual([200, 'b1a2'])
    expect(received[0]!.headers).toMatchObject({ 'x-trail': 'b1a2', 'x-api-key-name': 'shop' })
    expect(received[0]!.headers).not.toHaveProperty('x-api-key')
    const refused = await get(`${guarded.url}/orders`, { 'x-api-key': key })
    expect([refused.status, refused.headers['x-seen']]).toEqual([503, undefined])
  })

  test('the chain lets a filter change the answer of a service', async () => {
    const { url } = await rig.serve()
    const folder = rig.folder()
    writeFileSync(
      join(folder, 'shout.mjs'),
      `export default (app, _options, done) => {
        app.addHook('onSend', async (_request, reply, payload) => {
          reply.removeHeader('content-length')
          let text = ''
          for await (const piece of payload) text += piece
          return text.toUpperCase()
        })
        done()
      }`,
    )
    const guarded = await rig.guard({ gateway: { filters: ['./shout.mjs'], routes: [{ to: url }] } }, { folder })
    expect((await get(guarded.url)).text).toBe('SERVED')
  })

  test.each([
    ['./none.mjs', 'the filter ./none.mjs cannot be loaded'],
    ['hmac-signatur', 'name api-key, hmac-signature, a path'],
  ])('the gateway does not start with the filter %s', async (use, message) => {
    await expect(rig.guard({ gateway: { filters: [use], routes: [{ to: 'http://a' }] } })).rejects.toThrow(message)
  })
})
