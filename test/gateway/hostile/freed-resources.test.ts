import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { call, handshake, isServed, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

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

  test('callers who pipeline small calls and read no answers release their resources', async () => {
    const { url } = await rig.serve((_incoming, response) => response.end('x'.repeat(12_000)))
    const rules = [{ id: 'few', limit: 2, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { ...small, routes: [{ to: url }] } })
    for (let i = 0; i < 2; i++) openSocket(guarded).pause().write(call('/').repeat(499))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBe(0)
    await expect.poll(left, { timeout: 15_000 }).toBe(2)
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
