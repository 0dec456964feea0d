import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { createRandom } from '../../fuzz/random.mjs'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, openRaw, preface } from '../../helpers/http2-frames.ts'
import { call, handshake, isServed, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

/** A header block of a request without a body. */
const headersFor = (method: string, path: string): Buffer =>
  block([
    [':method', method],
    [':scheme', 'http'],
    [':authority', 'a.test'],
    [':path', path],
  ])

describe('resources of a call are released', () => {
  const small = { connections: { max: 3, queue: { timeout: '8s' } }, limits: { grace: '2s' } }

  test('callers who do not read the answer to a declined WebSocket request release its resources', async () => {
    const { url } = await rig.serve((incoming, response) =>
      response.end(incoming.url === '/big' ? Buffer.alloc(8 * 1024 * 1024) : 'served'),
    )
    const guarded = await rig.guard({ gateway: { ...small, routes: [{ to: url }] } })
    for (let i = 0; i < 3; i++) openSocket(guarded).pause().write(call('/big', handshake))
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(await isServed(guarded.url, 10_000)).toBe(200)
  })

  test.each([
    ['declines', (url: string) => url],
    ['cannot be reached', () => 'http://127.0.0.1:9'],
  ])('WebSocket callers who stay after the service %s release their resources', async (_, to) => {
    const { url } = await rig.serve((_incoming, response) => response.writeHead(404).end('no'))
    const rules = [{ id: 'few', limit: 3, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { ...small, routes: [{ to: to(url) }] } })
    const sockets = Array.from({ length: 3 }, () => {
      const socket = connect({ port: guarded.port, host: '127.0.0.1', allowHalfOpen: true })
      rig.later(() => socket.destroy())
      socket.on('error', () => {}).resume()
      socket.write(call('/', handshake))
      return socket
    })
    await Promise.all(sockets.map(socket => once(socket, 'end')))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBe(3)
    expect([404, 502]).toContain(await isServed(guarded.url))
    await expect
      .poll(() => new Promise(resolve => guarded.gateway.server.getConnections((_error, count) => resolve(count))), {
        timeout: 5000,
      })
      .toBeLessThan(3)
  })

  test.each([
    ['replaces the answer', async () => 'replaced'],
    [
      'throws',
      async () => {
        throw new Error('no')
      },
    ],
  ])('calls whose filter %s release their resources', async (_, onSend) => {
    const { url } = await rig.serve((incoming, response) =>
      response.end(incoming.url === '/big' ? Buffer.alloc(8 * 1024 * 1024) : 'served'),
    )
    const plugin = Object.assign(
      (app: { addHook(name: string, hook: unknown): void }, _options: object, done: () => void) => {
        app.addHook('onSend', onSend)
        done()
      },
      { [Symbol.for('skip-override')]: true },
    )
    const guarded = await rig.guard({ gateway: { ...small, routes: [{ to: url }] } }, { filters: [plugin] } as never)
    for (let i = 0; i < 9; i++) expect([200, 500]).toContain(await isServed(`${guarded.url}/big`))
  })

  test.each([
    ['WebSocket callers', handshake, 'reset'],
    ['WebSocket callers', handshake, 'end'],
    ['WebSocket callers', handshake, 'close'],
    ['callers', [], 'reset'],
    ['callers', [], 'close'],
  ] as const)('%s who leave while their calls are judged hold no connection to the service', async (_, lines, way) => {
    const { url } = await rig.serve()
    let judged = 0
    const judging = async (app: FastifyInstance): Promise<void> => {
      app.addHook('onRequest', async ({ url: asked }) => {
        if (asked !== '/left') return
        await pause(60)
        judged++
      })
    }
    const slow = Object.assign(judging, { [Symbol.for('skip-override')]: true })
    const guarded = await rig.guard({ gateway: { ...small, routes: [{ to: url }] } }, { filters: [slow] })
    for (let times = 0; times < 3; times++) {
      const socket = openSocket(guarded)
      await once(socket, 'connect')
      socket.write(call('/left', lines))
      await pause(20)
      if (way === 'reset') socket.resetAndDestroy()
      else if (way === 'end') socket.end()
      else socket.destroy()
    }
    await expect.poll(() => judged).toBe(3)
    expect(await isServed(guarded.url, 2000)).toBe(200)
  })

  test('callers who pipeline small calls and read no answers release their resources', async () => {
    const { url } = await rig.serve((_incoming, response) => response.end('x'.repeat(12_000)))
    const rules = [{ id: 'few', limit: 2, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { ...small, routes: [{ to: url }] } })
    for (let i = 0; i < 2; i++) openSocket(guarded).pause().write(call('/').repeat(499))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBe(0)
    await expect.poll(left, { timeout: 15_000 }).toBe(2)
  })

  test('callers of HTTP/2 who read no answers release their resources', async () => {
    const { url } = await rig.serve((incoming, response) =>
      response.end(incoming.url === '/big' ? Buffer.alloc(32 * 1024 * 1024) : 'x'),
    )
    const rules = [{ id: 'few', limit: 100, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { limits: { grace: '1s' }, routes: [{ to: url }] } })
    const { socket } = await openRaw(guarded.port)
    rig.later(() => socket.destroy())
    const opened = (id: number, path: string): Buffer =>
      frame('headers', flags.endHeaders | flags.endStream, id, headersFor('GET', path))
    // windows that never close, so that the connection itself is full
    const window = Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])
    socket.pause()
    socket.write(
      Buffer.concat([frame('settings', 0, 0, window), frame('windowUpdate', 0, 0, Buffer.from('7fff0000', 'hex'))]),
    )
    // all in one piece: Node reads no more from a connection whose answers do not leave
    const ids = Array.from({ length: 50 }, (_, n) => 2 * n + 1)
    socket.write(Buffer.concat(ids.map(id => opened(id, id < 20 ? '/big' : id % 4 === 1 ? '/small' : '/nowhere/%zz'))))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBeLessThan(90)
    await expect.poll(left, { timeout: 10_000 }).toBe(100)
  })

  test('callers who reset streams over TLS and disappear release their resources', { timeout: 60_000 }, async () => {
    const { url } = await rig.serve((_incoming, response) => response.end('x'))
    const rules = [{ id: 'few', limit: 10_000, algorithm: 'concurrency' }]
    const folder = rig.folder()
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem']
    const args = ['req', '-x509', ...key, '-out', 'cert.pem', '-days', '2', '-subj', '/CN=localhost']
    execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
    const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    const guarded = await rig.guard({ rules, gateway: { tls, limits: { grace: '1s' }, routes: [{ to: url }] } })
    const random = createRandom(34)
    for (let round = 0; round < 24; round++) {
      const socket = connectTls({
        port: guarded.port,
        host: '127.0.0.1',
        ALPNProtocols: ['h2'],
        rejectUnauthorized: false,
      })
      socket.on('error', () => {})
      await once(socket, 'secureConnect')
      socket.write(Buffer.concat([preface, frame('settings', 0, 0)]))
      const streams = random.pick([20, 100, 150, 400])
      const frames = Array.from({ length: streams }, (_, index) => {
        const id = 2 * index + 1
        const method = random.pick(['GET', 'POST', 'TRACE', 'x', 'HEAD'])
        const opening = frame(
          'headers',
          flags.endHeaders | (id & 2 ? flags.endStream : 0),
          id,
          headersFor(method, '/a'),
        )
        return random.chance(0.95)
          ? Buffer.concat([opening, frame('reset', 0, id, Buffer.alloc(4, random.pick([0, 8])))])
          : opening
      })
      const piece = random.pick([1, 10, 100, 400])
      for (let at = 0; at < streams; at += piece) socket.write(Buffer.concat(frames.slice(at, at + piece)))
      await pause(random.pick([0, 5, 30]))
      if (random.chance(0.7)) socket.destroy()
      else socket.end()
    }
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left, { timeout: 10_000 }).toBe(10_000)
  })

  test.each([
    ['a call', call('/x')],
    ['two calls', call('/x') + call('/y')],
    ['half a call', 'GET /x HT'],
    ['a call with part of its body', `${call('/x', ['Content-Length: 1000'], 'POST')}some`],
    ['CONNECT', call('a:1', [], 'CONNECT')],
    ['an unknown expectation', call('/x', ['Expect: tea'])],
    ['bytes that are no call', '\x00\x01\x02\r\n\r\n'],
  ])('a caller who disconnects with %s behind an unanswered call releases its resources', async (_, behind) => {
    for (const how of ['end', 'destroy', 'resetAndDestroy'] as const) {
      for (const pieces of [[call('/slow') + behind], [call('/slow'), behind]]) {
        let open = 0
        const { url } = await rig.serve((_incoming, response) => {
          open++
          response.on('close', () => open--)
        })
        const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
        const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
        const socket = openSocket(guarded)
        for (const piece of pieces) {
          socket.write(piece, 'latin1')
          await new Promise(resolve => setTimeout(resolve, 50))
        }
        socket[how]()
        const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
        await expect.poll(left).toBe(1)
        await expect.poll(() => open).toBe(0)
      }
    }
  })

  test.each(['end', 'destroy'] as const)(
    'a WebSocket caller who sent data too early and leaves by %s releases its resources',
    async how => {
      const { url } = await rig.serve(() => {})
      const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
      const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
      const socket = openSocket(guarded)
      socket.write(call('/', handshake) + 'x'.repeat(200_000))
      await new Promise(resolve => setTimeout(resolve, 100))
      socket[how]()
      const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
      await expect.poll(left).toBe(1)
    },
  )

  test.each(['end', 'destroy'] as const)(
    'an open WebSocket whose caller leaves by %s is released, even if the service stays',
    async how => {
      const service = await rig.serveRaw(socket => {
        socket.allowHalfOpen = true
        socket.once('data', () => socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'))
      })
      const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
      const guarded = await rig.guard({ rules, gateway: { routes: [{ to: service }] } })
      const socket = openSocket(guarded)
      socket.write(call('/', handshake))
      expect(String((await once(socket, 'data'))[0])).toContain('101')
      socket[how]()
      const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
      await expect.poll(left, { timeout: 5000 }).toBe(1)
    },
  )
})
