import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call, handshake, isServed, socketOpener, upgradeTo } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

describe('an upgrade request behind calls of the same connection', () => {
  const rules = [[{ id: 'all', limit: '1000/s' }], [{ id: 'all', limit: '1/h' }]]

  test.each(['h2c', 'websocket', 'nonsense', 'HTTP/3.0, websocket', 'TLS/1.0'])(
    'an upgrade request for %s is answered in order, whether admitted or refused',
    async protocol => {
      for (const some of rules) {
        const { url } = await rig.serve()
        const guarded = await rig.guard({ rules: some, gateway: { routes: [{ to: url }] } })
        for (const before of [1, 2, 3]) {
          const calls = call('/a').repeat(before) + call('/b', upgradeTo(protocol))
          const socket = openSocket(guarded)
          socket.write(calls)
          let answer = ''
          socket.setEncoding('latin1').on('data', piece => {
            answer += piece
          })
          await expect.poll(() => statusesIn(answer).length).toBe(before + 1)
          socket.destroy()
        }
        expect(await isServed(guarded.url)).toBe(some[0]!.limit === '1/h' ? 503 : 200)
      }
    },
  )

  test('an upgrade request behind calls of the same connection does not hold back the rest of a large answer before it', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, 'x')
    const { url } = await rig.serve((incoming, response) => response.end(incoming.url === '/large' ? large : 'small'))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(
      guarded.port,
      call('/large') + call('/b', ['Connection: Upgrade, close', 'Upgrade: h2c']),
    )
    expect([statusesIn(answer), answer.length > large.length, answer.endsWith('small')]).toEqual([
      [200, 200],
      true,
      true,
    ])
  })

  test('an upgrade request behind calls of the same connection that is not taken keeps its body and its connection', async () => {
    const bodies: string[] = []
    const { url } = await rig.serve(async (incoming, response) => {
      let body = ''
      for await (const piece of incoming) body += piece
      bodies.push(`${incoming.method} ${body}`)
      response.end()
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']
    const calls = [
      `${call('/', [...offer, 'Content-Length: 3'], 'POST')}abc`,
      `${call('/', [...offer, 'Transfer-Encoding: chunked'], 'PUT')}3\r\ndef\r\n0\r\n\r\n`,
      call('/', ['Connection: close']),
    ]
    expect(statusesIn(await sendRaw(guarded.port, calls.join('')))).toEqual([200, 200, 200])
    expect(bodies).toEqual(['POST abc', 'PUT def', 'GET '])
  })
})

describe('unused upgraded connections', () => {
  test.each(['end', 'destroy'] as const)('a waiting WebSocket caller who leaves by %s gives up the wait', async how => {
    const { url, received } = await rig.serve()
    const rules = [
      { id: 'one', limit: 1, algorithm: 'concurrency', whenFull: 'wait', queue: { size: 10, timeout: '20s' } },
    ]
    const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
    const verdict = await guarded.limiter.check({ method: 'GET', path: '/' })
    const socket = openSocket(guarded)
    socket.write(call('/', handshake))
    const waiting = () => guarded.limiter.status().rules[0]!.waiting
    await expect.poll(waiting).toBe(1)
    socket[how]()
    await expect.poll(waiting).toBe(0)
    verdict.end()
    expect([await isServed(guarded.url), received.length]).toEqual([200, 1])
  })

  test.each(['h2c', 'websocket'])(
    'a caller who leaves with a %s upgrade behind a slow call ends that call',
    async protocol => {
      let open = 0
      const { url } = await rig.serve((_incoming, response) => {
        open++
        response.on('close', () => open--)
      })
      const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
      const socket = openSocket(guarded)
      socket.write(call('/slow') + call('/b') + call('/c', upgradeTo(protocol)))
      await expect.poll(() => open).toBe(1)
      socket.end()
      await expect.poll(() => open).toBe(0)
    },
  )

  test('Fastify, which would give up after ten seconds, does not bound how long a shutdown may take', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    expect(guarded.gateway.initialConfig.pluginTimeout).toBe(0)
  })

  test.each(['h2c', 'websocket'])('an unanswered %s upgrade does not outlive the shutdown timeout', async protocol => {
    const { url } = await rig.serve(() => {})
    const gateway = { routes: [{ to: url }], shutdown: { timeout: '500ms' } }
    const guarded = await rig.guard({ gateway })
    const socket = openSocket(guarded)
    socket.write(call('/', upgradeTo(protocol)))
    await new Promise(resolve => setTimeout(resolve, 100))
    const begun = performance.now()
    await guarded.gateway.close()
    expect(performance.now() - begun).toBeLessThan(3000)
  })
})
