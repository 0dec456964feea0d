import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, type Guarded, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const call = (target: string, more: readonly string[] = [], method = 'GET'): string =>
  `${[`${method} ${target} HTTP/1.1`, 'Host: a', ...more].join('\r\n')}\r\n\r\n`

const upgradeTo = (protocol: string): string[] => ['Connection: Upgrade', `Upgrade: ${protocol}`]

const handshake = [
  ...upgradeTo('websocket'),
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
]

async function isServed(url: string, headersTimeout = 3000): Promise<number> {
  const { statusCode, body } = await request(url, { headersTimeout })
  await body.dump()
  return statusCode
}

/** A plugin of a user, so that answers go through the hooks of Fastify. */
const hooked = {
  filters: [
    Object.assign(
      (app: { addHook(name: string, hook: unknown): void }, _: object, done: () => void) => {
        app.addHook('onSend', async (_request: unknown, _reply: unknown, payload: unknown) => payload)
        done()
      },
      { [Symbol.for('skip-override')]: true },
    ),
  ],
} as never

function openSocket({ port }: Pick<Guarded, 'port'>): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  rig.later(() => socket.destroy())
  return socket
}

describe('an upgrade request behind calls of the same connection', () => {
  const rules = [[{ id: 'all', limit: '1000/s' }], [{ id: 'all', limit: '1/h' }]]

  test.each(['h2c', 'websocket', 'nonsense', 'HTTP/3.0, websocket', 'TLS/1.0'])(
    'is answered in its turn, passed or refused, when it asks for %s',
    async protocol => {
      for (const some of rules) {
        const { url } = await rig.serve()
        const guarded = await rig.guard({ rules: some, gateway: { routes: [{ to: url }] } })
        for (const before of [1, 2, 3]) {
          const calls = call('/a').repeat(before) + call('/b', upgradeTo(protocol))
          const socket = openSocket(guarded)
          socket.write(calls)
          let answer = ''
          socket.setEncoding('latin1').on('data', piece => {
            answer += piece
          })
          await expect.poll(() => statusesIn(answer).length).toBe(before + 1)
          socket.destroy()
        }
        expect(await isServed(guarded.url)).toBe(some[0]!.limit === '1/h' ? 503 : 200)
      }
    },
  )

  test('does not hold back the rest of a large answer before it', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, 'x')
    const { url } = await rig.serve((incoming, response) => response.end(incoming.url === '/large' ? large : 'small'))
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(
      guarded.port,
      call('/large') + call('/b', ['Connection: Upgrade, close', 'Upgrade: h2c']),
    )
    expect([statusesIn(answer), answer.length > large.length, answer.endsWith('small')]).toEqual([
      [200, 200],
      true,
      true,
    ])
  })

  test('that is not taken keeps its body and its connection', async () => {
    const bodies: string[] = []
    const { url } = await rig.serve(async (incoming, response) => {
      let body = ''
      for await (const piece of incoming) body += piece
      bodies.push(`${incoming.method} ${body}`)
      response.end()
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']
    const calls = [
      `${call('/', [...offer, 'Content-Length: 3'], 'POST')}abc`,
      `${call('/', [...offer, 'Transfer-Encoding: chunked'], 'PUT')}3\r\ndef\r\n0\r\n\r\n`,
      call('/', ['Connection: close']),
    ]
    expect(statusesIn(await sendRaw(guarded.port, calls.join('')))).toEqual([200, 200, 200])
    expect(bodies).toEqual(['POST abc', 'PUT def', 'GET '])
  })
})

describe('a target that no service can be asked for', () => {
  test.each(['OPTIONS', 'GET', 'POST', 'DELETE'])('%s * leaves every connection to the service free', async method => {
    const { url, received } = await rig.serve()
    const guarded = await rig.guard({ gateway: { connections: { max: 2 }, routes: [{ to: url }] } })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => sendRaw(guarded.port, call('*', ['Connection: close'], method))),
    )
    expect(new Set(answers.flatMap(statusesIn))).toEqual(new Set([method === 'OPTIONS' ? 204 : 400]))
    expect([await isServed(guarded.url), received.length]).toEqual([200, 1])
  })

  test.each(['CONNECT', 'TRACE'])('%s is answered, also behind another call', async method => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const target = method === 'CONNECT' ? 'example.com:443' : '/a'
    const answer = await sendRaw(guarded.port, call('/a') + call(target, ['Connection: close'], method))
    expect(statusesIn(answer)).toEqual([200, 405])
    expect(await isServed(guarded.url)).toBe(200)
  })

  test('an expectation that the gateway does not know is answered in its turn', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(
      guarded.port,
      call('/a') + call('/b', ['Expect: tea']) + call('/c', ['Connection: Upgrade, close', 'Upgrade: h2c']),
    )
    expect(statusesIn(answer)).toEqual([200, 417, 200])
  })
})

test.each([
  ['garbage', '\x00\x01\r\n\r\n', 400],
  ['headers that are too large', call('/b', [`X: ${'a'.repeat(20_000)}`]), 431],
  ['two lengths', call('/b', ['Content-Length: 1', 'Content-Length: 2'], 'POST'), 400],
])('%s behind an unanswered call are answered after it', async (_, bytes, status) => {
  const { url } = await rig.serve((_incoming, response) => setTimeout(() => response.end('slow'), 200))
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  for (const pieces of [[call('/slow') + bytes], [call('/slow'), bytes]]) {
    const answer = await sendRaw(guarded.port, ...pieces)
    expect(statusesIn(answer)).toEqual([200, status])
  }
})

test('a service is told nothing that only a trusted proxy may say', async () => {
  const { url, received } = await rig.serve()
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  const names = ['x-real-ip', 'x-forwarded-port', 'x-forwarded-prefix', 'x-original-url', 'x-rewrite-url', 'forwarded']
  await sendRaw(guarded.port, call('/free', [...names.map(name => `${name}: /hello`), 'Connection: close']))
  expect(names.filter(name => name in received[0]!.headers)).toEqual([])
})

test('a path of more segments than any rule names is refused', async () => {
  const { url } = await rig.serve()
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  const answers = await Promise.all(
    [200, 300].map(segments => sendRaw(guarded.port, call('/a'.repeat(segments), ['Connection: close']))),
  )
  expect(answers.flatMap(statusesIn)).toEqual([200, 400])
})

test('a call that its caller makes too large stays counted, since the service may have done its work', async () => {
  const { url, received } = await rig.serve(() => {})
  const rules = [{ id: 'sms', limit: '2/h', countWhen: '2xx' }]
  const guarded = await rig.guard({ rules, gateway: { limits: { body: '1KiB' }, routes: [{ to: url }] } })
  const statuses: number[] = []
  for (let i = 0; i < 4; i++) {
    const socket = openSocket(guarded).setEncoding('latin1')
    socket.write(`${call('/sms', ['Transfer-Encoding: chunked'], 'POST')}5\r\nhello\r\n`)
    await expect.poll(() => received.length > i || i > 1).toBe(true)
    socket.write(`1000\r\n${'x'.repeat(4096)}\r\n`)
    statuses.push(...statusesIn(String((await once(socket, 'data'))[0])))
    socket.destroy()
  }
  expect(statuses).toEqual([413, 413, 503, 503])
})

test.each([
  ['2xx', [504, 504, 504]],
  [
    ['2xx', '504'],
    [504, 504, 503],
  ],
])('countWhen: %j reads the 504 of the gateway as a status like any other', async (countWhen, expected) => {
  const { url } = await rig.serve(() => {})
  const rules = [{ id: 'sms', limit: '2/h', countWhen }]
  const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url, timeouts: { headers: '50ms' } }] } })
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    statuses.push(...statusesIn(await sendRaw(guarded.port, call('/sms', ['Connection: close'], 'POST'))))
  }
  expect(statuses).toEqual(expected)
})

test.each(['/a%7Cb', '/x%5B1%5D', '/%40me', '/%7euser'])('a rule for %s counts every spelling of it', async path => {
  const { url } = await rig.serve()
  const rules = [{ id: 'one', match: { path }, limit: '1/h' }]
  const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
  const spellings = [path, path.toLowerCase(), decodeURIComponent(path)]
  const answers: number[] = []
  for (const target of spellings)
    answers.push(...statusesIn(await sendRaw(guarded.port, call(target, ['Connection: close']))))
  expect(answers).toEqual([200, 503, 503])
})

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
  ])('is not served after %s, and nothing is left of it', async (_, first) => {
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
  })
})

describe('slow callers', () => {
  test.each([
    ['readers', () => call('/large')],
    ['senders', () => `${call('/', ['Content-Length: 1000000'], 'POST')}x`],
    ['senders of chunks', () => `${call('/', ['Transfer-Encoding: chunked'], 'POST')}1\r\nx\r\n`],
  ])('%s who take all connections to a service make way for others', async (_, bytes) => {
    const { url } = await rig.serve((incoming, response) => {
      if (incoming.url === '/large') response.end(Buffer.alloc(16 * 1024 * 1024))
      else if (incoming.method === 'POST') incoming.resume().on('end', () => response.end())
      else response.end('served')
    })
    const connections = { max: 20, queue: { timeout: '20s' } }
    const guarded = await rig.guard({ gateway: { connections, routes: [{ to: url }] } })
    const sockets = Array.from({ length: 30 }, () => openSocket(guarded))
    for (const socket of sockets) socket.pause().write(bytes())
    await new Promise(resolve => setTimeout(resolve, 200))
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const { statusCode, body } = await request(guarded.url, { headersTimeout: 15_000 })
        await body.dump()
        return statusCode
      }),
    )
    expect(statuses).toEqual(Array(10).fill(200))
  })

  test('below the minimum rate are cut off, and those above it are not', async () => {
    const { url } = await rig.serve((incoming, response) => incoming.resume().on('end', () => response.end('whole')))
    const limits = { minRate: '1KiB', grace: '2s' }
    const guarded = await rig.guard({ gateway: { limits, routes: [{ to: url }] } })
    const post = call('/', ['Content-Length: 8000', 'Connection: close'], 'POST')
    const [slow, steady] = [openSocket(guarded), openSocket(guarded)]
    let answer = ''
    steady.setEncoding('latin1').on('data', piece => {
      answer += piece
    })
    slow.resume().write(post)
    steady.write(post)
    const drip = setInterval(() => {
      slow.write('x')
      steady.write('x'.repeat(800))
    }, 400)
    rig.later(() => clearInterval(drip))
    await once(slow, 'close')
    await expect.poll(() => statusesIn(answer), { timeout: 10_000 }).toEqual([200])
  })

  test('a full queue for connections answers 503 with Retry-After at once, a long wait after its time', async () => {
    const { url } = await rig.serve(() => {})
    const connections = { max: 1, queue: { size: 1, timeout: '300ms' } }
    const guarded = await rig.guard({ gateway: { connections, routes: [{ to: url }] } })
    const first = openSocket(guarded)
    first.write(call('/'))
    await new Promise(resolve => setTimeout(resolve, 100))
    const answers = await Promise.all([1, 2].map(() => request(guarded.url)))
    for (const { statusCode, headers, body } of answers) {
      expect([statusCode, headers['retry-after'], (await body.json()) as object]).toMatchObject([
        503,
        '1',
        { status: 503 },
      ])
    }
  })

  test.each([1, 2, 5])('a proxy among %s that are trusted may have any number of connections', async trustProxy => {
    const { url } = await rig.serve()
    const gateway = { limits: { connectionsPerCaller: 2 }, routes: [{ to: url }] }
    const guarded = await rig.guard({ trustProxy, gateway })
    const sockets = Array.from({ length: 4 }, () => openSocket(guarded))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    expect(statusesIn(await sendRaw(guarded.port, call('/', ['Connection: close'])))).toEqual([200])
  })

  test('one address can hold only so many connections, and another address is served', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { limits: { connectionsPerCaller: 5 }, routes: [{ to: url }] } })
    const sockets = Array.from({ length: 5 }, () => openSocket(guarded))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    const answer = await sendRaw(guarded.port, call('/'))
    expect([statusesIn(answer), answer.includes('application/problem+json')]).toEqual([[429], true])
    const other = connect({ port: guarded.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    rig.later(() => other.destroy())
    other.write(call('/'))
    expect(String((await once(other, 'data'))[0])).toContain('200 OK')
    sockets[0]!.destroy()
    await expect
      .poll(async () => statusesIn(await sendRaw(guarded.port, call('/', ['Connection: close']))))
      .toEqual([200])
  })
})

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

    test('chunks that are broken from the start break the answer off or are answered with 502', async () => {
      const odd = await rig.serveRaw(socket => {
        socket.once('data', () => socket.end('HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'))
      })
      const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } }, options as object)
      const answer = await sendRaw(guarded.port, call('/odd', ['Connection: close']))
      expect(answer).toMatch(options === hooked ? /^HTTP\/1.1 502 Bad Gateway/ : /^HTTP\/1.1 200 Fine/)
      expect(answer).not.toMatch(/\r\n0\r\n\r\n$/)
    })

    test('any bytes instead of an answer leave the gateway whole', async () => {
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

  test('headers for the connection end at the gateway, and its own do not', async () => {
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

  test('a hint before the answer reaches a caller of HTTP/1.1 and not one of HTTP/1.0', async () => {
    const odd = await rig.serveRaw(socket => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
      )
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: odd }] } })
    const answer = await sendRaw(guarded.port, call('/', ['Connection: close']))
    expect([statusesIn(answer), answer.toLowerCase().includes('link: </a>')]).toEqual([[103, 200], true])
    const old = await sendRaw(guarded.port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n')
    expect(statusesIn(old)).toEqual([200])
  })
})

describe('an answer before the whole call has arrived', () => {
  test.each([
    ['a length', (size: number) => [`Content-Length: ${size}`]],
    ['chunks', () => ['Transfer-Encoding: chunked']],
  ])('reaches a caller who goes on sending a body with %s', async (_, headers) => {
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

  test('a call behind such an answer is not served', async () => {
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

describe('what a call took is given back', () => {
  const small = { connections: { max: 3, queue: { timeout: '8s' } }, limits: { grace: '2s' } }

  test('by readers who take nothing of the answer to a WebSocket request that was declined', async () => {
    const { url } = await rig.serve((incoming, response) =>
      response.end(incoming.url === '/big' ? Buffer.alloc(8 * 1024 * 1024) : 'served'),
    )
    const guarded = await rig.guard({ gateway: { ...small, routes: [{ to: url }] } })
    for (let i = 0; i < 3; i++) openSocket(guarded).pause().write(call('/big', handshake))
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(await isServed(guarded.url, 10_000)).toBe(200)
  })

  test.each([
    ['declines', (url: string) => url],
    ['cannot be reached', () => 'http://127.0.0.1:9'],
  ])('by WebSocket callers who stay after the service %s', async (_, to) => {
    const { url } = await rig.serve((_incoming, response) => response.writeHead(404).end('no'))
    const rules = [{ id: 'few', limit: 3, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { ...small, routes: [{ to: to(url) }] } })
    const sockets = Array.from({ length: 3 }, () => {
      const socket = connect({ port: guarded.port, host: '127.0.0.1', allowHalfOpen: true })
      rig.later(() => socket.destroy())
      socket.on('error', () => {}).resume()
      socket.write(call('/', handshake))
      return socket
    })
    await Promise.all(sockets.map(socket => once(socket, 'end')))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBe(3)
    expect([404, 502]).toContain(await isServed(guarded.url))
    await expect
      .poll(() => new Promise(resolve => guarded.gateway.server.getConnections((_error, count) => resolve(count))), {
        timeout: 5000,
      })
      .toBeLessThan(3)
  })

  test.each([
    ['replaces the answer', async () => 'replaced'],
    [
      'throws',
      async () => {
        throw new Error('no')
      },
    ],
  ])('by calls whose filter %s', async (_, onSend) => {
    const { url } = await rig.serve((incoming, response) =>
      response.end(incoming.url === '/big' ? Buffer.alloc(8 * 1024 * 1024) : 'served'),
    )
    const plugin = Object.assign(
      (app: { addHook(name: string, hook: unknown): void }, _options: object, done: () => void) => {
        app.addHook('onSend', onSend)
        done()
      },
      { [Symbol.for('skip-override')]: true },
    )
    const guarded = await rig.guard({ gateway: { ...small, routes: [{ to: url }] } }, { filters: [plugin] } as never)
    for (let i = 0; i < 9; i++) expect([200, 500]).toContain(await isServed(`${guarded.url}/big`))
  })

  test('by callers who pipeline small calls and read none of the answers', async () => {
    const { url } = await rig.serve((_incoming, response) => response.end('x'.repeat(12_000)))
    const rules = [{ id: 'few', limit: 2, algorithm: 'concurrency' }]
    const guarded = await rig.guard({ rules, gateway: { ...small, routes: [{ to: url }] } })
    for (let i = 0; i < 2; i++) openSocket(guarded).pause().write(call('/').repeat(499))
    const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
    await expect.poll(left).toBe(0)
    await expect.poll(left, { timeout: 15_000 }).toBe(2)
  })

  test.each([
    ['a call', call('/x')],
    ['two calls', call('/x') + call('/y')],
    ['half a call', 'GET /x HT'],
    ['a call with part of its body', `${call('/x', ['Content-Length: 1000'], 'POST')}some`],
    ['CONNECT', call('a:1', [], 'CONNECT')],
    ['an unknown expectation', call('/x', ['Expect: tea'])],
    ['bytes that are no call', '\x00\x01\x02\r\n\r\n'],
  ])('by a caller who leaves with %s behind an unanswered one', async (_, behind) => {
    for (const how of ['end', 'destroy', 'resetAndDestroy'] as const) {
      for (const pieces of [[call('/slow') + behind], [call('/slow'), behind]]) {
        let open = 0
        const { url } = await rig.serve((_incoming, response) => {
          open++
          response.on('close', () => open--)
        })
        const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
        const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
        const socket = openSocket(guarded)
        for (const piece of pieces) {
          socket.write(piece, 'latin1')
          await new Promise(resolve => setTimeout(resolve, 50))
        }
        socket[how]()
        const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
        await expect.poll(left).toBe(1)
        await expect.poll(() => open).toBe(0)
      }
    }
  })

  test.each(['end', 'destroy'] as const)(
    'by a WebSocket caller who sent much too early and leaves by %s',
    async how => {
      const { url } = await rig.serve(() => {})
      const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
      const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
      const socket = openSocket(guarded)
      socket.write(call('/', handshake) + 'x'.repeat(200_000))
      await new Promise(resolve => setTimeout(resolve, 100))
      socket[how]()
      const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
      await expect.poll(left).toBe(1)
    },
  )

  test.each(['end', 'destroy'] as const)(
    'by an open WebSocket whose caller leaves by %s, though the service stays',
    async how => {
      const service = await rig.serveRaw(socket => {
        socket.allowHalfOpen = true
        socket.once('data', () => socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'))
      })
      const rules = [{ id: 'one', limit: 1, algorithm: 'concurrency' }]
      const guarded = await rig.guard({ rules, gateway: { routes: [{ to: service }] } })
      const socket = openSocket(guarded)
      socket.write(call('/', handshake))
      expect(String((await once(socket, 'data'))[0])).toContain('101')
      socket[how]()
      const left = async () => (await guarded.limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
      await expect.poll(left, { timeout: 5000 }).toBe(1)
    },
  )
})

test('signed calls are served while others stall with bodies that claim a known secret', async () => {
  const { url } = await rig.serve((incoming, response) => incoming.resume().on('end', () => response.end('served')))
  const filters = [{ use: 'hmac-signature', secrets: { shop: 'a secret of some length' }, body: '8MiB' }]
  const guarded = await rig.guard({ gateway: { filters, routes: [{ to: url }] } })
  const headers = (nonce: string, signature: string): string[] => [
    'X-Signature-Key: shop',
    `X-Signature-Timestamp: ${Math.floor(Date.now() / 1000)}`,
    `X-Signature-Nonce: ${nonce}`,
    `X-Signature: ${signature}`,
  ]
  const size = 8 * 1024 * 1024
  for (let i = 0; i < 9; i++) {
    const socket = openSocket(guarded)
    socket.write(call('/', [...headers(`nonce-of-a-guess-${i}`, '0'.repeat(64)), `Content-Length: ${size}`], 'POST'))
    socket.write(Buffer.alloc(size - 1))
  }
  await new Promise(resolve => setTimeout(resolve, 2500))
  const timestamp = Math.floor(Date.now() / 1000)
  const nonce = 'nonce-of-an-honest-caller'
  const digest = createHash('sha256').update('body').digest('hex')
  const signature = createHmac('sha256', 'a secret of some length')
    .update(['POST', '/', timestamp, nonce, digest].join('\n'))
    .digest('hex')
  const { statusCode, body } = await request(guarded.url, {
    method: 'POST',
    body: 'body',
    headers: {
      'x-signature-key': 'shop',
      'x-signature-timestamp': String(timestamp),
      'x-signature-nonce': nonce,
      'x-signature': signature,
    },
  })
  expect([statusCode, await body.text()]).toEqual([200, 'served'])
})

describe('upgraded connections that nobody needs any more', () => {
  test.each(['end', 'destroy'] as const)('a waiting WebSocket caller who leaves by %s gives up the wait', async how => {
    const { url, received } = await rig.serve()
    const rules = [
      { id: 'one', limit: 1, algorithm: 'concurrency', whenFull: 'wait', queue: { size: 10, timeout: '20s' } },
    ]
    const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
    const verdict = await guarded.limiter.check({ method: 'GET', path: '/' })
    const socket = openSocket(guarded)
    socket.write(call('/', handshake))
    const waiting = () => guarded.limiter.status().rules[0]!.waiting
    await expect.poll(waiting).toBe(1)
    socket[how]()
    await expect.poll(waiting).toBe(0)
    verdict.end()
    expect([await isServed(guarded.url), received.length]).toEqual([200, 1])
  })

  test.each(['h2c', 'websocket'])(
    'a caller who leaves with a %s upgrade behind a slow call ends that call',
    async protocol => {
      let open = 0
      const { url } = await rig.serve((_incoming, response) => {
        open++
        response.on('close', () => open--)
      })
      const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
      const socket = openSocket(guarded)
      socket.write(call('/slow') + call('/b') + call('/c', upgradeTo(protocol)))
      await expect.poll(() => open).toBe(1)
      socket.end()
      await expect.poll(() => open).toBe(0)
    },
  )

  test('Fastify, which would give up after ten seconds, does not bound how long a shutdown may take', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    expect(guarded.gateway.initialConfig.pluginTimeout).toBe(0)
  })

  test.each(['h2c', 'websocket'])('an unanswered %s upgrade does not outlive the shutdown timeout', async protocol => {
    const { url } = await rig.serve(() => {})
    const gateway = { routes: [{ to: url }], shutdown: { timeout: '500ms' } }
    const guarded = await rig.guard({ gateway })
    const socket = openSocket(guarded)
    socket.write(call('/', upgradeTo(protocol)))
    await new Promise(resolve => setTimeout(resolve, 100))
    const begun = performance.now()
    await guarded.gateway.close()
    expect(performance.now() - begun).toBeLessThan(3000)
  })
})
