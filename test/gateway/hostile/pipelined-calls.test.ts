import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

describe('calls of a caller who left', () => {
  const large = Buffer.alloc(16 * 1024 * 1024, 'x')

  test('pipelined calls take one connection to the service at a time and end with their caller', async () => {
    let [open, most] = [0, 0]
    const { url, received } = await rig.serve((_incoming, response) => {
      most = Math.max(most, ++open)
      response.on('close', () => open--)
      response.end(large)
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const socket = openSocket(guarded)
    socket.write(call('/large').repeat(300))
    await once(socket, 'readable')
    await expect.poll(() => open).toBe(1)
    socket.destroy()
    await expect.poll(() => open).toBe(0)
    expect([most, received.length <= 2]).toEqual([1, true])
  })

  test('a caller who stays gets the answers of 300 pipelined calls', async () => {
    const { url, received } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(guarded.port, call('/a').repeat(299) + call('/a', ['Connection: close']))
    expect([statusesIn(answer).length, received.length]).toEqual([300, 300])
  })
})

describe('a call behind the last one of its connection', () => {
  const upload = 'Content-Length: 3\r\n'
  test.each([
    ['a call without a Host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['OPTIONS * without a Host', 'OPTIONS * HTTP/1.1\r\n\r\n'],
    ['a POST without a Host', `POST /a HTTP/1.1\r\n${upload}\r\nabc`],
    ['a call with Connection: close', call('/a', ['Connection: close'])],
    ['a call of HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: a\r\n\r\n'],
    ['an expectation that is not met', `POST /a HTTP/1.1\r\nHost: a\r\nExpect: x\r\n${upload}\r\nabc`],
    ['a call with two Hosts', call('/a', ['Host: b', 'Connection: close'])],
    ['CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['bytes that are no call', 'nonsense\r\n\r\n'],
  ])(
    'a call behind the last one of its connection is not served after %s, and nothing is left of it',
    async (_, first) => {
      for (const pieces of [
        [first + call('/behind')],
        [first, call('/behind')],
        [call('/z') + first + call('/behind')],
      ]) {
        const { url, received } = await rig.serve((_incoming, response) => {
          response.end(Buffer.alloc(4 * 1024 * 1024))
        })
        const { port, limiter } = await rig.guard({
          rules: [{ id: 'held', algorithm: 'concurrency', limit: 10 }],
          gateway: { routes: [{ to: url }] },
        })
        const socket = openSocket({ port })
        for (const piece of pieces) socket.write(piece)
        await new Promise(resolve => setTimeout(resolve, 50))
        socket.destroy()
        await expect
          .poll(() => limiter.peek({ method: 'GET', path: '/' }).then(({ decisions }) => decisions[0]?.remaining))
          .toBe(10)
        expect(received.map(({ url: target }) => target)).not.toContain('/behind')
      }
    },
  )
})
