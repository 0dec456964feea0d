import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call, hooked, isServed, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

/** The bytes of a text, a character each. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

describe('what a service may answer', () => {
  const answers: readonly [name: string, bytes: string, status: number][] = [
    ['a reason phrase in UTF-8', utf8('HTTP/1.1 404 找不到\r\nContent-Length: 0\r\n\r\n'), 404],
    ['a reason phrase in Latin-1', 'HTTP/1.1 404 d\xe9j\xe0\r\nContent-Length: 0\r\n\r\n', 404],
    ['a reason phrase with a control character', 'HTTP/1.1 404 a\x01b\r\nContent-Length: 0\r\n\r\n', 404],
    ['an empty reason phrase', 'HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n', 404],
    ['no reason phrase', 'HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n', 404],
    ['a long reason phrase', `HTTP/1.1 404 ${'é'.repeat(3000)}\r\nContent-Length: 0\r\n\r\n`, 404],
    ['status 999', 'HTTP/1.1 999 odd\r\nContent-Length: 0\r\n\r\n', 999],
    ['status 099', 'HTTP/1.1 099 odd\r\nContent-Length: 0\r\n\r\n', 502],
    ['status 000', 'HTTP/1.1 000 odd\r\nContent-Length: 0\r\n\r\n', 502],
    ['a name that is none', 'HTTP/1.1 200 OK\r\nX Y: 1\r\nContent-Length: 0\r\n\r\n', 502],
    ['a name with bytes beyond ASCII', 'HTTP/1.1 200 OK\r\nX-\xe9: 1\r\nContent-Length: 0\r\n\r\n', 502],
    ['a value with a control character', 'HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n', 502],
    ['a value in Latin-1', 'HTTP/1.1 200 OK\r\nX: \xe9\r\nContent-Length: 0\r\n\r\n', 200],
    ['a value in UTF-8', utf8('HTTP/1.1 200 OK\r\nX: 找\r\nContent-Length: 0\r\n\r\n'), 200],
    ['a 101 that nobody asked for', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n', 502],
    ['a 304 with a length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n', 304],
    ['a 204 with a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 204],
    ['a 304 with chunks', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n', 304],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 502],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab', 502],
    [
      'hints and then an answer',
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      200,
    ],
    ['102 and then an answer', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 200],
    ['a name of a prototype', 'HTTP/1.1 200 OK\r\n__proto__: 1\r\nconstructor: 2\r\nContent-Length: 0\r\n\r\n', 200],
    [
      'a Connection that names Content-Length',
      'HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nok',
      200,
    ],
    ['a set-cookie twice', 'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n', 200],
  ]

  describe.each([
    ['without filters', {}],
    ['with filters', hooked],
  ])('%s', (_, options) => {
    test.each(answers)(
      '%s is passed on or answered with 502, and the next call is served',
      async (_name, bytes, status) => {
        const service = await rig.serve()
        const odd = await rig.serveRaw(socket => {
          socket.once('data', () => socket.end(bytes, 'latin1'))
        })
        const guarded = await rig.guard(
          { gateway: { routes: [{ path: '/odd', to: odd }, { to: service.url }] } },
          options as object,
        )
        const answer = await sendRaw(guarded.port, call('/odd', ['Connection: close']))
        expect(statusesIn(answer).filter(code => code >= 200 || code < 100)).toEqual([status])
        if (status === 200 && bytes.endsWith('ok'))
          expect(answer.endsWith('ok') || /\r\nok\r\n0/.test(answer)).toBe(true)
        expect(await isServed(guarded.url)).toBe(200)
      },
    )

    test.each(['HEAD', 'GET'])('a reset in the middle of an answer to %s breaks the answer off', async method => {
      const odd = await rig.serveRaw(socket => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
          setTimeout(() => socket.resetAndDestroy(), 50)
        })
      })
      const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } }, options as object)
      const answer = await sendRaw(guarded.port, call('/odd', ['Connection: close'], method))
      expect(statusesIn(answer)).toEqual([200])
      expect(answer.endsWith('some')).toBe(method === 'GET')
    })

    test('chunks that are broken from the start break the answer off', async () => {
      const odd = await rig.serveRaw(socket => {
        socket.once('data', () => socket.end('HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'))
      })
      const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } }, options as object)
      const answer = await sendRaw(guarded.port, call('/odd', ['Connection: close']))
      // the head of an answer is sent at once, with and without filters
      expect(answer).toMatch(/^HTTP\/1.1 200 Fine/)
      expect(answer).not.toMatch(/\r\n0\r\n\r\n$/)
    })

    test('the gateway survives any bytes instead of an answer', async () => {
      let seed = 7
      const random = (below: number): number => {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
        return seed % below
      }
      const service = await rig.serve()
      const odd = await rig.serveRaw(socket => {
        socket.on('data', () => {
          const [, template] = answers[random(answers.length)]!
          const bytes = Buffer.from(template, 'latin1')
          for (let edits = random(4); edits > 0 && bytes.length > 0; edits--) bytes[random(bytes.length)] = random(256)
          if (random(2) === 0) socket.end(bytes)
          else socket.write(bytes, () => setTimeout(() => socket.destroy(), random(5)))
        })
      })
      const routes = [{ path: '/odd', to: odd, timeouts: { headers: '500ms', body: '500ms' } }, { to: service.url }]
      const guarded = await rig.guard({ gateway: { routes } }, options as object)
      const methods = ['GET', 'HEAD', 'POST', 'OPTIONS']
      for (let round = 0; round < 20; round++) {
        const calls = methods.map(method => sendRaw(guarded.port, call('/odd', ['Connection: close'], method)))
        for (const answer of await Promise.all(calls)) expect(answer).toMatch(/^HTTP\/1\.1 \d{3} /)
      }
      expect(await isServed(guarded.url)).toBe(200)
    })
  })

  test('connection headers of a service are removed, and those of the gateway are kept', async () => {
    const lines = ['Connection: x-one, ratelimit', 'Connection: X-Two', 'X-One: 1', 'X-Two: 2', 'Content-Length: 3']
    const odd = await rig.serveRaw(socket => {
      socket.once('data', () => socket.end(`HTTP/1.1 204 No Content\r\n${lines.join('\r\n')}\r\n\r\n`))
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } })
    const answer = (await sendRaw(guarded.port, call('/', ['Connection: close']))).toLowerCase()
    expect(['x-one', 'x-two', 'content-length', '\r\nratelimit:'].map(name => answer.includes(name))).toEqual([
      false,
      false,
      false,
      true,
    ])
  })

  test('a hint before the answer reaches a browser and not a caller of HTTP/1.0', async () => {
    const odd = await rig.serveRaw(socket => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
      )
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } })
    const answer = await sendRaw(guarded.port, call('/', ['Sec-Fetch-Mode: navigate', 'Connection: close']))
    expect([statusesIn(answer), answer.toLowerCase().includes('link: </a>')]).toEqual([[103, 200], true])
    const old = await sendRaw(guarded.port, 'GET / HTTP/1.0\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n\r\n')
    expect(statusesIn(old)).toEqual([200])
  })
})

describe('an answer before the whole call has arrived', () => {
  test.each([
    ['a length', (size: number) => [`Content-Length: ${size}`]],
    ['chunks', () => ['Transfer-Encoding: chunked']],
  ])('an early answer reaches a caller who continues sending a body with %s', async (_, headers) => {
    const { url } = await rig.serve((_incoming, response) => response.writeHead(413).end('enough'.repeat(1000)))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const piece = Buffer.alloc(65_536, 'x')
    for (let round = 0; round < 5; round++) {
      const socket = openSocket(guarded).setEncoding('latin1')
      socket.write(call('/', headers(64 * 1024 * 1024), 'POST'))
      const send = (): void => {
        while (socket.writable && socket.write(headers(0)[0]!.startsWith('T') ? `10000\r\n${piece}\r\n` : piece));
      }
      socket.on('drain', send)
      send()
      let answer = ''
      socket.on('data', text => {
        answer += text
      })
      await expect.poll(() => answer.endsWith('enough') || /enough\r\n0\r\n\r\n$/.test(answer)).toBe(true)
      expect(statusesIn(answer)).toEqual([413])
      socket.destroy()
    }
  })

  test('a call after an early answer on the same connection is not served', async () => {
    const { url, received } = await rig.serve((_incoming, response) => response.writeHead(413).end('enough'))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(guarded.port, call('/', ['Content-Length: 100000'], 'POST'), 'x'.repeat(50_000))
    expect(statusesIn(answer)).toEqual([413])
    const socket = openSocket(guarded)
    socket.write(`${call('/', ['Content-Length: 100001'], 'POST')}x`)
    await once(socket, 'data')
    socket.write('x'.repeat(100_000) + call('/behind'))
    await expect.poll(() => socket.closed, { timeout: 5000 }).toBe(true)
    expect(received.map(({ url: target }) => target)).toEqual(['/', '/'])
  })
})
