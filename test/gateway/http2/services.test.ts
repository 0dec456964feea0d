import { once } from 'node:events'
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, framesIn, frameTypes } from '../../helpers/http2-frames.ts'
import { Http2Caller } from '../../helpers/http2-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

type Answer = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void

/** A service that speaks HTTP/2 only. */
async function serve(answer: Answer, options = {}) {
  const server: Http2Server = createServer(options)
  const sessions: ServerHttp2Session[] = []
  const seen: Record<string, unknown>[] = []
  server.on('session', session => sessions.push(session))
  server.on('sessionError', () => {})
  server.on('stream', (stream, headers) => {
    seen.push(headers)
    stream.on('error', () => {})
    answer(stream, headers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  rig.later(() => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sessions, seen }
}

const guard = (url: string, more: object = {}) =>
  rig.guard({ gateway: { routes: [{ to: url, protocol: 'http2', ...more }] } })

const echo: Answer = stream => {
  stream.respond({ ':status': 200 })
  stream.pipe(stream)
}

describe('a service that speaks HTTP/2', () => {
  test('a service that speaks HTTP/2 gets many calls at a time on one connection, from callers of both versions', async () => {
    const waiting: ServerHttp2Stream[] = []
    const { url, sessions, seen } = await serve(stream => waiting.push(stream))
    const guarded = await guard(url)
    const caller = new Http2Caller(guarded.url)
    rig.later(() => caller.close())
    const old = Array.from({ length: 30 }, () => fetch(`${guarded.url}/a?b=1`).then(answer => answer.text()))
    const calls = Array.from({ length: 30 }, () => caller.call({ ':path': '/a?b=1' }).then(({ body }) => body))
    await expect.poll(() => waiting.length, { timeout: 15_000 }).toBe(60)
    for (const stream of waiting) {
      stream.respond({ ':status': 200 })
      stream.end('served')
    }
    expect(new Set(await Promise.all([...old, ...calls]))).toEqual(new Set(['served']))
    expect(sessions).toHaveLength(1)
    expect(seen[0]).toMatchObject({ ':method': 'GET', ':path': '/a?b=1', ':scheme': 'http', te: 'trailers' })
    expect(seen[0]).toMatchObject({ ':authority': new URL(guarded.url).host, 'x-forwarded-proto': 'http' })
    expect(seen[0]).not.toHaveProperty('host')
  })

  test('a service that speaks HTTP/2 gets bodies of 20 MB, and its answers reach callers of HTTP/1.1 whole', async () => {
    const { url } = await serve(echo)
    const guarded = await guard(url)
    const pieces = Array(20).fill(Buffer.alloc(1_000_000, 'd'))
    const init = { method: 'POST', body: Readable.toWeb(Readable.from(pieces)), duplex: 'half' } as RequestInit
    expect((await (await fetch(`${guarded.url}/a`, init)).arrayBuffer()).byteLength).toBe(20_000_000)
  })

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
    'a service that speaks HTTP/2 gets calls with the method %s',
    async method => {
      const { url, seen } = await serve(stream => {
        stream.respond({ ':status': 200, 'content-length': 6, 'set-cookie': ['a=1', 'b=2'] })
        stream.end('served')
      })
      const guarded = await guard(url)
      const answer = await fetch(`${guarded.url}/a`, { method })
      expect([answer.status, await answer.text()]).toEqual([200, method === 'HEAD' ? '' : 'served'])
      expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
      expect(seen[0]).toMatchObject({ ':method': method })
    },
  )

  test('a service that speaks HTTP/2 gets trailers behind a body, and sends them behind its answer', async () => {
    const trailers: unknown[] = []
    const { url } = await serve(stream => {
      stream.on('trailers', received => trailers.push(received['x-sum']))
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-back': '2' }))
      stream.resume().on('end', () => stream.end('served'))
    })
    const guarded = await guard(url)
    const caller = new Http2Caller(guarded.url)
    rig.later(() => caller.close())
    const stream = caller.session.request({ ':path': '/a', ':method': 'POST' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }))
    stream.end('body')
    const [received] = await once(stream.resume(), 'trailers')
    expect([trailers, received['x-back']]).toEqual([['1'], '2'])
  })

  test('a service of HTTP/2 that takes few calls at a time gets more connections', async () => {
    const waiting: ServerHttp2Stream[] = []
    const { url, sessions } = await serve(stream => waiting.push(stream), { settings: { maxConcurrentStreams: 2 } })
    const guarded = await guard(url)
    const calls = Array.from({ length: 8 }, () => fetch(guarded.url).then(({ status }) => status))
    const answer = (): void => {
      for (const stream of waiting.splice(0)) {
        stream.respond({ ':status': 200 })
        stream.end()
      }
    }
    rig.later(() => clearInterval(timer))
    const timer = setInterval(answer, 20)
    expect(await Promise.all(calls)).toEqual(Array(8).fill(200))
    expect(sessions.length).toBeGreaterThan(0)
  })

  test('a service of HTTP/2 that goes away finishes its calls, and the next ones get a new connection', async () => {
    const waiting: ServerHttp2Stream[] = []
    const { url, sessions } = await serve((stream, headers) => {
      if (headers[':path'] === '/slow') waiting.push(stream)
      else stream.respond({ ':status': 200 }, { endStream: true })
    })
    const guarded = await guard(url)
    const slow = fetch(`${guarded.url}/slow`).then(answer => answer.text())
    await expect.poll(() => waiting.length).toBe(1)
    sessions[0]!.close()
    await expect.poll(async () => (await fetch(guarded.url, { method: 'POST' })).status).toBe(200)
    expect(sessions).toHaveLength(2)
    waiting[0]!.respond({ ':status': 200 })
    waiting[0]!.end('whole')
    expect(await slow).toBe('whole')
  })

  test('a call whose stream a service of HTTP/2 refuses is sent once more, for any method', async () => {
    let calls = 0
    const { url } = await serve(stream => {
      if (calls++ === 0) stream.close(7)
      else stream.respond({ ':status': 200 }, { endStream: true })
    })
    const guarded = await guard(url)
    expect((await fetch(guarded.url, { method: 'POST' })).status).toBe(200)
    expect(calls).toBe(2)
  })

  test.each([
    ['answers', 200],
    ['fails', 500],
    ['is silent', undefined],
  ])('a service that speaks HTTP/2 is health-checked over HTTP/2, and %s', async (_, status) => {
    const { url, seen } = await serve((stream, { ':path': path }) => {
      if (path !== '/up') stream.respond({ ':status': 200 }, { endStream: true })
      else if (status !== undefined) stream.respond({ ':status': status }, { endStream: true })
    })
    const other = await rig.serve((_request, response) => response.end('other'))
    const check = { path: '/up', interval: '100ms', timeout: '100ms' }
    const guarded = await rig.guard({
      gateway: {
        routes: [
          { to: url, protocol: 'http2', health: { failures: 1, check } },
          { path: '/o', to: other.url },
        ],
      },
    })
    await expect
      .poll(() => seen.filter(headers => headers[':path'] === '/up').length, { timeout: 5000 })
      .toBeGreaterThan(2)
    expect((await fetch(`${guarded.url}/a`)).status).toBe(200)
    expect((await fetch(`${guarded.url}/o`)).status).toBe(200)
  })

  test('a call to a service of HTTP/2 ends when the caller leaves, and other calls of its connection do not', async () => {
    const waiting: ServerHttp2Stream[] = []
    const { url } = await serve(stream => waiting.push(stream))
    const guarded = await guard(url)
    const leaving = new AbortController()
    const left = fetch(`${guarded.url}/a`, { signal: leaving.signal }).catch(() => 'left')
    await expect.poll(() => waiting.length).toBe(1)
    const stays = fetch(`${guarded.url}/b`).then(answer => answer.text())
    await expect.poll(() => waiting.length).toBe(2)
    leaving.abort()
    await expect.poll(() => waiting[0]!.destroyed).toBe(true)
    expect(await left).toBe('left')
    waiting[1]!.respond({ ':status': 200 })
    waiting[1]!.end('whole')
    expect(await stays).toBe('whole')
  })
})

describe('a service that answers garbage over HTTP/2', () => {
  const settings = frame('settings', 0, 0)
  const ok = block([[':status', '200']])
  const headers = (stream: number, flag: number, payload = ok): Buffer => frame('headers', flag, stream, payload)
  const cases: [what: string, status: number, answer: (socket: Socket) => void][] = [
    ['bytes that are no frames', 502, socket => socket.write('garbage '.repeat(100))],
    ['HTTP/1.1', 502, socket => socket.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')],
    ['nothing, and closes', 502, socket => socket.end()],
    ['nothing, and resets', 502, socket => socket.resetAndDestroy()],
    ['GOAWAY at once', 502, socket => socket.write(Buffer.concat([settings, frame('goaway', 0, 0, Buffer.alloc(8))]))],
    [
      'GOAWAY with an error',
      502,
      socket => socket.write(Buffer.concat([settings, frame('goaway', 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]))])),
    ],
    [
      'RST_STREAM with PROTOCOL_ERROR',
      502,
      socket => socket.write(Buffer.concat([settings, frame('reset', 0, 1, Buffer.from([0, 0, 0, 1]))])),
    ],
    [
      'RST_STREAM with CANCEL',
      502,
      socket => socket.write(Buffer.concat([settings, frame('reset', 0, 1, Buffer.from([0, 0, 0, 8]))])),
    ],
    [
      'a body without headers',
      502,
      socket => socket.write(Buffer.concat([settings, frame('data', 1, 1, Buffer.from('x'))])),
    ],
    [
      'headers that cannot be decoded',
      502,
      socket => socket.write(Buffer.concat([settings, headers(1, 5, Buffer.alloc(9, 0xff))])),
    ],
    [
      'headers without a status',
      502,
      socket => socket.write(Buffer.concat([settings, headers(1, 5, block([['x-a', '1']]))])),
    ],
    [
      'a status that is none',
      502,
      socket => socket.write(Buffer.concat([settings, headers(1, 5, block([[':status', 'abc']]))])),
    ],
    [
      'half a frame',
      504,
      socket => socket.write(Buffer.concat([settings, headers(1, flags.endHeaders).subarray(0, 11)])),
    ],
    [
      'a frame that is too large, after a while',
      502,
      socket => {
        socket.write(settings)
        setTimeout(() => socket.write(Buffer.from('ffffff0909ffffffff'.repeat(20), 'hex')), 200)
      },
    ],
    [
      'PING of five bytes',
      502,
      socket => socket.write(Buffer.concat([settings, frame('ping', 0, 0, Buffer.alloc(5))])),
    ],
    ['settings and nothing else', 504, socket => socket.write(settings)],
    ['nothing at all', 504, () => {}],
  ]

  test.each(cases)(
    'a garbage answer over HTTP/2 (%s) gives a %i with a clear problem, and other services are served',
    async (_, status, answer) => {
      const url = await rig.serveRaw(socket => {
        socket.once('data', () => answer(socket))
      })
      const good = await serve(echo)
      const guarded = await rig.guard({
        gateway: {
          timeouts: { headers: '700ms' },
          routes: [
            // what is a 502 does not wait for the timeout
            { path: '/bad', to: url, protocol: 'http2', timeouts: { headers: status === 502 ? '20s' : '700ms' } },
            { path: '/again', to: url, protocol: 'http2' },
            { path: '/good', to: good.url, protocol: 'http2' },
          ],
        },
      })
      const bad = await fetch(`${guarded.url}/bad`)
      expect([bad.status, bad.headers.get('content-type')]).toEqual([status, 'application/problem+json'])
      expect(await bad.json()).toMatchObject({ status, detail: expect.stringMatching(/^The service /) })
      const posted = await fetch(`${guarded.url}/again`, { method: 'POST', body: 'x' })
      expect([502, 504]).toContain(posted.status)
      expect((await fetch(`${guarded.url}/good`)).status).toBe(200)
    },
  )

  test('garbage in the middle of an answer over HTTP/2 aborts only that answer', async () => {
    const url = await rig.serveRaw(socket => {
      socket.once('data', () => {
        const begun = Buffer.concat([headers(1, flags.endHeaders), frame('data', 0, 1, Buffer.from('half'))])
        socket.write(Buffer.concat([settings, begun]))
        setTimeout(() => socket.write('garbage '.repeat(100)), 50)
      })
    })
    const guarded = await guard(url, { timeouts: { body: '20s' } })
    const begun = performance.now()
    const answer = await fetch(guarded.url)
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
    expect(performance.now() - begun).toBeLessThan(10_000)
  })

  test('a quiet service is not suspected: a call that waits keeps its connection, and the service gets no PING', async () => {
    const pings: number[] = []
    const { url } = await serve(stream =>
      setTimeout(() => stream.respond({ ':status': 200 }, { endStream: true }), 2500),
    )
    const through = await rig.serveRaw(socket => {
      const far = connect(Number(new URL(url).port), '127.0.0.1')
      socket.on('data', piece => {
        for (const { type } of framesIn(piece)) if (type === frameTypes.ping) pings.push(type)
      })
      socket.pipe(far).pipe(socket)
      far.on('error', () => {})
    })
    const guarded = await guard(through)
    expect((await fetch(guarded.url)).status).toBe(200)
    expect(pings).toEqual([])
  })
})
