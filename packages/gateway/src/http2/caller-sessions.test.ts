import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { CallerSessions } from './caller-sessions.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server of HTTP/1.1 whose timeouts are short, and that gives connections of HTTP/2 away. */
async function start(idleMs: number): Promise<number> {
  const sessions = new CallerSessions((request, response) => response.end(request.url), {
    limits: { headersBytes: 16_384 },
    idleMs,
  })
  const server = createServer({ connectionsCheckingInterval: 50, headersTimeout: 200, requestTimeout: 200 })
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
  await pause(600)
  expect(await call('/b')).toBe('/b')
})

test('a connection of HTTP/2 without calls is closed after a time', async () => {
  const session = connectHttp2(`http://127.0.0.1:${await start(100)}`)
  await once(session.request({ ':path': '/a' }).resume(), 'close')
  await once(session, 'close')
})

test('the preface may come byte by byte', async () => {
  const socket = connect(await start(60_000), '127.0.0.1').setNoDelay()
  closing.push(() => socket.destroy())
  for (const byte of Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0')) {
    socket.write(Buffer.from([byte]))
    await pause(1)
  }
  const [settings] = await once(socket, 'data')
  expect((settings as Buffer)[3]).toBe(4)
})
