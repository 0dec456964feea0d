import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { request } from 'undici'
import { expect } from 'vitest'
import { sendRaw, statusesIn } from '../helpers/gateway-rig.ts'
import { type Behavior, bodyOf, headersOf, ok, type Stage, statusOf } from './stage.ts'

/** Two calls, one after the other, must be answered, on one connection to the service or on two. */
async function connectionsAfterTwo(stage: Stage, answer: string, method = 'GET'): Promise<number> {
  const { url, connections } = await stage.bytes(answer)
  for (let call = 0; call < 2; call++) {
    const { statusCode, body } = await request(url, { method: method as 'GET' })
    expect(statusCode).toBeLessThan(400)
    await body.dump()
  }
  return connections()
}

/** What becomes of an answer on its way to the caller. */
export const answers: readonly Behavior[] = [
  {
    behavior: 'The status, the reason and the body reach the caller as they are.',
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      for (const status of [
        '200 OK',
        '205 Reset',
        '404 Nope',
        '418 I am a teapot',
        '500 Oh no',
        '599 Odd',
        '204 None',
      ]) {
        const { port } = await stage.bytes(
          `HTTP/1.1 ${status}\r\n${status.startsWith('204') ? '' : 'Content-Length: 0\r\n'}\r\n`,
        )
        expect((await stage.call(port)).split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`)
      }
    },
  },
  {
    behavior: 'All headers of one name reach the caller, in their order: every Set-Cookie.',
    suites: ['http-proxy', 'http-proxy-middleware', 'nginx'],
    check: async stage => {
      const { port } = await stage.bytes(
        'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 0\r\n\r\n',
      )
      const answer = await stage.call(port)
      expect([headersOf(answer, 'set-cookie'), headersOf(answer, 'x-a')]).toEqual([
        ['a=1', 'b=2'],
        ['1', '2'],
      ])
    },
  },
  {
    behavior: "Headers of the service's connection are not passed on, nor are those that its Connection names.",
    suites: ['http-proxy', 'reply-from', 'nginx'],
    check: async stage => {
      const lines =
        'Connection: keep-alive, x-hop\r\nKeep-Alive: timeout=7\r\nX-Hop: 1\r\nProxy-Connection: a\r\nUpgrade: h2'
      const { port } = await stage.bytes(`HTTP/1.1 200 OK\r\n${lines}\r\nContent-Length: 0\r\n\r\n`)
      const answer = await stage.call(port)
      for (const name of ['keep-alive', 'x-hop', 'proxy-connection', 'upgrade'])
        expect(headersOf(answer, name)).toEqual([])
    },
  },
  {
    behavior: 'A caller of HTTP/1.0 gets an answer without chunks that ends with the connection.',
    suites: ['http-proxy'],
    check: async stage => {
      const { port } = await stage.bytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n')
      const answer = await sendRaw(port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n')
      expect([bodyOf(answer), headersOf(answer, 'transfer-encoding'), headersOf(answer, 'connection')]).toEqual([
        'ok',
        [],
        ['close'],
      ])
    },
  },
  {
    behavior: 'A caller that keeps its connection may use it again; one that asks to close it is told so.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port } = await stage.bytes(ok)
      const kept = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
      const answer = await sendRaw(port, kept + kept.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
      expect([statusesIn(answer), answer.match(/^connection: close/gim)]).toEqual([
        [200, 200],
        expect.objectContaining({ length: 1 }),
      ])
    },
  },
  {
    behavior: 'Chunked answers pass, whatever the size of their chunks, with extensions, and empty ones too.',
    suites: ['nginx', 'http-proxy'],
    check: async stage => {
      const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
      const many = Array.from(
        { length: 50 },
        (_, at) => `${(at % 7) + 1};x="y"\r\n${'abcdefg'.slice(0, (at % 7) + 1)}\r\n`,
      )
      const { url } = await stage.bytes(`${head}${many.join('')}0\r\n\r\n`)
      expect(await (await request(url)).body.text()).toBe(many.map(chunk => chunk.split('\r\n')[1]).join(''))
      const empty = await stage.bytes(`${head}0\r\n\r\n`)
      expect(await (await request(empty.url)).body.text()).toBe('')
    },
  },
  {
    behavior: 'An answer without a length, which ends with the connection, is whole.',
    suites: ['nginx', 'http-proxy'],
    check: async stage => {
      for (const version of ['1.0', '1.1']) {
        const { url } = await stage.bytes(socket => socket.end(`HTTP/${version} 200 OK\r\nX-A: 1\r\n\r\nsome text`))
        expect(await (await request(url)).body.text()).toBe('some text')
      }
    },
  },
  {
    behavior: 'Compressed answers are passed on untouched; 204 and 304 with a coding or a length have no body.',
    suites: ['http-proxy-middleware', 'nginx'],
    check: async stage => {
      const zipped = gzipSync('hello')
      const { url, port } = await stage.service((incoming, response) => {
        response.setHeader('content-encoding', 'gzip')
        if (incoming.url === '/') response.end(zipped)
        else
          response
            .writeHead(Number(incoming.url!.slice(1)), incoming.url === '/304' ? { 'content-length': 99 } : {})
            .end()
      })
      const whole = await request(url)
      expect(whole.headers['content-encoding']).toBe('gzip')
      expect(Buffer.from(await whole.body.arrayBuffer())).toEqual(zipped)
      for (const status of [204, 304]) {
        const answer = await stage.call(port, `GET /${status} HTTP/1.1`)
        expect([statusOf(answer), bodyOf(answer)]).toEqual([status, ''])
      }
    },
  },
  {
    behavior: 'Connections to a service are kept after answers with a length, chunked, empty, to HEAD, 204 and 304.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      const kept = [
        ok,
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
        'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
        'HTTP/1.1 204 No Content\r\n\r\n',
        'HTTP/1.1 304 Not Modified\r\n\r\n',
      ]
      for (const answer of kept) expect([answer, await connectionsAfterTwo(stage, answer)]).toEqual([answer, 1])
      const head = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'
      expect(await connectionsAfterTwo(stage, head, 'HEAD')).toBe(1)
    },
  },
  {
    behavior: 'A connection that the service wants closed, or closes, is not used again, and no call fails by that.',
    suites: ['nginx'],
    check: async stage => {
      const closing = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'
      expect(await connectionsAfterTwo(stage, closing)).toBe(2)
      const { url } = await stage.bytes(socket => socket.end(ok))
      for (let call = 0; call < 5; call++) expect((await request(url)).statusCode).toBe(200)
    },
  },
  {
    behavior: 'Bytes behind the end of an answer are not passed on, and the connection is not used again.',
    suites: ['nginx'],
    check: async stage => {
      const extra = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
      const { url, connections } = await stage.bytes(extra)
      for (let call = 0; call < 3; call++) expect(await (await request(url)).body.text()).toBe('ok')
      expect(connections()).toBe(3)
    },
  },
  {
    behavior: 'A body behind the answer to HEAD is not passed on.',
    suites: ['nginx'],
    check: async stage => {
      const { url } = await stage.bytes((socket, call) =>
        socket.write(call.startsWith('HEAD') ? 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil' : ok),
      )
      for (let call = 0; call < 3; call++) {
        expect(await (await request(url, { method: 'HEAD' })).body.text()).toBe('')
        expect(await (await request(url)).body.text()).toBe('ok')
      }
    },
  },
  {
    behavior:
      'An answer that breaks off, by length or in its chunks, breaks off for the caller too, and never looks whole.',
    suites: ['nginx', 'reply-from', 'http-proxy-middleware'],
    check: async stage => {
      const short = await stage.bytes(socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort'))
      await expect(request(short.url).then(({ body }) => body.text())).rejects.toThrow()
      const chunked = await stage.bytes(socket =>
        socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n'),
      )
      expect(await stage.call(chunked.port)).not.toMatch(/\r\n0\r\n\r\n$/)
    },
  },
  {
    behavior: 'Answers with two lengths, a wrong length, a length beside a coding, or an unknown coding give a 502.',
    suites: ['nginx'],
    check: async stage => {
      for (const lines of [
        'Content-Length: 2\r\nContent-Length: 2',
        'Content-Length: 2\r\nContent-Length: 3',
        'Content-Length: two',
        'Content-Length: -1',
        'Transfer-Encoding: foo',
        'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
        'Content-Length: 2\r\nTransfer-Encoding: chunked',
        'Transfer-Encoding: chunked\r\nContent-Length: 2',
      ]) {
        const { port } = await stage.bytes(`HTTP/1.1 200 OK\r\n${lines}\r\n\r\nok`)
        expect([lines, statusOf(await stage.call(port))]).toEqual([lines, 502])
      }
    },
  },
  {
    behavior: 'An answer that is no HTTP, or has headers that cannot be passed on, gives a 502.',
    suites: ['reply-from', 'nginx'],
    check: async stage => {
      for (const bytes of [
        'hello',
        'HTTP/1.1 abc\r\n\r\n',
        'HTTP/1.1 200 OK\r\nA B: c\r\n\r\n',
        'HTTP/1.1 200 OK\r\nX: a\u0001b\r\n\r\n',
      ]) {
        const { port } = await stage.bytes(socket => socket.end(bytes, 'latin1'))
        expect([bytes, statusOf(await stage.call(port))]).toEqual([bytes, 502])
      }
    },
  },
  {
    behavior:
      'Early hints (103) reach a browser that loads a page before the answer, and no caller that may not read them; hints without an answer give a 502.',
    suites: ['nginx'],
    check: async stage => {
      const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload, </b.js>; rel=preload\r\n\r\n'
      const { port } = await stage.bytes(hints + ok)
      const page = (at: number) => stage.call(at, 'GET / HTTP/1.1', ['Sec-Fetch-Mode: navigate'])
      const answer = await page(port)
      expect([statusesIn(answer), headersOf(answer, 'link')]).toEqual([
        [103, 200],
        ['</a.css>; rel=preload, </b.js>; rel=preload'],
      ])
      const only = await stage.bytes(socket => socket.end(hints))
      expect(statusesIn(await page(only.port))).toEqual([103, 502])
      expect(statusesIn(await stage.call(port))).toEqual([200])
    },
  },
  {
    behavior: 'Trailers of an answer reach the caller.',
    suites: ['nginx', 'http-proxy-middleware'],
    check: async stage => {
      const { port } = await stage.bytes(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n',
      )
      expect(await stage.call(port, 'GET / HTTP/1.1', ['TE: trailers'])).toMatch(/\r\n0\r\nx-sum: 1\r\n\r\n$/i)
    },
  },
  {
    behavior: 'Server-sent events arrive one by one, as the service sends them.',
    suites: ['http-proxy', 'reply-from'],
    check: async stage => {
      let send: (text: string) => void = () => {}
      const { port } = await stage.service((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        send = text => response.write(text)
      })
      const socket = connect(port, '127.0.0.1').setEncoding('latin1')
      socket.write('GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n')
      expect(String((await once(socket, 'data'))[0])).toContain('200 OK')
      for (const event of ['one', 'two', 'three']) {
        send(`data: ${event}\n\n`)
        expect(String((await once(socket, 'data'))[0])).toContain(`data: ${event}\n\n`)
      }
      socket.destroy()
    },
  },
  {
    behavior: 'An early answer to an upload reaches the caller, also if the service closes without reading the rest.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      const to = await stage.rig.serveRaw(socket => {
        socket.once('data', () =>
          socket.end('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', () =>
            socket.destroy(),
          ),
        )
      })
      const { url } = await stage.rig.guard({ gateway: { routes: [{ to }] } })
      for (let time = 0; time < 3; time++) {
        const { statusCode } = await request(url, { method: 'POST', body: Buffer.alloc(3_000_000) })
        expect(statusCode).toBe(413)
      }
    },
  },
  {
    behavior:
      'A Location of the service itself leads the caller back to the gateway; redirects are passed on, not followed.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, serviceUrl, received } = await stage.service(
        (incoming, response) => response.writeHead(302, { location: String(incoming.headers['x-to']) }).end(),
        { path: '/api', rewrite: '/', keepHost: false },
      )
      const at = async (to: string): Promise<string | undefined> =>
        headersOf(await stage.call(port, 'GET /api/x HTTP/1.1', [`X-To: ${to}`]), 'location')[0]
      expect(await at(`${serviceUrl}/a?b=c`)).toBe('/api/a?b=c')
      expect(await at('http://other.example/a')).toBe('http://other.example/a')
      const otherPort = serviceUrl.replace(/\d+$/, '1')
      expect(await at(`${otherPort}/a`)).toBe(`${otherPort}/a`)
      expect(received).toHaveLength(3)
    },
  },
  {
    behavior: "The path and the domain of the service's cookies fit the caller's view.",
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, serviceUrl } = await stage.service(
        (incoming, response) => response.setHeader('set-cookie', String(incoming.headers['x-cookie'])).end(),
        { path: '/api', rewrite: '/', keepHost: false },
      )
      const at = async (cookie: string): Promise<string | undefined> =>
        headersOf(await stage.call(port, 'GET /api/x HTTP/1.1', [`X-Cookie: ${cookie}`]), 'set-cookie')[0]
      expect(await at('a=1; Path=/; Secure')).toBe('a=1; Path=/api/; Secure')
      expect(await at(`a=1; Domain=${new URL(serviceUrl).hostname}; HttpOnly`)).toBe('a=1; HttpOnly')
      expect(await at('a=1; Domain=other.example')).toBe('a=1; Domain=other.example')
    },
  },
]
