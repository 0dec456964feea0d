import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { flags, frame, framesIn, frameTypes, get, openRaw, preface } from '@test/http2-frames'
import { afterEach, expect, test } from 'vitest'
import { CallerSessions } from './caller-sessions.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

const maxStream = 2 ** 31 - 1
const largeWindow = Buffer.from([0x7f, 0xff, 0, 0])
const settingsAck = frame('settings', flags.ack, 0)
const opened = (id: number): Buffer => frame('headers', flags.endHeaders | flags.endStream, id, get)

/** Sessions of callers, or of proxies, in front of a listener. */
async function start(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  isProxy = false,
): Promise<{ sessions: CallerSessions; port: number }> {
  const sessions = new CallerSessions(listener, {
    isProxy: () => isProxy,
    limits: { headersBytes: 16_384 },
    refuseExpectation: listener,
    idleMs: 60_000,
  })
  const server = createServer()
  server.on('clientError', (error, socket) => sessions.take(error, socket as Socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close())
  return { sessions, port: (server.address() as AddressInfo).port }
}

async function open(port: number, greets = true) {
  const raw = await openRaw(port, greets)
  closing.push(() => raw.socket.destroy())
  const frames = () => framesIn(raw.received())
  /** The last stream of each GOAWAY that came. */
  const announced = () =>
    frames().flatMap(({ type, payload }) => (type === frameTypes.goaway ? [payload.readUInt32BE(0)] : []))
  const answered = () =>
    frames().flatMap(({ type, flag, stream }) => (type === frameTypes.data && flag & flags.endStream ? [stream] : []))
  return { ...raw, frames, announced, answered }
}

test('calls that are sent before their caller reads the announced end are served', async () => {
  const { sessions, port } = await start((_request, response) => response.end('served'))
  const { socket, announced, answered } = await open(port)
  socket.write(Buffer.concat([settingsAck, opened(1)]))
  await expect.poll(answered).toEqual([1])
  sessions.announceClosing()
  for (const id of [3, 5, 7]) {
    socket.write(opened(id))
    await pause(5)
  }
  await expect.poll(answered).toEqual([1, 3, 5, 7])
  expect(announced()).toEqual([maxStream])
  sessions.closeIdle()
  await expect.poll(() => announced().slice(0, 2)).toEqual([maxStream, 7])
})

test('the end is announced behind the settings to callers whose connections begin after the announcement', async () => {
  const { sessions, port } = await start((_request, response) => response.end('served'))
  const late = await open(port, false)
  const never = await open(port)
  sessions.announceClosing()
  late.socket.write(Buffer.concat([preface, frame('settings', 0, 0), opened(1)]))
  await expect.poll(late.answered).toEqual([1])
  expect(late.announced()).toEqual([])
  late.socket.write(settingsAck)
  // the server asks by PING whether its settings have arrived
  await expect.poll(() => late.frames().some(({ type }) => type === frameTypes.ping)).toBe(true)
  const { payload } = late.frames().find(({ type }) => type === frameTypes.ping)!
  late.socket.write(frame('ping', flags.ack, 0, payload))
  await expect.poll(late.announced).toEqual([maxStream])
  expect(late.frames()[0]!.type).toBe(frameTypes.settings)
  // one that acknowledges nothing is only told when it is closed
  await expect.poll(() => never.frames()[0]?.type).toBe(frameTypes.settings)
  expect(never.announced()).toEqual([])
})

test.each([false, true])('an announced end does no harm while its caller reads nothing (proxy: %s)', async isProxy => {
  const responses: ServerResponse[] = []
  const { sessions, port } = await start((_request, response) => {
    responses.push(response)
    // more than the system buffers
    response.end(Buffer.alloc(30_000_000))
  }, isProxy)
  const { socket, announced, frames } = await open(port)
  const window = Buffer.concat([Buffer.from([0, 4]), largeWindow])
  socket.write(Buffer.concat([frame('settings', 0, 0, window), frame('windowUpdate', 0, 0, largeWindow), settingsAck]))
  await expect.poll(() => frames().length).toBeGreaterThan(1)
  socket.pause()
  socket.write(opened(1))
  await expect.poll(() => responses.length).toBe(1)
  await pause(100)
  for (let times = 0; times < 5; times++) sessions.announceClosing()
  socket.resume()
  await expect.poll(() => responses[0]!.writableFinished, { timeout: 10_000 }).toBe(true)
  // all frames can be read, and none of them is a part of one
  await expect.poll(() => frames().findLast(({ type }) => type === frameTypes.data)?.flag).toBe(flags.endStream)
  for (const { type } of frames()) expect(Object.values(frameTypes)).toContain(type)
  expect(new Set([...announced(), maxStream])).toEqual(new Set([maxStream]))
})

test('an end is announced to callers who leave at the same time', async () => {
  const { sessions, port } = await start((_request, response) => response.end('served'))
  for (let times = 0; times < 20; times++) {
    const { socket, answered } = await open(port)
    socket.write(Buffer.concat([settingsAck, opened(1)]))
    await expect.poll(answered, { interval: 1 }).toEqual([1])
    if (times % 2 === 0) socket.resetAndDestroy()
    else socket.end()
    if (times % 3 === 0) await pause(1)
    sessions.announceClosing()
  }
})

test('a proxy that passes on hundreds of resets is asked for another connection and loses no call', async () => {
  const waiting: ServerResponse[] = []
  const { port } = await start((_request, response) => waiting.push(response), true)
  const { socket, announced, answered } = await open(port)
  socket.write(Buffer.concat([settingsAck, opened(1)]))
  let count = 0
  const reset = async (total: number): Promise<void> => {
    for (const until = count + total; count < until; ) {
      const ids = Array.from({ length: 50 }, (_, at) => 3 + 2 * (count + at))
      count += ids.length
      const code = Buffer.from([0, 0, 0, 8])
      socket.write(Buffer.concat(ids.flatMap(id => [opened(id), frame('reset', 0, id, code)])))
      await Promise.race([expect.poll(() => waiting.length, { interval: 1 }).toBe(count + 1), pause(50)])
    }
  }
  await reset(400)
  await expect.poll(announced).toEqual([maxStream])
  // Node counts those that come before the proxy has read this, and ends a connection with all its calls after a thousand
  await reset(800)
  expect(announced()).toHaveLength(2)
  waiting[0]!.end('served')
  await expect.poll(answered).toEqual([1])
})
