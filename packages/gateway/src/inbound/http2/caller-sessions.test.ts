import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { frame, get, preface } from '@test/http2-frames'
import { afterEach, expect, test } from 'vitest'
import { CallerSessions } from './caller-sessions.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server of HTTP/1.1 whose timeouts are short, and that gives connections of HTTP/2 away. */
async function start(
  idleMs: number,
  listener: ConstructorParameters<typeof CallerSessions>[0] = (request, response) => response.end(request.url),
): Promise<number> {
  const sessions = new CallerSessions(listener, {
    isProxy: () => false,
    limits: { headersBytes: 16_384 },
    refuseExpectation: listener,
    idleMs,
  })
  const server = createServer({ connectionsCheckingInterval: 50, headersTimeout: 400, requestTimeout: 400 })
  server.on('clientError', (error, socket) => {
    if (!sessions.take(error, socket as Socket)) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

test('a connection of HTTP/2 does not fall under the timeouts for calls of HTTP/1.1', async () => {
  const session = connectHttp2(`http://127.0.0.1:${await start(60_000)}`)
  closing.push(() => session.destroy())
  const call = async (path: string): Promise<string> => {
    let body = ''
    for await (const piece of session.request({ ':path': path }).setEncoding('utf8')) body += piece
    return body
  }
  expect(await call('/a')).toBe('/a')
  await pause(900)
  expect(await call('/b')).toBe('/b')
})

test('a connection of HTTP/2 without calls is closed after a time', async () => {
  const session = connectHttp2(`http://127.0.0.1:${await start(100)}`)
  await once(session.request({ ':path': '/a' }).resume(), 'close')
  await once(session, 'close')
})

test('a caller that reads nothing is disconnected once it has no open call', async () => {
  const open: Socket[] = []
  const listener: ConstructorParameters<typeof CallerSessions>[0] = (request, response) => {
    open.push(request.socket)
    // more than the system buffers
    response.write(Buffer.alloc(30_000_000))
    setTimeout(() => response.destroy(), 50)
  }
  const socket = connect(await start(100, listener), '127.0.0.1').pause()
  closing.push(() => socket.destroy())
  socket.on('error', () => {})
  const window = Buffer.from([0x7f, 0xff, 0, 0])
  socket.write(
    Buffer.concat([
      preface,
      frame('settings', 0, 0, Buffer.concat([Buffer.from([0, 4]), window])),
      frame('windowUpdate', 0, 0, window),
      frame('headers', 5, 1, get),
    ]),
  )
  await expect.poll(() => open.length).toBe(1)
  await expect.poll(() => open[0]!.destroyed, { timeout: 5000 }).toBe(true)
})

test('the preface may come in pieces', async () => {
  const socket = connect(await start(60_000), '127.0.0.1').setNoDelay()
  socket.on('error', () => {})
  closing.push(() => socket.destroy())
  const settings = once(socket, 'data')
  const bytes = Buffer.concat([preface, frame('settings', 0, 0)])
  for (const [from, to] of [
    [0, 1],
    [1, 15],
    [15, 23],
    [23, 30],
    [30, 33],
  ]) {
    socket.write(bytes.subarray(from, to))
    await pause(2)
  }
  expect((await settings)[0][3]).toBe(4)
})
