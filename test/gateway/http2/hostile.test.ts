import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, framesIn, frameTypes, get, openRaw } from '../../helpers/http2-frames.ts'
import { answerOn, Http2Caller } from '../../helpers/http2-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function guard(gateway: object = {}, rules?: object[]) {
  const service = await rig.serve((_request, response) => response.end('served'))
  const guarded = await rig.guard({ ...(rules && { rules }), gateway: { ...gateway, routes: [{ to: service.url }] } })
  return { ...guarded, received: service.received }
}

function call(url: string, options = {}): Http2Caller {
  const caller = new Http2Caller(url, options)
  rig.later(() => caller.close())
  return caller
}

async function raw(port: number) {
  const opened = await openRaw(port)
  rig.later(() => opened.socket.destroy())
  return opened
}

describe('a hostile caller of HTTP/2', () => {
  const headers = (stream: number, flag = 5): Buffer => frame('headers', flag, stream, get)
  const many = (count: number, make: (at: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, at) => make(at)))

  test.each<[string, () => Buffer]>([
    [
      'rapid resets (CVE-2023-44487)',
      () =>
        many(3000, at =>
          Buffer.concat([headers(2 * at + 1), frame('reset', 0, 2 * at + 1, Buffer.from([0, 0, 0, 8]))]),
        ),
    ],
    [
      'headers that never end (CONTINUATION flood)',
      () =>
        Buffer.concat([
          headers(1, flags.endStream),
          many(2000, at => frame('continuation', 0, 1, block([[`x-${at}`, 'y'.repeat(100)]]))),
        ]),
    ],
    ['a flood of PING', () => many(100_000, () => frame('ping', 0, 0, Buffer.alloc(8)))],
    ['a flood of SETTINGS', () => many(100_000, () => frame('settings', 0, 0))],
    [
      'too many settings',
      () =>
        frame(
          'settings',
          0,
          0,
          many(200, () => Buffer.from([0, 3, 0, 0, 0, 1])),
        ),
    ],
    ['frames for streams that never were', () => many(2000, () => frame('data', 0, 99, Buffer.from('x')))],
    ['a frame that is larger than it may be', () => frame('data', 0, 1, Buffer.alloc(100_000))],
    ['no frames at all', () => Buffer.alloc(100, 0xff)],
  ])('a caller of HTTP/2 is disconnected, and others are not affected: %s', async (_, bytes) => {
    const { port, url } = await guard()
    const { socket, received } = await raw(port)
    socket.write(bytes())
    // after it, nothing is read as a call any more
    const isSentAway = () =>
      framesIn(received()).some(({ type, payload }) => type === frameTypes.goaway && payload[7]! > 0)
    await expect.poll(() => socket.closed || isSentAway(), { timeout: 15_000 }).toBe(true)
    expect((await call(url).call({ ':path': '/a' })).status).toBe(200)
  })

  test('calls that are reset at once are still counted', async () => {
    const { port, url, received } = await guard({}, [{ id: 'all', by: 'ip', limit: '20/m' }])
    const { socket } = await raw(port)
    socket.write(
      many(20, at => Buffer.concat([headers(2 * at + 1), frame('reset', 0, 2 * at + 1, Buffer.from([0, 0, 0, 8]))])),
    )
    await expect.poll(async () => (await fetch(url)).status).toBe(503)
    expect(received.length).toBeLessThan(20)
  })
})

describe('a connection of HTTP/2', () => {
  test('a connection of HTTP/2 has at most 128 calls at a time', async () => {
    const waiting: ServerResponse[] = []
    const { url } = await rig.serve((_request, response) => waiting.push(response))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const caller = call(guarded.url)
    const [settings] = await once(caller.session, 'remoteSettings')
    expect(settings.maxConcurrentStreams).toBe(128)
    const { socket, received } = await raw(guarded.port)
    socket.write(Buffer.concat(Array.from({ length: 140 }, (_, at) => frame('headers', 5, 2 * at + 1, get))))
    const refused = () => framesIn(received()).filter(({ type }) => type === frameTypes.reset)
    await expect.poll(() => refused().length).toBe(12)
    expect(new Set(refused().map(({ payload }) => payload[3]))).toEqual(new Set([7]))
    await expect.poll(() => waiting.length).toBe(128)
  })

  test('a connection of HTTP/2 may not send headers beyond limits.headers', async () => {
    const { url } = await guard({ limits: { headers: '4KiB' } })
    const caller = call(url)
    expect((await caller.call({ ':path': '/a', 'x-small': 'x'.repeat(2000) })).status).toBe(200)
    const { status, reset } = await caller.call({ ':path': '/a', 'x-a': 'x'.repeat(3000), 'x-b': 'x'.repeat(3000) })
    expect([status, reset]).toEqual([undefined, 11])
    expect((await caller.call({ ':path': '/a' })).status).toBe(200)
  })

  test('a connection of HTTP/2 counts for limits.connectionsPerCaller', async () => {
    const { url } = await guard({ limits: { connectionsPerCaller: 2 } })
    const callers = [call(url), call(url)]
    for (const caller of callers) expect((await caller.call({ ':path': '/a' })).status).toBe(200)
    const third = call(url)
    await new Promise(resolve => third.session.once('close', resolve))
    expect((await callers[0]!.call({ ':path': '/a' })).status).toBe(200)
  })
})

describe('slow callers of HTTP/2', () => {
  const limits = { minRate: '10KiB', grace: '1s' }

  test('slow callers of HTTP/2 that send too little get a 408, and other calls of their connection go on', async () => {
    const { url } = await rig.serve((incoming, response) => {
      incoming.resume().on('end', () => response.end(incoming.url))
    })
    const guarded = await rig.guard({ gateway: { limits, routes: [{ to: url }] } })
    const caller = call(guarded.url)
    const slow = caller.open({ ':path': '/a', ':method': 'POST', 'content-length': 100 }, true)
    slow.write('x')
    const answer = answerOn(slow)
    const quick = await caller.call({ ':path': '/b', ':method': 'POST' }, 'quick')
    expect(quick.body).toBe('/b')
    expect((await answer).status).toBe(408)
    expect((await caller.call({ ':path': '/c', ':method': 'POST' }, 'more')).body).toBe('/c')
  })

  test('slow callers of HTTP/2 that do not open their window lose their call, and no other', async () => {
    let ended = false
    const { url } = await rig.serve((incoming, response) => {
      if (incoming.url !== '/large') response.end('small')
      else response.end(Buffer.alloc(4_000_000))
      response.once('close', () => {
        ended ||= incoming.url === '/large'
      })
    })
    const guarded = await rig.guard({ gateway: { limits, routes: [{ to: url }] } })
    const caller = call(guarded.url, { settings: { initialWindowSize: 100 } })
    const stalled = caller.open({ ':path': '/large' })
    await once(stalled, 'response')
    await expect.poll(() => ended, { timeout: 10_000 }).toBe(true)
    expect((await caller.call({ ':path': '/a' })).body).toBe('small')
  })

  describe('that claim to speak gRPC', () => {
    const grpc = { ':path': '/slow', ':method': 'POST', 'content-type': 'application/grpc' }

    async function guardSlots() {
      const { url } = await rig.serve((incoming, response) => {
        if (incoming.url === '/quick') response.end('served')
        if (incoming.url === '/begun') response.writeHead(200, { 'content-type': 'application/grpc' }).write('x')
        incoming.resume()
      })
      return await rig.guard({
        gateway: { limits, routes: [{ to: url, connections: { max: 2, queue: { timeout: '3s' } } }] },
      })
    }

    test('slow callers that claim to speak gRPC and send nothing do not block connections to a service', async () => {
      const guarded = await guardSlots()
      const caller = call(guarded.url)
      const slow = [0, 1].map(() => caller.open(grpc, true))
      const answers = slow.map(answerOn)
      for (const stream of slow) stream.write('x')
      await expect.poll(() => guarded.httpStats().upstreams[0]?.inProgress).toBe(2)
      expect(await (await fetch(`${guarded.url}/quick`)).text()).toBe('served')
      const { status, headers } = await Promise.race(answers)
      expect([status, headers['grpc-status']]).toEqual([200, '4'])
    })

    test('callers that claim to speak gRPC keep their connections once their answers have begun', async () => {
      const guarded = await guardSlots()
      const caller = call(guarded.url)
      const streams = [0, 1].map(() => caller.open({ ...grpc, ':path': '/begun' }, true))
      for (const stream of streams) stream.write('x')
      await Promise.all(streams.map(stream => once(stream, 'response')))
      expect((await fetch(`${guarded.url}/quick`)).status).toBe(503)
      expect(streams.map(stream => stream.closed)).toEqual([false, false])
    })

    test('callers of HTTP/1.1 that claim to speak gRPC have the same minimum rate as others', async () => {
      const guarded = await guardSlots()
      const head = 'POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 9\r\n\r\n'
      expect(await sendRaw(guarded.port, `${head}x`)).toMatch(/^HTTP\/1\.1 408 /)
    })
  })
})
