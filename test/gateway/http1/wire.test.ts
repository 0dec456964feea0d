import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function guardEcho(gateway: object = {}, rules?: object[]) {
  const service = await rig.serve((incoming, response) => {
    if (incoming.headers['x-say'] !== undefined) response.end(String(incoming.headers['x-say']))
    else incoming.pipe(response)
  })
  const guarded = await rig.guard({ ...(rules && { rules }), gateway: { ...gateway, routes: [{ to: service.url }] } })
  return { ...guarded, ...service, port: guarded.port, gatewayUrl: guarded.url }
}

const head = (method: string, more: readonly string[] = []): string =>
  `${[`${method} /a HTTP/1.1`, 'Host: a', ...more].join('\r\n')}\r\n\r\n`

describe('on one connection', () => {
  test('calls that follow each other, and calls sent before the first was answered, are answered in order', async () => {
    const { port, received } = await guardEcho()
    const calls = ['one', 'two', 'three'].map(word => head('GET', [`X-Say: ${word}`]))
    const answer = await sendRaw(port, calls.join('') + head('GET', ['X-Say: last', 'Connection: close']))
    expect(statusesIn(answer)).toEqual([200, 200, 200, 200])
    const order = ['one', 'two', 'three', 'last'].map(word => answer.lastIndexOf(word))
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(received).toHaveLength(4)
  })

  test('a chunked body arrives unchanged, also with GET', async () => {
    const { port, received } = await guardEcho()
    const chunked = 'Transfer-Encoding: chunked'
    const body = '3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n'
    for (const method of ['POST', 'GET', 'DELETE']) {
      const answer = await sendRaw(port, head(method, [chunked, 'Connection: close']) + body)
      expect([statusesIn(answer), answer.includes('abcdefg') || /abc[\s\S]*defg/.test(answer)]).toEqual([[200], true])
    }
    expect(received).toHaveLength(3)
  })

  test('a call that is refused leaves the next one readable', async () => {
    const { port } = await guardEcho({}, [{ id: 'all', limit: '1/m' }])
    const body = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    const post = head('POST', [`Content-Length: ${body.length}`]) + body
    const answer = await sendRaw(port, post + post + head('GET', ['Connection: close']))
    expect(statusesIn(answer).filter(status => status !== 200)).toEqual([503, 503])
  })

  test('a caller with Expect: 100-continue gets 100 only if the call is admitted', async () => {
    const { port, received } = await guardEcho({}, [{ id: 'all', limit: '1/m' }])
    const ask = head('POST', ['Expect: 100-continue', 'Content-Length: 4', 'Connection: close'])
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    socket.write(ask)
    expect(String((await once(socket, 'data'))[0])).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    socket.write('body')
    let rest = ''
    for await (const piece of socket) rest += piece
    expect([statusesIn(rest), rest.endsWith('body') || rest.includes('body')]).toEqual([[200], true])
    expect(statusesIn(await sendRaw(port, ask))).toEqual([503])
    expect(received).toHaveLength(1)
    expect(received[0]!.headers).not.toHaveProperty('expect')
  })
})

describe('an ambiguous request', () => {
  const chunked = 'Transfer-Encoding: chunked'
  test.each([
    ['a length and a coding', `${head('POST', ['Content-Length: 4', chunked])}0\r\n\r\n`],
    ['two lengths', `${head('POST', ['Content-Length: 1', 'Content-Length: 2'])}ab`],
    ['a length that is none', `${head('POST', ['Content-Length: +1'])}a`],
    ['a coding twice', `${head('POST', [chunked, chunked])}0\r\n\r\n`],
    ['a coding that hides another', `${head('POST', ['Transfer-Encoding: xchunked'])}0\r\n\r\n`],
    ['a coding beside chunked', `${head('POST', ['Transfer-Encoding: gzip, chunked', 'Connection: close'])}0\r\n\r\n`],
    ['a folded header', head('GET', ['X-A: 1', ' folded: 2'])],
    ['a space before the colon', head('GET', ['X-A : 1'])],
    ['a name with a control character', head('GET', ['X\u0001A: 1'])],
    ['a value with a bare CR', head('GET', ['X-A: 1\rX-B: 2'])],
    ['no host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['two hosts', head('GET', ['Host: b', 'Connection: close'])],
    ['no HTTP at all', '\u0016\u0003\u0001\u0000hello\r\n\r\n'],
  ])('an ambiguous request is refused: %s', async (_, bytes) => {
    const { port, received } = await guardEcho()
    const answer = await sendRaw(port, bytes)
    const [status] = statusesIn(answer)
    expect([400, 501]).toContain(status)
    expect(received).toEqual([])
  })

  test.each(['zz', '-1', '0x3', 'fffffffffffffffff'])(
    'a chunk of %s bytes, and the service gets no whole call',
    async size => {
      let aborted = 0
      const { url } = await rig.serve(incoming => incoming.on('error', () => aborted++))
      const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
      const answer = await sendRaw(guarded.port, head('POST', [chunked]), `${size}\r\nabc\r\n0\r\n\r\n`)
      expect(statusesIn(answer)).toEqual([400])
      expect(aborted).toBeLessThanOrEqual(1)
    },
  )
})

test('an upgrade to what the gateway does not speak is ignored, and the call is served', async () => {
  const { port, received } = await guardEcho()
  const upgrade = ['Connection: close, Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']
  const answer = await sendRaw(port, head('GET', [...upgrade, 'X-Say: plain']))
  expect([statusesIn(answer), answer.includes('plain')]).toEqual([[200], true])
  for (const name of ['upgrade', 'http2-settings']) expect(received[0]!.headers).not.toHaveProperty(name)
  expect(statusesIn(await sendRaw(port, `${head('POST', [...upgrade, 'Content-Length: 3'])}abc`))).toEqual([200])
})

describe('a request that is too large is refused', () => {
  test('headers that are too large are refused', async () => {
    const { port, received } = await guardEcho({ limits: { headers: '4KiB' } })
    expect(statusesIn(await sendRaw(port, head('GET', [`X: ${'a'.repeat(5000)}`])))).toEqual([431])
    expect(
      statusesIn(await sendRaw(port, head('GET', ['A: b', `X: ${'a'.repeat(3000)}`, 'Connection: close']))),
    ).toEqual([200])
    expect(received).toHaveLength(1)
  })

  test('a body that is too large is refused, with or without a declared length', async () => {
    const { port, gatewayUrl } = await guardEcho({ limits: { body: '1KiB' } })
    const told = await request(gatewayUrl, { method: 'POST', body: 'a'.repeat(1025) })
    expect([told.statusCode, await told.body.json()]).toMatchObject([413, { status: 413 }])
    const fits = await request(gatewayUrl, { method: 'POST', body: 'a'.repeat(1024) })
    expect([fits.statusCode, (await fits.body.text()).length]).toEqual([200, 1024])
    const { url } = await rig.serve((incoming, response) => {
      incoming.resume().on('end', () => response.end())
    })
    const guarded = await rig.guard({ gateway: { limits: { body: '1KiB' }, routes: [{ to: url }] } })
    const piece = `400\r\n${'a'.repeat(1024)}\r\n`
    const chunked = head('POST', ['Transfer-Encoding: chunked', 'Connection: close'])
    expect(statusesIn(await sendRaw(guarded.port, `${chunked}${piece}${piece}0\r\n\r\n`))).toEqual([413])
    expect(statusesIn(await sendRaw(guarded.port, `${chunked}${piece}0\r\n\r\n`))).toEqual([200])
    expect(port).toBeGreaterThan(0)
  })
})

describe('streams', () => {
  const size = 100 * 1024 * 1024
  const piece = Buffer.alloc(64 * 1024, 'd')

  test('streams of 100 MB pass in both directions with little memory', async () => {
    const { gatewayUrl } = await guardEcho()
    let sent = 0
    const body = new Readable({
      read() {
        sent += piece.length
        this.push(piece)
        if (sent >= size) this.push(null)
      },
    })
    const { statusCode, body: answer } = await request(gatewayUrl, { method: 'POST', body })
    let [received, largest] = [0, 0]
    const before = process.memoryUsage().rss
    for await (const part of answer) {
      received += part.length
      largest = Math.max(largest, process.memoryUsage().rss - before)
    }
    expect([statusCode, received]).toEqual([200, size])
    // caller, gateway and service are all in this process
    expect(largest).toBeLessThan(80 * 1024 * 1024)
  })

  test('streams wait for a slow reader, and end when the caller disconnects', async () => {
    let [written, ended] = [0, false]
    const { url } = await rig.serve((_request, response) => {
      const write = (): void => {
        while (written < size && !response.destroyed) {
          written += piece.length
          if (!response.write(piece)) {
            response.once('drain', write)
            return
          }
        }
        response.end()
      }
      response.on('close', () => {
        ended = true
      })
      write()
    })
    const { port } = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const socket = connect(port, '127.0.0.1')
    socket.write(head('GET'))
    await once(socket, 'readable')
    socket.pause()
    // what fits into the buffers on the way is taken, and no more
    let before = -1
    await expect
      .poll(
        () => {
          const stands = written === before
          before = written
          return stands
        },
        { interval: 300, timeout: 10_000 },
      )
      .toBe(true)
    expect(written).toBeLessThan(size / 2)
    socket.destroy()
    await expect.poll(() => ended).toBe(true)
  })

  test('an upload that the caller aborts ends at the service too', async () => {
    const outcomes: string[] = []
    const { url, received } = await rig.serve((incoming, response) => {
      incoming.on('error', () => outcomes.push('broken')).on('end', () => outcomes.push('whole'))
      incoming.resume().on('end', () => response.end())
    })
    const route = { to: url, health: { failures: 1 } }
    const { port, url: gatewayUrl } = await rig.guard({ gateway: { routes: [route] } })
    const socket = connect(port, '127.0.0.1')
    socket.write(head('POST', ['Content-Length: 1000000']))
    socket.write('some of it')
    await expect.poll(() => received.length).toBe(1)
    socket.destroy()
    await expect.poll(() => outcomes).toEqual(['broken'])
    const { statusCode } = await request(gatewayUrl, { method: 'POST' })
    expect(statusCode).toBe(200)
  })

  test('the answer of a service that has not read the whole body is passed on', async () => {
    const { url } = await rig.serve((_request, response) => response.writeHead(413).end('enough'))
    const { port } = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    socket.on('error', () => {})
    socket.write(`${head('POST', ['Content-Length: 1000000'])}some of it`)
    let answer = ''
    for await (const part of socket) answer += part
    expect([statusesIn(answer), answer.includes('enough'), /connection: close/i.test(answer)]).toEqual([
      [413],
      true,
      true,
    ])
  })

  test('server-sent events arrive one by one', async () => {
    let send: ((text: string) => void) | undefined
    const { url } = await rig.serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      send = text => void response.write(text)
      send('data: 1\n\n')
    })
    const { url: gatewayUrl } = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const { body } = await request(gatewayUrl)
    const events = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    expect(String((await events.next()).value)).toBe('data: 1\n\n')
    send!('data: 2\n\n')
    expect(String((await events.next()).value)).toBe('data: 2\n\n')
    body.destroy()
  })
})

describe('WebSockets', () => {
  async function guardSockets(rules: object[] = [{ id: 'all', limit: '1000/s' }]) {
    const { url, server } = await rig.serve((_request, response) => response.writeHead(426).end('no'))
    const sockets = new WebSocketServer({ noServer: true })
    server.on('upgrade', (incoming, socket, rest) => {
      if (incoming.url === '/refused')
        socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Why: key\r\n\r\nno')
      else
        sockets.handleUpgrade(incoming, socket, rest, ws =>
          ws.on('message', (data, binary) => ws.send(data, { binary })),
        )
    })
    rig.later(() => sockets.close())
    return rig.guard({ rules, gateway: { routes: [{ to: url }], shutdown: { timeout: '1s' } } })
  }

  const open = async (url: string): Promise<WebSocket> => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    await once(socket, 'open')
    return socket
  }

  test('WebSocket messages of any size pass, and hold their slot while open', async () => {
    const { url, limiter } = await guardSockets([{ id: 'open', limit: 2, algorithm: 'concurrency' }])
    const socket = await open(url)
    for (const text of ['hello', 'x'.repeat(1_000_000)]) {
      const echoed = once(socket, 'message')
      socket.send(text)
      expect(String((await echoed)[0])).toBe(text)
    }
    const left = async () => (await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    expect(await left()).toBe(1)
    socket.close()
    await expect.poll(left).toBe(2)
  })

  test('WebSockets are refused like any call', async () => {
    const { url } = await guardSockets([{ id: 'all', limit: '1/m' }])
    await open(url).then(socket => socket.close())
    await expect(open(url)).rejects.toBeDefined()
  })

  test('WebSockets that the service declines get its answer', async () => {
    const { port } = await guardSockets()
    const upgrade = `GET /refused HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
    const answer = await sendRaw(port, upgrade)
    expect([statusesIn(answer), answer.includes('x-why: key')]).toEqual([[401], true])
  })

  test('WebSockets to a service that is down are answered with 502', async () => {
    const { url, server } = await rig.serve()
    server.close()
    const { port } = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(port, head('GET', ['Connection: Upgrade', 'Upgrade: websocket']))
    expect(statusesIn(answer)).toEqual([502])
  })

  test('open WebSockets do not keep a gateway from closing', async () => {
    const { url, gateway } = await guardSockets()
    const socket = await open(url)
    const closed = once(socket, 'close')
    await gateway.close()
    await closed
  })
})
