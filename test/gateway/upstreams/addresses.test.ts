import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { readUpstreams } from '../../../packages/gateway/src/telemetry/server-reports.ts'
import { GatewayRig, type Service } from '../../helpers/gateway-rig.ts'
import { freePort, startProgram } from '../../helpers/servers/program.ts'
import { findNginx } from '../../paths/services.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function call(url: string, headers: Record<string, string> = {}) {
  const { statusCode, headers: received, body } = await request(url, { headers })
  const cookie = [received['set-cookie'] ?? []].flat().find(one => one.startsWith('route='))
  return { status: statusCode, text: await body.text(), cookie }
}

async function named(...names: string[]): Promise<Service[]> {
  return await Promise.all(names.map(name => rig.serve((_request, response) => response.end(name))))
}

describe('callers of a sticky route', () => {
  test('callers of a sticky route stay with their address by a cookie that shows no address', async () => {
    const services = await named('a', 'b', 'c')
    const to = services.map(({ url }) => url)
    const { url, rewrite } = await rig.guard({ gateway: { routes: [{ to, sticky: { cookie: 'route' } }] } })
    const callers = await Promise.all(Array.from({ length: 30 }, () => call(url)))
    expect(new Set(callers.map(({ text }) => text)).size).toBe(3)
    for (const { cookie } of callers) {
      expect(cookie).toMatch(/^route=[\w-]{16}\.[\w-]{16}; Path=\/; HttpOnly; SameSite=Lax$/)
    }
    const again = async () => {
      for (const { text, cookie } of callers) {
        const answer = await call(url, { cookie: `x=1; ${cookie!.split(';')[0]}` })
        expect([answer.text, answer.cookie]).toEqual([text, undefined])
      }
    }
    await again()
    // a new address takes none of them, and one that takes no new callers keeps its own
    const [more] = await named('d')
    const weighed = [{ url: to[0], weight: 0 }, to[1], to[2], more!.url]
    rewrite({ gateway: { routes: [{ to: weighed, sticky: { cookie: 'route' } }] } })
    await expect.poll(async () => (await call(url)).text, { timeout: 10_000 }).toBe('d')
    await again()
    const fresh = await Promise.all(Array.from({ length: 20 }, () => call(url)))
    expect(fresh.map(({ text }) => text)).not.toContain('a')
  })

  test('callers of a sticky route move when their address is down, and stay where they went', async () => {
    const services = await named('a', 'b', 'c')
    const to = services.map(({ url }) => url)
    const route = { to, sticky: { cookie: 'route', maxAge: '1h' }, health: { failures: 1, rest: '1m' } }
    const { url } = await rig.guard({ gateway: { routes: [route] } })
    const first = await call(url)
    expect(first.cookie).toContain('Max-Age=3600')
    const { server } = services['abc'.indexOf(first.text)]!
    server.close()
    server.closeAllConnections()
    const moved = await call(url, { cookie: first.cookie!.split(';')[0]! })
    expect([moved.status, moved.text === first.text]).toEqual([200, false])
    for (let i = 0; i < 5; i++) {
      expect((await call(url, { cookie: moved.cookie!.split(';')[0]! })).text).toBe(moved.text)
    }
  })

  test.each(['', 'x', '.', '%00', `${'a'.repeat(16)}.${'b'.repeat(16)}`, 'a'.repeat(4000), '../../etc', '"'])(
    'callers with an invented sticky cookie such as %j are served',
    async value => {
      const services = await named('a', 'b')
      const to = services.map(({ url }) => url)
      const { url } = await rig.guard({ gateway: { routes: [{ to, sticky: { cookie: 'route' } }] } })
      const { status, cookie } = await call(url, { cookie: `route=${value}` })
      expect([status, cookie]).toEqual([200, expect.stringMatching(/^route=[\w-]{16}\.[\w-]{16};/)])
    },
  )

  test.each(['with', 'without'])(
    'callers of a sticky route get their cookie beside those of the service, %s filters in the chain',
    async how => {
      const cookies = ['a=1', 'b=2; Path=/']
      const serve = () => rig.serve((_request, response) => response.setHeader('set-cookie', cookies).end())
      const to = [(await serve()).url, (await serve()).url]
      const filters = how === 'with' ? [async () => {}] : []
      const { url } = await rig.guard({ gateway: { routes: [{ to, sticky: { cookie: 'route' } }] } }, { filters })
      const { headers, body } = await request(url)
      await body.dump()
      expect(headers['set-cookie']).toEqual([...cookies, expect.stringMatching(/^route=/)])
    },
  )

  test('callers with the same sticky header share an address, and callers without it are spread', async () => {
    const services = await named('a', 'b', 'c')
    const to = services.map(({ url }) => url)
    const { url } = await rig.guard({ gateway: { routes: [{ to, sticky: { hash: 'header:X-Account' } }] } })
    const seen = new Set<string>()
    for (const account of ['ann', 'bob', 'cid', 'dan', 'eve', 'fay', 'gus', 'hal']) {
      const texts = new Set<string>()
      for (let i = 0; i < 4; i++) texts.add((await call(url, { 'x-account': account })).text)
      expect(texts.size).toBe(1)
      for (const text of texts) seen.add(text)
    }
    expect(seen.size).toBeGreaterThan(1)
    expect([(await call(url)).text, (await call(url)).text, (await call(url)).text].sort()).toEqual(['a', 'b', 'c'])
  })

  test('callers of a sticky route stay by their cookie when they ask for a WebSocket', async () => {
    const services = await named('a', 'b', 'c')
    for (const [at, { server }] of services.entries()) {
      new WebSocketServer({ server }).on('connection', socket => socket.send('abc'[at]!))
    }
    const to = services.map(({ url }) => url)
    const { url } = await rig.guard({ gateway: { routes: [{ to, sticky: { cookie: 'route' } }] } })
    const { text, cookie } = await call(url)
    for (let i = 0; i < 4; i++) {
      const socket = new WebSocket(url.replace('http', 'ws'), { headers: { cookie: cookie!.split(';')[0]! } })
      const [message] = await once(socket, 'message')
      expect(String(message)).toBe(text)
      socket.terminate()
    }
  })
})

describe('a name of a service', () => {
  /** One port at several addresses of this machine, each of which says its own. */
  async function fleet(...addresses: string[]): Promise<number> {
    let port = 0
    for (const address of addresses) {
      const server = createServer((_request, response) => response.end(address))
      server.listen(port, address)
      await once(server, 'listening')
      port = (server.address() as { port: number }).port
      rig.later(() => {
        server.close()
        server.closeAllConnections()
      })
    }
    return port
  }
  const v4 = (...addresses: string[]): LookupAddress[] => addresses.map(address => ({ address, family: 4 }))
  const texts = async (url: string, count: number) => {
    const seen = new Map<string, number>()
    for (let i = 0; i < count; i++) {
      const { text } = await call(url)
      seen.set(text, (seen.get(text) ?? 0) + 1)
    }
    return Object.fromEntries(seen)
  }

  test('the name of a service stands for all its addresses, follows changes, and keeps them while DNS is down', async () => {
    const port = await fleet('127.0.0.1', '127.0.0.2', '127.0.0.3')
    let answer: () => LookupAddress[] = () => v4('127.0.0.1', '127.0.0.2')
    let asked = 0
    const lookup = async () => {
      asked++
      return answer()
    }
    const { url } = await rig.guard(
      { gateway: { dns: { interval: '50ms' }, routes: [{ to: `http://app.test:${port}` }] } },
      { lookup },
    )
    await expect.poll(() => asked).toBeGreaterThan(0)
    expect(await texts(url, 10)).toEqual({ '127.0.0.1': 5, '127.0.0.2': 5 })
    answer = () => v4('127.0.0.3', '127.0.0.2')
    await expect.poll(() => texts(url, 4), { timeout: 10_000 }).toEqual({ '127.0.0.2': 2, '127.0.0.3': 2 })
    answer = () => {
      throw new Error('queryA ETIMEOUT app.test')
    }
    const before = asked
    await expect.poll(() => asked).toBeGreaterThan(before + 2)
    expect(await texts(url, 4)).toEqual({ '127.0.0.2': 2, '127.0.0.3': 2 })
  })

  test('a name of a service that is not known at the start gets 502, and is served once it is', async () => {
    const port = await fleet('127.0.0.1')
    let isKnown = false
    const lookup = async () => {
      if (!isKnown) throw new Error('getaddrinfo ENOTFOUND')
      return v4('127.0.0.1')
    }
    const { url } = await rig.guard(
      { gateway: { dns: { interval: '50ms' }, routes: [{ to: `http://app.invalid:${port}` }] } },
      { lookup },
    )
    expect((await call(url)).status).toBe(502)
    isKnown = true
    await expect.poll(async () => (await call(url)).status, { timeout: 10_000 }).toBe(200)
  })

  test('a name of a service with an address that is down loses no call, whatever the method', async () => {
    const port = await fleet('127.0.0.1', '127.0.0.3')
    const lookup = async () => v4('127.0.0.1', '127.0.0.2', '127.0.0.3')
    const { url } = await rig.guard({ gateway: { routes: [{ to: `http://app.test:${port}` }] } }, { lookup })
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        request(url, { method: 'POST', body: 'x' }).then(({ statusCode }) => statusCode),
      ),
    )
    expect(new Set(answers)).toEqual(new Set([200]))
  })

  test('a name of a service such as localhost is reached at whichever family the service listens on', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer((_request, response) => response.end(host))
      server.listen(0, host)
      await once(server, 'listening')
      rig.later(() => {
        server.close()
        server.closeAllConnections()
      })
      const { port } = server.address() as { port: number }
      const lookup = async (): Promise<LookupAddress[]> => [...v4('127.0.0.1'), { address: '::1', family: 6 }]
      const { url } = await rig.guard({ gateway: { routes: [{ to: `http://localhost:${port}` }] } }, { lookup })
      expect(await texts(url, 6)).toEqual({ [host]: 6 })
    }
  })
})

describe('a Unix socket', () => {
  test('a Unix socket is a service like any other, with a path in front if the address has one', async () => {
    const path = join(rig.folder(), 'app.sock')
    const server = createServer((incoming, response) => response.end(`${incoming.headers.host} ${incoming.url}`))
    server.listen(path)
    await once(server, 'listening')
    rig.later(() => {
      server.close()
      server.closeAllConnections()
    })
    new WebSocketServer({ server }).on('connection', socket => socket.send('hello'))
    const { url } = await rig.guard({
      gateway: {
        routes: [
          { to: `unix:${path}`, keepHost: false },
          { path: '/api', rewrite: '/', to: `unix:${path}:/base` },
        ],
      },
    })
    expect((await call(`${url}/x?y=1`)).text).toBe('localhost /x?y=1')
    expect((await call(`${url}/api/x`)).text).toBe(`${new URL(url).host} /base/x`)
    const socket = new WebSocket(url.replace('http', 'ws'))
    expect(String((await once(socket, 'message'))[0])).toBe('hello')
    socket.terminate()
  })

  test('a Unix socket that is not there gives 502, a log line that names it, and harms no other route', async () => {
    const path = join(rig.folder(), 'missing.sock')
    const [other] = await named('other')
    const lines: string[] = []
    const logger = { level: 'warn', stream: { write: (line: string) => void lines.push(line) } }
    const { url } = await rig.guard(
      { gateway: { routes: [{ to: `unix:${path}` }, { path: '/other', to: other!.url }] } },
      { logger },
    )
    expect(await call(url)).toMatchObject({ status: 502, text: expect.stringContaining('cannot be reached') })
    expect((await call(`${url}/other`)).text).toBe('other')
    expect(lines.join('')).toContain(`unix:${path}`)
    expect(lines.join('')).toContain('there is no socket at this path')
    const socket = new WebSocket(url.replace('http', 'ws'))
    const [error] = await once(socket, 'error')
    expect(String(error)).toContain('502')
  })
})

describe('connections to a service', () => {
  test('connections to a service carry no new call once they are older than maxAge', async () => {
    const { url, received } = await rig.serve((_request, response) => void setTimeout(() => response.end(), 10))
    const guarded = await rig.guard({
      gateway: {
        routes: [
          { to: url, connections: { maxAge: '5ms' } },
          { path: '/any-age', to: url },
        ],
      },
    })
    for (let i = 0; i < 3; i++) await call(guarded.url)
    expect(new Set(received.map(({ socket }) => socket)).size).toBe(3)
    for (let i = 0; i < 3; i++) await call(`${guarded.url}/any-age`)
    expect(new Set(received.map(({ socket }) => socket)).size).toBe(4)
  })

  test('connections to a service are closed when they have been idle for as long as the route says', async () => {
    const url = await rig.serveRaw(socket => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
      socket.on('close', () => {
        closed++
      })
    })
    let closed = 0
    const guarded = await rig.guard({ gateway: { routes: [{ to: url, connections: { idle: '100ms' } }] } })
    await call(guarded.url)
    await expect.poll(() => closed, { timeout: 3500 }).toBe(1)
  })
})

test('nginx behind a Unix socket and at two ports is checked, balanced and tried again like all services', async () => {
  const folder = rig.folder()
  const [port, failing] = [await freePort(), await freePort()]
  const socket = join(folder, 'nginx.sock')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const config = join(folder, 'nginx.conf')
  const server = (listen: string, answer: string): string =>
    `server { listen ${listen}; location /up { return 204; } location / { return ${answer}; } }`
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${join(folder, 'pid')}; error_log ${join(folder, 'error.log')};
    events { worker_connections 256; }
    http {
      access_log off; default_type text/plain; ${temporary.join(' ')}
      ${server(`unix:${socket}`, '200 "socket $request_uri"')}
      ${server(`127.0.0.1:${port}`, '200 "port $request_uri"')}
      ${server(`127.0.0.1:${failing}`, '503')}
    }`,
  )
  const nginx = await startProgram(findNginx(), ['-p', folder, '-c', config], async () => {
    return (await fetch(`http://127.0.0.1:${port}/up`)).ok
  })
  rig.later(() => nginx.stop())
  const route = {
    to: [`unix:${socket}:/base`, `http://127.0.0.1:${port}`, `http://127.0.0.1:${failing}`],
    health: { check: { path: '/up', interval: '50ms' }, failStatuses: 503, rest: '1m' },
  }
  const { url, limiter } = await rig.guard({ gateway: { routes: [route] } })
  const texts = new Map<string, number>()
  for (let i = 0; i < 20; i++) {
    const { status, text } = await call(`${url}/x?${i % 2}`)
    expect(status).toBe(200)
    texts.set(text.replace(/\?.$/, ''), (texts.get(text.replace(/\?.$/, '')) ?? 0) + 1)
  }
  expect([...texts.keys()].sort()).toEqual(['port /x', 'socket /base/x'])
  const states = () => readUpstreams(limiter)[0]!.addresses.map(({ state }) => state)
  expect(states()).toEqual(['healthy', 'healthy', 'resting'])
  await nginx.stop()
  await expect.poll(states, { timeout: 10_000 }).toEqual(['unhealthy', 'unhealthy', 'unhealthy'])
})
