import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { request } from 'undici'
import { expect } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { sendRaw, statusesIn } from '../helpers/gateway-rig.ts'
import { type Behavior, headersOf, ok, type Stage, statusOf } from './stage.ts'

const nobody = 'http://127.0.0.1:1'

async function echoSockets(stage: Stage, onHeaders: (headers: string[]) => void = () => {}) {
  const server = createHttpServer((_, response) => response.writeHead(426, { 'x-why': 'no socket' }).end('declined'))
  const sockets = new WebSocketServer({ server, path: '/ws', maxPayload: 64 * 1024 * 1024 })
  sockets.on('headers', onHeaders)
  sockets.on('connection', socket => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stage.rig.later(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
    server.closeAllConnections()
  })
  const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return await stage.rig.guard({ gateway: { routes: [{ to }] } })
}

const handshake = (path: string, more: readonly string[] = []): string =>
  `${[`GET ${path} HTTP/1.1`, 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', ...more].join('\r\n')}\r\n\r\n`

/** Where calls go, what happens when a service fails, and WebSockets. */
export const routing: readonly Behavior[] = [
  {
    behavior: 'Routes by host take exact names and names below a domain; a longer or crafted name does not match.',
    suites: ['http-proxy-middleware'],
    check: async stage => {
      const [alpha, below, rest] = [await stage.rig.serve(), await stage.rig.serve(), await stage.rig.serve()]
      const routes = [
        { host: 'alpha.example', to: alpha.url },
        { host: '*.beta.example', to: below.url },
        { to: rest.url },
      ]
      const { port } = await stage.rig.guard({ gateway: { routes } })
      for (const host of [
        'alpha.example',
        'ALPHA.example:80',
        'a.beta.example',
        'alpha.example.evil',
        'xalpha.example',
        'evilbeta.example',
      ]) {
        await stage.call(port, 'GET / HTTP/1.1', [`Host: ${host}`])
      }
      expect([alpha, below, rest].map(({ received }) => received.length)).toEqual([2, 1, 3])
    },
  },
  {
    behavior: 'Routes by path take whole segments; a call that no route takes gets a 404 and reaches no service.',
    suites: ['http-proxy-middleware'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok, { path: '/api' })
      const statuses = []
      for (const path of ['/api', '/api/x', '/apis', '/', '/x/api'])
        statuses.push(statusOf(await stage.call(port, `GET ${path} HTTP/1.1`)))
      expect([statuses, calls.length]).toEqual([[200, 200, 404, 404, 404], 2])
    },
  },
  {
    behavior: 'A service may have an IPv6 address.',
    suites: ['http-proxy-middleware', 'nginx'],
    check: async stage => {
      const server = createHttpServer((incoming, response) => response.end(incoming.url))
      server.listen(0, '::1')
      await once(server, 'listening')
      stage.rig.later(() => server.close())
      const { url } = await stage.rig.guard({
        gateway: { routes: [{ to: `http://[::1]:${(server.address() as AddressInfo).port}` }] },
      })
      expect(await (await request(`${url}/a?b=c`)).body.text()).toBe('/a?b=c')
    },
  },
  {
    behavior: 'The addresses of a service are asked in turn; one that fails is left alone for a while.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      const [one, two] = [await stage.rig.serve(), await stage.rig.serve()]
      const even = await stage.rig.guard({ gateway: { routes: [{ to: [one.url, two.url] }] } })
      for (let call = 0; call < 10; call++) await (await request(even.url)).body.dump()
      expect([one.received.length, two.received.length]).toEqual([5, 5])
      const half = await stage.rig.guard({ gateway: { routes: [{ to: [nobody, one.url] }] } })
      for (let call = 0; call < 10; call++) expect((await request(half.url)).statusCode).toBe(200)
    },
  },
  {
    behavior: 'A call that may be repeated is tried at the next address if the first breaks before it answers; once.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      let asked = 0
      const breaking = await stage.rig.serveRaw(socket => {
        socket.once('data', () => {
          asked++
          socket.destroy()
        })
      })
      const service = await stage.rig.serve()
      const { url } = await stage.rig.guard({ gateway: { routes: [{ to: [breaking, service.url] }] } })
      expect((await request(url)).statusCode).toBe(200)
      const both = await stage.rig.guard({ gateway: { routes: [{ to: [breaking, breaking] }] } })
      asked = 0
      expect([(await request(both.url)).statusCode, asked]).toEqual([502, 2])
    },
  },
  {
    behavior: 'A POST that has reached a service is not sent a second time.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      const { url, calls } = await stage.bytes(socket => socket.destroy())
      expect([(await request(url, { method: 'POST', body: 'a' })).statusCode, calls.length]).toEqual([502, 1])
    },
  },
  {
    behavior: 'A status such as 404, 500 or 503 is an answer: it is passed on, and nothing is tried again.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      for (const status of [404, 500, 502, 503, 504]) {
        const { url, calls } = await stage.bytes(`HTTP/1.1 ${status} X\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n`)
        expect([(await request(url)).statusCode, calls.length]).toEqual([status, 1])
      }
    },
  },
  {
    behavior: 'A service that cannot be reached, is not known by name, closes or resets gives a 502 that says no more.',
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      const closing = await stage.rig.serveRaw(socket => socket.end())
      const resetting = await stage.rig.serveRaw(socket => socket.once('data', () => socket.resetAndDestroy()))
      for (const to of [nobody, 'http://no-such-name.invalid', closing, resetting]) {
        const { url } = await stage.rig.guard({ gateway: { routes: [{ to }] } })
        const { statusCode, body } = await request(url)
        expect([to, statusCode, await body.text()]).toEqual([
          to,
          502,
          expect.not.stringMatching(/ECONN|ENOTFOUND|127\.0\.0\.1/),
        ])
      }
    },
  },
  {
    behavior: 'A service that does not begin its answer in time gives a 504.',
    suites: ['http-proxy', 'reply-from', 'nginx'],
    check: async stage => {
      const { url } = await stage.service(() => {}, { timeouts: { headers: '100ms' } })
      expect((await request(url)).statusCode).toBe(504)
    },
  },
  {
    behavior: 'A pause in an answer beyond the timeout cuts it; an answer that goes on in time may take longer.',
    suites: ['reply-from', 'nginx'],
    check: async stage => {
      const stuck = await stage.service((_, response) => response.write('a'), { timeouts: { body: '100ms' } })
      await expect(request(stuck.url).then(({ body }) => body.text())).rejects.toThrow()
      const steady = await stage.service(
        (_, response) => {
          let left = 8
          const timer = setInterval(() => {
            if (--left > 0) response.write('a')
            else {
              clearInterval(timer)
              response.end()
            }
          }, 200)
        },
        { timeouts: { body: '1s' } },
      )
      expect(await (await request(steady.url)).body.text()).toBe('aaaaaaa')
    },
  },
  {
    behavior: 'A service with a certificate that no authority vouches for gives a 502.',
    suites: ['http-proxy', 'nginx', 'reply-from'],
    check: async stage => {
      const { url } = await stage.bytes(ok)
      // a gateway without TLS in place of a service with it: the handshake fails
      const outer = await stage.rig.guard({ gateway: { routes: [{ to: url.replace('http:', 'https:') }] } })
      expect((await request(outer.url)).statusCode).toBe(502)
    },
  },
  {
    behavior: 'WebSockets carry text and bytes both ways, single frames and large messages.',
    suites: ['http-proxy', 'http-proxy-middleware', 'nginx'],
    check: async stage => {
      const { port } = await echoSockets(stage)
      const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, { maxPayload: 64 * 1024 * 1024 })
      await once(socket, 'open')
      for (const message of ['a', 'x'.repeat(125), 'y'.repeat(126), 'z'.repeat(70_000), Buffer.alloc(5_000_000, 1)]) {
        socket.send(message)
        const [back, isBinary] = await once(socket, 'message')
        expect([Buffer.from(message).equals(back), isBinary]).toEqual([true, typeof message !== 'string'])
      }
      socket.close()
      await once(socket, 'close')
    },
  },
  {
    behavior: 'Frames sent right behind the handshake, before it is answered, arrive.',
    suites: ['nginx'],
    check: async stage => {
      const { port } = await echoSockets(stage)
      const socket = connect(port, '127.0.0.1').setEncoding('latin1')
      // a masked text frame "hi", with a mask of zeros
      socket.write(Buffer.concat([Buffer.from(handshake('/ws')), Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69])]))
      let text = ''
      socket.on('data', piece => {
        text += piece
      })
      await expect
        .poll(() => text)
        .toSatisfy((all: string) => all.startsWith('HTTP/1.1 101') && all.endsWith('\r\n\r\n\u0081\u0002hi'))
      socket.destroy()
    },
  },
  {
    behavior: 'Headers of the handshake reach the service with who called, and its answer keeps every Set-Cookie.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port } = await echoSockets(stage, headers => headers.push('Set-Cookie: a=1', 'Set-Cookie: b=2'))
      const socket = connect(port, '127.0.0.1').setEncoding('latin1')
      socket.write(handshake('/ws'))
      expect(headersOf(String((await once(socket, 'data'))[0]), 'set-cookie')).toEqual(['a=1', 'b=2'])
      socket.destroy()
      const plain = await stage.bytes('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n')
      await sendRaw(plain.port, handshake('/ws', ['X-Mine: 1']))
      expect(['x-forwarded-for', 'x-mine', 'upgrade'].map(name => headersOf(plain.calls[0]!, name))).toEqual([
        ['127.0.0.1'],
        ['1'],
        ['websocket'],
      ])
    },
  },
  {
    behavior: 'An offer of another protocol, or a method that cannot open a WebSocket, is served as a plain call.',
    suites: ['http-proxy'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      await stage.call(port, 'GET / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: foo'])
      await stage.call(port, 'POST / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 1'], 'a')
      expect(calls.map(call => headersOf(call, 'upgrade'))).toEqual([[], []])
    },
  },
  {
    behavior: 'A service that declines a WebSocket has its answer passed on; one that is away or closes gives a 502.',
    suites: ['http-proxy', 'http-proxy-middleware', 'nginx'],
    check: async stage => {
      const { port } = await echoSockets(stage)
      expect(await sendRaw(port, handshake('/elsewhere'))).toMatch(/^HTTP\/1\.1 (400|426)/)
      const closing = await stage.rig.serveRaw(socket => socket.once('data', () => socket.end()))
      for (const to of [nobody, closing]) {
        const guarded = await stage.rig.guard({ gateway: { routes: [{ to }] } })
        expect(statusesIn(await sendRaw(guarded.port, handshake('/ws')))).toEqual([502])
      }
    },
  },
  {
    behavior: 'When one side of a WebSocket ends, so does the other.',
    suites: ['http-proxy', 'http-proxy-middleware'],
    check: async stage => {
      const ends: Promise<unknown>[] = []
      const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
      await once(server, 'listening')
      stage.rig.later(() => server.close())
      server.on('connection', (socket, incoming) => {
        ends.push(once(socket, 'close'))
        if (incoming.url === '/end') socket.terminate()
      })
      const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const { port } = await stage.rig.guard({ gateway: { routes: [{ to }] } })
      const left = new WebSocket(`ws://127.0.0.1:${port}/end`)
      await once(left, 'close')
      const leaving = new WebSocket(`ws://127.0.0.1:${port}/stay`)
      await once(leaving, 'open')
      leaving.terminate()
      await expect.poll(() => ends.length).toBe(2)
      await Promise.all(ends)
    },
  },
]
