import { once } from 'node:events'
import { constants, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { readUpstreams } from '../../../packages/gateway/src/telemetry/server-reports.ts'
import { GatewayRig, sendRaw } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, framesIn, frameTypes, openRaw } from '../../helpers/http2-frames.ts'
import { Http2Caller } from '../../helpers/http2-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

/**
 * All header names that Node knows by a constant, and so may treat in a way of its own; and one that every object has. Those
 * that frame a message are refused by the parser of HTTP/1.1.
 */
const knownNames = Object.entries(constants)
  .filter(([key]) => key.startsWith('HTTP2_HEADER_'))
  .map(([, name]) => String(name))
  .filter(name => !name.startsWith(':') && !['content-length', 'transfer-encoding', 'upgrade'].includes(name))
  .concat('constructor')

function call(url: string): Http2Caller {
  const caller = new Http2Caller(url)
  rig.later(() => caller.close())
  return caller
}

/** A gateway in front of a service of HTTP/1.1 that answers with these bytes. */
async function guardBytes(answerTo: (path: string) => string) {
  const to = await rig.serveRaw(socket => {
    socket.on('data', bytes => {
      const [, path = ''] = bytes.toString('latin1').split(' ')
      socket.end(answerTo(path), 'latin1')
    })
  })
  return await rig.guard({ gateway: { routes: [{ to, health: { failures: 1000 } }] } })
}

/** A gateway in front of a service of HTTP/2 that reads all of a call before it answers. */
async function guardHttp2(gateway: object = {}) {
  const server = createServer({ maxHeaderListPairs: 2000, settings: { maxHeaderListSize: 2 ** 20 } })
  const sockets = new Set<Socket>()
  const trailers: Record<string, unknown>[] = []
  const heads: Record<string, unknown>[] = []
  server.on('connection', socket => sockets.add(socket))
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    heads.push(headers)
    stream.on('error', () => {})
    stream.on('trailers', received => trailers.push(received))
    stream.resume().on('end', () => {
      if (stream.destroyed) return
      stream.respond({ ':status': 200 })
      stream.end('served')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  rig.later(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const guarded = await rig.guard({
    gateway: { timeouts: { headers: '1s' }, ...gateway, routes: [{ to, protocol: 'http2' }] },
  })
  return { ...guarded, trailers, heads }
}

describe('a header that comes twice where HTTP/2 has room for one value', () => {
  test('a repeated single-value header in the trailers of an HTTP/1.1 answer does not break the answer over HTTP/2', async () => {
    const { url } = await guardBytes(path => {
      const name = path.slice(1)
      const lines = [`${name}: 1`, `${name}: 2`, 'x-sum: 3']
      return ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '2', 'ok', '0', ...lines, '', ''].join('\r\n')
    })
    const caller = call(url)
    for (const name of knownNames) {
      const { status, body, trailers } = await caller.call({ ':path': `/${name}` })
      expect([name, status, body, trailers['x-sum']]).toEqual([name, 200, 'ok', '3'])
    }
  })

  test('a repeated single-value header in an interim answer of HTTP/1.1 does not break the answer over HTTP/2', async () => {
    const { url } = await guardBytes(path => {
      const name = path.slice(1)
      const interim = ['HTTP/1.1 103 Early Hints', `${name}: 1`, `${name}: 2`, 'link: </a>', '', ''].join('\r\n')
      return `${interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`
    })
    const caller = call(url)
    for (const name of knownNames) {
      const { status, body, interims } = await caller.call({ ':path': `/${name}` })
      expect([name, status, body, interims.length]).toEqual([name, 200, 'ok', 1])
    }
  })

  test('a repeated single-value header in the trailers of a caller does not delay a service of HTTP/2', async () => {
    const { port, trailers } = await guardHttp2()
    for (const name of knownNames) {
      const lines = [`${name}: 1`, `${name}: 2`, 'x-sum: 3']
      const head = ['POST /a HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', 'Connection: close', '']
      const answer = await sendRaw(port, [...head, '2', 'ok', '0', ...lines, '', ''].join('\r\n'))
      expect([name, answer.slice(9, 12)]).toEqual([name, '200'])
      expect(trailers.pop()).toMatchObject({ 'x-sum': '3' })
    }
  })
})

describe('an answer that a service of HTTP/2 resets without an error before its end', () => {
  const settings = frame('settings', 0, 0)
  const head = frame('headers', flags.endHeaders, 1, block([[':status', '200']]))
  const half = frame('data', 0, 1, Buffer.from('half'))
  const noError = frame('reset', 0, 1, Buffer.alloc(4))

  test.each([
    ['with a part of its body', Buffer.concat([settings, head, half, noError])],
    ['with its headers only', Buffer.concat([settings, head, noError])],
  ])('an answer that HTTP/2 resets early (%s) is not passed on as complete', async (_, bytes) => {
    const to = await rig.serveRaw(socket => {
      socket.once('data', () => socket.write(bytes))
    })
    const guard = () => rig.guard({ gateway: { routes: [{ to, protocol: 'http2' }] } })
    const answer = await sendRaw((await guard()).port, 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).not.toMatch(/\r\n0\r\n\r\n$/)
    expect((await call((await guard()).url).call({ ':path': '/a' })).reset).toBe(constants.NGHTTP2_INTERNAL_ERROR)
  })

  test('an answer that HTTP/2 resets after its end is complete', async () => {
    const end = frame('data', flags.endStream, 1, Buffer.from(' and half'))
    const to = await rig.serveRaw(socket => {
      socket.once('data', () => socket.write(Buffer.concat([settings, head, half, end, noError])))
    })
    const { url } = await rig.guard({ gateway: { routes: [{ to, protocol: 'http2' }] } })
    expect(await (await fetch(url, { method: 'POST', body: 'x' })).text()).toBe('half and half')
  })
})

test('a header that has the name of a property of every object reaches a service of HTTP/2 as it is', async () => {
  const { port, heads } = await guardHttp2()
  await sendRaw(port, 'GET /a HTTP/1.1\r\nHost: a\r\nConstructor: mine\r\nConnection: close\r\n\r\n')
  expect(heads[0]).toHaveProperty('constructor', 'mine')
})

test.each(['post', 'Post', 'get', 'trace', 'connect', 'PRI', 'FOO', `X${'X'.repeat(100)}`, "GET'", '!'])(
  'the method %s, which HTTP/1.1 could not bring, reaches no service',
  async method => {
    const service = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: service.url }] } })
    const { socket, received } = await openRaw(guarded.port)
    rig.later(() => socket.destroy())
    const names = [':method', ':scheme', ':authority', ':path']
    const values = [method, 'http', 'a.test', '/a']
    socket.write(frame('headers', 5, 1, block(names.map((name, at) => [name, values[at]!]))))
    const body = () =>
      framesIn(received())
        .filter(({ type }) => type === frameTypes.data)
        .map(({ payload }) => payload.toString())
        .join('')
    await expect.poll(body).toContain('"status":501')
    expect(service.received).toHaveLength(0)
  },
)

test.each([
  ['a 205 with a body', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nok', 205, ''],
  [
    'a status of gRPC in front of a body',
    'HTTP/1.1 200 OK\r\ngrpc-status: 0\r\nContent-Length: 2\r\n\r\nok',
    200,
    'ok',
  ],
  [
    'a status of gRPC in front of a body without a length',
    'HTTP/1.1 200 OK\r\ngrpc-status: 0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    200,
    'ok',
  ],
])('%s reaches a caller of HTTP/2 as an answer that it can read', async (_, bytes, status, body) => {
  const { url } = await guardBytes(() => bytes)
  const answer = await call(url).call({ ':path': '/a' })
  expect([answer.status, answer.body, answer.reset]).toEqual([status, body, 0])
})

describe('headers as large as the limits allow', () => {
  const large = Array.from({ length: 100 }, (_, at) => `x-${at}: ${'y'.repeat(1000)}\r\n`).join('')

  test('headers as large as the limits allow reach a caller of HTTP/2, whose connection stays', async () => {
    const to = await rig.serveRaw(socket => {
      socket.on('data', () => socket.end(`HTTP/1.1 200 OK\r\n${large}Content-Length: 2\r\n\r\nok`))
    })
    const { url } = await rig.guard({ gateway: { limits: { responseHeaders: '1MiB' }, routes: [{ to }] } })
    const caller = new Http2Caller(url, { maxHeaderListPairs: 10_000, settings: { maxHeaderListSize: 2 ** 24 } })
    rig.later(() => caller.close())
    for (let calls = 0; calls < 2; calls++) {
      const { status, body } = await caller.call({ ':path': '/a' })
      expect([status, body]).toEqual([200, 'ok'])
    }
  })

  test('headers as large as the limits allow reach a service of HTTP/2', async () => {
    const { port, heads } = await guardHttp2({ limits: { headers: '128KiB' } })
    const head = `GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${large}\r\n`
    expect((await sendRaw(port, head)).slice(9, 12)).toBe('200')
    expect(heads[0]).toHaveProperty('x-99')
  })

  test('headers that a service of HTTP/2 rejects do not count as its failure', async () => {
    const { port, limiter } = await guardHttp2({ limits: { headers: '128KiB' } })
    const lines = Array.from({ length: 3000 }, (_, at) => `${at.toString(36)}:\r\n`).join('')
    for (let calls = 0; calls < 10; calls++) {
      const answer = await sendRaw(port, `GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`)
      expect(answer.slice(9, 12)).toBe('502')
    }
    expect(readUpstreams(limiter)[0]?.addresses[0]?.state).toBe('healthy')
  })
})
