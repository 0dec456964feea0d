import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { listen } from '@test/filters/listen'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana, guard, rateLimit, verdictOf } from './http.ts'

const closing: (() => unknown)[] = []
const served: string[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  served.length = 0
})

async function limit(options: LimiterOptions): Promise<Limiter> {
  const limiter = await createLimiter(options)
  closing.push(() => limiter.close())
  return limiter
}

async function open(server: Server): Promise<number> {
  const { port, close } = await listen(server)
  closing.push(close)
  return port
}

/** Sends bytes, and reads what comes back until `text` is in it, or the end. */
async function send(port: number, bytes: string, text = '\0'): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  closing.push(() => socket.destroy())
  socket.on('error', () => {})
  socket.setEncoding('latin1').write(bytes, 'latin1')
  let answer = ''
  for await (const piece of socket) {
    answer += piece
    if (answer.includes(text)) break
  }
  return answer
}

const get = (target: string, more = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`
const status = (answer: string): string => answer.split(' ')[1] ?? ''

describe('a wrapped listener of Node', () => {
  test('a wrapped listener gets the target in the spelling that was counted', async () => {
    const limiter = await limit({ rules: [] })
    const port = await open(
      createServer(
        diana(limiter, ({ url }, response) => {
          served.push(url!)
          response.end()
        }),
      ),
    )
    for (const target of ['/a', '//a/../b?x=//', '/%61?', 'http://h/c#d', '/e?f=%20', '*'])
      await send(port, get(target))
    expect(served).toEqual(['/a', '/b?x=//', '/a', '/c', '/e?f=%20', '*'])
  })

  test('a wrapped listener does not get a target that cannot be normalized', async () => {
    const limiter = await limit({ rules: [] })
    const port = await open(createServer(diana(limiter, ({ url }) => served.push(url!))))
    for (const target of ['/%zz', '/a%00', '/a/..;/b', 'a']) {
      const answer = await send(port, get(target))
      expect(status(answer)).toBe('400')
    }
    expect(await send(port, get('/%'))).toContain('"detail":"The target of this call cannot be read."')
    expect(served).toEqual([])
  })

  test('OPTIONS * is decided by rules without a path, and by no rule with one', async () => {
    const rules = [
      { id: 'all', limit: '9/h' },
      { id: 'star', match: { path: '/star' }, limit: '1/h' },
    ]
    const limiter = await limit({ rules })
    const decide = vi.spyOn(limiter, 'decide')
    const port = await open(createServer(diana(limiter, (_request, response) => void response.end())))
    expect(await send(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toContain('"all";r=8')
    expect(decide.mock.calls[0]![0]).toMatchObject({ method: 'OPTIONS', path: '*', resource: undefined })
  })

  test('a wrapped listener may have rules by name or by options, and settle the cost of a call', async () => {
    const limiter = await limit({ rules: [{ id: 'login', match: 'none', limit: '1/h' }] })
    const login = rateLimit(limiter, (_request, response) => void response.end('in'), { rule: 'login' })
    const pay = rateLimit(
      limiter,
      (request: IncomingMessage, response) => {
        verdictOf(request)!.settle(1)
        response.end('paid')
      },
      { rule: { id: 'pay', limit: '5/h' }, cost: call => (call.path === '/pay' ? 4 : 1) },
    )
    const port = await open(
      createServer((request, response) => (request.url === '/pay' ? pay : login)(request, response)),
    )
    expect([status(await send(port, get('/in'))), status(await send(port, get('/in')))]).toEqual(['200', '503'])
    const paid = [await send(port, get('/pay')), await send(port, get('/pay')), await send(port, get('/pay'))]
    expect(paid.map(answer => /r=(\d)/.exec(answer)![1])).toEqual(['1', '0', '3'])
    expect(paid.map(status)).toEqual(['200', '200', '503'])
  })
})

describe('a guarded server', () => {
  async function chat(options: LimiterOptions): Promise<{ port: number; limiter: Limiter; sockets: Duplex[] }> {
    const limiter = await limit(options)
    const sockets: Duplex[] = []
    const server = guard(
      createServer((_request, response) => void response.end('plain')),
      limiter,
    )
    server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      served.push(request.url!)
      sockets.push(
        socket
          .on('error', () => {})
          .on('end', () => socket.end())
          .resume(),
      )
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n')
    })
    server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      served.push(request.url!)
      sockets.push(socket)
    })
    return { port: await open(server), limiter, sockets }
  }

  const toChat = 'GET //chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n'

  test('a guarded server refuses an upgrade beyond the limit, and closes the connection', async () => {
    const { port } = await chat({ rules: [{ id: 'chat', match: { path: '/chat' }, limit: '1/h' }] })
    expect(status(await send(port, toChat, '101'))).toBe('101')
    const refused = await send(port, toChat)
    expect(status(refused)).toBe('503')
    expect(refused).toMatch(/Retry-After: \d+\r\n.*Connection: close\r\n.*"rule":"chat"/s)
    expect(served).toEqual(['/chat'])
  })

  test('a guarded server applies limits to requests with false upgrade headers', async () => {
    const { port } = await chat({ rules: [{ id: 'all', limit: '1/h' }] })
    expect(status(await send(port, get('/')))).toBe('200')
    const disguised = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi'
    expect(status(await send(port, disguised))).toBe('503')
    expect(status(await send(port, toChat.replace('//chat', '/%zz')))).toBe('400')
    expect(served).toEqual([])
  })

  test('an upgraded connection holds its slot until it is closed', async () => {
    const rules = [{ id: 'open', algorithm: 'concurrency' as const, limit: 1 }]
    const { port, limiter, sockets } = await chat({ rules })
    await send(port, toChat, '101')
    await vi.waitFor(async () => {
      expect((await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining).toBe(1)
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(toChat)
    await once(socket, 'data')
    expect(status(await send(port, toChat))).toBe('503')
    socket.destroy()
    await vi.waitFor(async () => {
      expect((await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining).toBe(1)
    })
    expect(sockets).toHaveLength(2)
  })

  test('an upgrade may wait, and a reset of its connection meanwhile is harmless', async () => {
    const rule = {
      id: 'open',
      algorithm: 'concurrency',
      limit: 1,
      whenFull: 'wait',
      queue: { timeout: '20s' },
    } as const
    const { port, limiter, sockets } = await chat({ rules: [rule] })
    const waiting = (): number => limiter.status().rules[0]!.waiting
    const first = connect(port, '127.0.0.1')
    first.write(toChat)
    await once(first, 'data')
    const second = connect(port, '127.0.0.1')
    second.write(toChat)
    await vi.waitFor(() => expect(waiting()).toBe(1))
    second.resetAndDestroy()
    await vi.waitFor(() => expect(waiting()).toBe(0))
    const third = connect(port, '127.0.0.1')
    third.write(toChat)
    await vi.waitFor(() => expect(waiting()).toBe(1))
    first.destroy()
    const [told] = (await once(third, 'data')) as [Buffer]
    expect(status(String(told))).toBe('101')
    expect(sockets).toHaveLength(2)
    third.destroy()
  })

  test.each(['upgrade', 'connect'])(
    'a caller who closes their half of a connection leaves the wait for an %s at once',
    async event => {
      const rule = {
        id: 'open',
        algorithm: 'concurrency',
        limit: 1,
        whenFull: 'wait',
        queue: { timeout: '20s' },
      } as const
      const { port, limiter, sockets } = await chat({ rules: [rule] })
      const waiting = (): number => limiter.status().rules[0]!.waiting
      const request = event === 'upgrade' ? toChat : 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
      const first = connect(port, '127.0.0.1')
      first.write(toChat)
      await once(first, 'data')
      for (const early of ['', 'sent too early']) {
        const second = connect(port, '127.0.0.1')
        second.write(request + early)
        await vi.waitFor(() => expect(waiting()).toBe(1))
        const closed = once(second.resume(), 'close')
        second.end()
        await vi.waitFor(() => expect(waiting()).toBe(0))
        // the connection is closed from the other side, too
        await closed
      }
      first.destroy()
      await vi.waitFor(async () => {
        expect((await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining).toBe(1)
      })
      expect(sockets).toHaveLength(1)
    },
  )

  test('bytes that a caller sends while waiting for an upgrade are delivered once it is admitted', async () => {
    const limiter = await limit({
      rules: [{ id: 'paced', limit: '20/s', algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait' }],
    })
    const server = guard(createServer(), limiter)
    server.on('upgrade', (_request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n')
      socket.write(head)
      socket.on('data', data => socket.write(data)).on('end', () => socket.end())
    })
    const port = await open(server)
    const echoed = async (text: string): Promise<string> => {
      const socket = connect(port, '127.0.0.1')
      socket.write(toChat)
      let answer = ''
      socket.on('data', data => {
        answer += String(data)
        if (answer.endsWith(text)) socket.end()
      })
      await once(socket, 'connect')
      setTimeout(() => socket.write(text), 10)
      await once(socket, 'close')
      return answer.split('\r\n\r\n')[1]!
    }
    const answers = await Promise.all(['one', 'two', 'three'].map(echoed))
    expect(answers).toEqual(['one', 'two', 'three'])
  })

  test('a guarded server refuses a tunnel beyond the limit', async () => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '1/h' }] })
    const server = guard(createServer(), limiter).on('connect', (request: IncomingMessage, socket: Socket) => {
      served.push(request.url!)
      socket.end('HTTP/1.1 200 OK\r\n\r\n')
    })
    const port = await open(server)
    const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n'
    expect([status(await send(port, tunnel)), status(await send(port, tunnel))]).toEqual(['200', '503'])
    expect(served).toEqual(['example.com:443'])
  })

  const expecting = 'POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n'

  test('a guarded server refuses before the body is sent, and closes the connection', async () => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '1/h' }] })
    const port = await open(
      guard(
        createServer((request, response) => void request.pipe(response)),
        limiter,
      ),
    )
    const passed = await send(port, `${expecting}hello`, 'hello')
    expect(passed).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/)
    const refused = await send(port, expecting)
    expect(refused).toMatch(/^HTTP\/1\.1 503 /)
    expect(refused).toMatch(/\r\nConnection: close\r\n/)
  })

  test('a guarded server leaves 100 Continue to its own listeners', async () => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '2/h' }] })
    const server = guard(createServer(), limiter)
    server.on('checkContinue', (_request, response) => void response.writeHead(417).end())
    server.on('checkExpectation', (_request, response) => void response.writeHead(418).end())
    const port = await open(server)
    const other = expecting.replace('100-continue', 'more').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
    const mine = expecting.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
    const seen = [await send(port, mine), await send(port, other), await send(port, other)]
    expect(seen.map(status)).toEqual(['417', '418', '503'])
  })

  test('a guarded server decides a request once, together with a filter of the same limiter', async () => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '3/h' }] })
    const port = await open(guard(createServer(diana(limiter, (_request, response) => void response.end())), limiter))
    expect([await send(port, get('/')), await send(port, get('/'))].map(text => /r=(\d)/.exec(text)![1])).toEqual([
      '2',
      '1',
    ])
  })
})

test('streams of HTTP/2 that are reset at once are still counted', async () => {
  const limiter = await limit({ rules: [{ id: 'all', limit: '100/h' }] })
  const { port, close } = await listen(
    createHttp2Server(diana(limiter, (_request, response) => void response.end('served')) as never),
  )
  closing.push(close)
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  closing.push(() => session.destroy())
  const left = async (): Promise<number> => (await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
  for (let stream = 0; stream < 60; stream++) {
    const request = session.request({ ':path': `/${stream}` })
    request.on('error', () => {})
    request.once('ready', () => request.close(constants.NGHTTP2_CANCEL))
  }
  await vi.waitFor(async () => expect(await left()).toBe(40))
})

test('a stream that is reset before its call is decided gets no 100 Continue, which would throw', async () => {
  const limiter = await limit({ rules: [{ id: 'all', limit: '9/s' }] })
  const server = guard(createHttp2Server(), limiter)
  const seen: unknown[] = []
  server.on('request', request => seen.push(request))
  const socket = { remoteAddress: '127.0.0.1', destroyed: false }
  const stream = { destroyed: false, closed: true, rstCode: 8 }
  const request = { method: 'POST', url: '/a', headers: { expect: '100-continue' }, socket, stream, once: () => {} }
  const response = { stream, headersSent: false, writableEnded: false, setHeader: () => {}, once: () => {} }
  const writeContinue = vi.fn(() => {
    throw new Error('The stream has been destroyed')
  })
  server.emit('checkContinue', request, { ...response, writeContinue })
  expect(writeContinue).not.toHaveBeenCalled()
  expect(seen).toEqual([request])
})

test.each(['0.9', '1.0', '2.0'])(
  'a request of HTTP/%s on a plain connection is counted and answered like others',
  async version => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '2/h' }] })
    const port = await open(createServer(diana(limiter, (_request, response) => response.end('served'))))
    const statuses: string[] = []
    for (let call = 0; call < 3; call++) {
      const answer = await send(port, `POST /a HTTP/${version}\r\nHost: a\r\nContent-Length: 2\r\n\r\nok`)
      statuses.push(answer.slice(9, 12))
    }
    expect(statuses).toEqual(['200', '200', '503'])
  },
)
