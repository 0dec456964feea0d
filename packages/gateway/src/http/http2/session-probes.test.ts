import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { flags, frame, framesIn, frameTypes, get, preface } from '@test/http2-frames'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { CallerSessions } from '../../inbound/http2/caller-sessions.ts'

const closing: (() => unknown)[] = []
afterAll(() => {
  for (const close of closing.splice(0)) close()
})

/** A server whose calls never end, and a caller of it that has begun one. */
async function startCall() {
  const answers: ServerResponse[] = []
  const listener = (_request: unknown, response: ServerResponse): void => {
    answers.push(response)
    response.write('begun')
  }
  const sessions = new CallerSessions(listener, {
    isProxy: () => false,
    limits: { headersBytes: 16_384 },
    idleMs: 60_000,
    refuseExpectation: listener,
  })
  const server = createServer()
  const connections: Socket[] = []
  server.on('connection', socket => connections.push(socket))
  server.on('clientError', (error, socket) => {
    if (!sessions.take(error, socket as Socket)) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  closing.push(() => {
    socket.destroy()
    server.close()
    server.closeAllConnections()
    for (const connection of connections) connection.destroy()
  })
  const pieces: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', piece => pieces.push(piece))
  socket.write(Buffer.concat([preface, frame('settings', 0, 0), frame('headers', 5, 1, get)]))
  await vi.waitFor(() => expect(answers).toHaveLength(1), 5000)
  const received = (type: keyof typeof frameTypes) =>
    framesIn(Buffer.concat(pieces)).filter(one => one.type === frameTypes[type])
  return { socket, received, call: answers[0]!, connection: connections[0]! }
}

/** What ends a connection, while Node reports only some of it. */
const errors: [name: string, bytes: Buffer][] = [
  ['DATA on stream 0', frame('data', 0, 0, Buffer.from('x'))],
  ['SETTINGS of five bytes', frame('settings', 0, 0, Buffer.alloc(5))],
  ['PING of five bytes', frame('ping', 0, 0, Buffer.alloc(5))],
  ['CONTINUATION without HEADERS', frame('continuation', flags.endHeaders, 1)],
  ['a header block that cannot be decoded', frame('headers', 5, 3, Buffer.alloc(9, 0xff))],
  ['a frame beyond the maximum size', Buffer.alloc(100, 0xff)],
  ['WINDOW_UPDATE by 0', frame('windowUpdate', 0, 0, Buffer.alloc(4))],
  ['HEADERS on stream 0', frame('headers', 5, 0, get)],
  ['a window that is too large', frame('windowUpdate', 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))],
  ['a GOAWAY with an error', frame('goaway', 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]))],
]

describe.concurrent('a connection of HTTP/2 ends within a second, and its calls with it, after', () => {
  test.each(errors)('%s', async (_, bytes) => {
    const { socket, received, call } = await startCall()
    const closed = once(socket, 'close')
    socket.write(bytes)
    await closed
    expect(call.destroyed).toBe(true)
    expect(received('goaway')).toHaveLength(1)
  })

  test.each(errors)('%s from a caller that leaves at once', async (_, bytes) => {
    const { socket, call, connection } = await startCall()
    socket.end(bytes)
    await vi.waitFor(() => expect([call.destroyed, connection.destroyed]).toEqual([true, true]), 3000)
  })
})

test('a PING that a caller of HTTP/2 does not answer is sent again at growing intervals', async () => {
  const { socket, received, call } = await startCall()
  await vi.waitFor(() => expect(received('ping')).toHaveLength(3), 6000)
  await pause(1500)
  expect(received('ping')).toHaveLength(3)
  expect([call.destroyed, socket.destroyed]).toEqual([false, false])
})

test('a quiet caller of HTTP/2 keeps its connection and gets one PING for each time that it has sent something', async () => {
  const { socket, received, call } = await startCall()
  const answered = new Set<object>()
  socket.on('data', () => {
    for (const { flag, payload } of received('ping').slice(answered.size)) {
      answered.add(payload)
      if (flag === 0) socket.write(frame('ping', flags.ack, 0, payload))
    }
  })
  await pause(2500)
  expect(received('ping')).toHaveLength(1)
  socket.write(frame('windowUpdate', 0, 0, Buffer.from([0, 0, 0, 1])))
  await pause(2000)
  expect(received('ping')).toHaveLength(2)
  expect([call.destroyed, socket.destroyed]).toEqual([false, false])
})
