import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'vitest'
import { sendRaw, statusesIn } from '../helpers/gateway-rig.ts'
import { type Behavior, headersOf, ok, statusOf } from './stage.ts'

const all = ['http-proxy', 'http-proxy-middleware', 'reply-from', 'nginx'] as const

/** What becomes of a call on its way to the service. */
export const requests: readonly Behavior[] = [
  {
    behavior: 'The method, the path and the query reach the service as they were sent.',
    suites: all,
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'SEARCH', 'QUERY']) {
        await stage.call(port, `${method} /a/b.html?c=d&e HTTP/1.1`)
        expect(calls.at(-1)).toMatch(new RegExp(`^${method} /a/b.html\\?c=d&e HTTP/1.1\r\n`))
      }
    },
  },
  {
    behavior: 'A query is not changed, whatever stands in it: a URL, a second question mark, broken escapes.',
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      for (const query of ['u=http://b.example/c//d', 'a?b?c', 'x=%zz', 'q=%e4%bd%a0', 'a=1&a=2', 'r=/../x', '=']) {
        await stage.call(port, `GET /a?${query} HTTP/1.1`)
        expect(calls.at(-1)).toContain(`GET /a?${query} HTTP/1.1\r\n`)
      }
    },
  },
  {
    behavior: 'A fragment is not sent on.',
    suites: ['http-proxy-middleware'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      await stage.call(port, 'GET /a?b#c HTTP/1.1')
      expect(calls[0]).toContain('GET /a?b HTTP/1.1\r\n')
    },
  },
  {
    behavior: 'A path in the address of the service stands in front of the path of the call, joined by one slash.',
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      const base = `http://127.0.0.1:${port}`
      for (const to of [`${base}/base`, `${base}/base/`]) {
        const outer = await stage.rig.guard({ gateway: { routes: [{ to }] } })
        await stage.call(outer.port, 'GET /a?b=c HTTP/1.1')
        expect(received.at(-1)!.url).toBe('/base/a?b=c')
      }
    },
  },
  {
    behavior: 'A route replaces the beginning of the path, or takes it out; the query stays.',
    suites: ['http-proxy-middleware', 'nginx'],
    check: async stage => {
      const replaced = await stage.bytes(ok, { path: '/api', rewrite: '/rest' })
      await stage.call(replaced.port, 'GET /api/foo?x=/api HTTP/1.1')
      expect(replaced.calls[0]).toContain('GET /rest/foo?x=/api HTTP/1.1')
      const removed = await stage.bytes(ok, { path: '/remove', rewrite: '/' })
      await stage.call(removed.port, 'GET /remove/api/lipsum HTTP/1.1')
      expect(removed.calls[0]).toContain('GET /api/lipsum HTTP/1.1')
    },
  },
  {
    behavior: 'No spelling of a path leads to another service, or out of the path of the address.',
    suites: ['reply-from'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      const outer = await stage.rig.guard({ gateway: { routes: [{ to: `http://127.0.0.1:${port}/base` }] } })
      for (const path of [
        '//evil.example/x',
        '/ho/%2E%2E/hi',
        '/../../x',
        '/..%2f..%2fx',
        '/@evil.example',
        '/\\evil',
      ]) {
        const before = received.length
        const status = statusOf(await stage.call(outer.port, `GET ${path} HTTP/1.1`))
        if (received.length > before) expect(received.at(-1)!.url).toMatch(/^\/base\/(?!.*\.\.)/)
        else expect(status).toBe(400)
      }
    },
  },
  {
    behavior:
      'Bodies of every content type reach the service byte for byte, with their length: JSON, forms, text, bytes, padded, compressed.',
    suites: ['http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      const body = '{\r\n  "a" : 1\r\n}\u0000\u00ff'
      for (const type of [
        'application/json',
        'application/json ; charset=utf-8',
        'application/x-www-form-urlencoded',
        'text/plain',
        'application/octet-stream',
        'multipart/form-data; boundary=x',
        'text/event-stream',
        'application/vnd.a+json',
        'nonsense',
        '',
      ]) {
        const lines = [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body, 'latin1')}`]
        const head = `POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`
        await sendRaw(port, Buffer.from(head + body, 'latin1'))
        expect([headersOf(calls.at(-1)!, 'content-type')[0] ?? '', calls.at(-1)!.split('\r\n\r\n')[1]]).toEqual([
          type,
          body,
        ])
      }
    },
  },
  {
    behavior: 'A body may come with any method, also with GET, DELETE and OPTIONS; one without a body gets none.',
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      for (const method of ['GET', 'DELETE', 'OPTIONS', 'SEARCH', 'REPORT']) {
        await stage.call(port, `${method} /a HTTP/1.1`, ['Content-Length: 4'], 'body')
        expect([headersOf(calls.at(-1)!, 'content-length'), calls.at(-1)!.endsWith('\r\n\r\nbody')]).toEqual([
          ['4'],
          true,
        ])
        await stage.call(port, `${method} /a HTTP/1.1`)
        expect([headersOf(calls.at(-1)!, 'content-length'), calls.at(-1)!.endsWith('\r\n\r\n')]).toEqual([[], true])
      }
    },
  },
  {
    behavior: 'Chunked bodies stay chunked, and an empty one leaves the connection readable.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((incoming, response) => incoming.pipe(response))
      const chunked = ['Transfer-Encoding: chunked']
      expect(await stage.call(port, 'POST /a HTTP/1.1', chunked, '3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n')).toMatch(
        /abc[\s\S]*de/,
      )
      expect(received[0]!.headers['transfer-encoding']).toBe('chunked')
      for (const method of ['DELETE', 'POST']) {
        expect(statusOf(await stage.call(port, `${method} /a HTTP/1.1`, chunked, '0\r\n\r\n'))).toBe(200)
      }
    },
  },
  {
    behavior: 'A body flows to the service while it is still being sent.',
    suites: ['nginx', 'reply-from'],
    check: async stage => {
      let onFirst: (text: string) => void = () => {}
      const first = new Promise<string>(resolve => (onFirst = resolve))
      const { port } = await stage.service((incoming, response) => {
        incoming.once('data', piece => onFirst(String(piece)))
        incoming.on('end', () => response.end('all')).resume()
      })
      const socket = connect(port, '127.0.0.1')
      socket.write('POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 8\r\n\r\nhalf')
      expect(await first).toBe('half')
      socket.write('half')
      expect(String((await once(socket, 'data'))[0])).toContain('200')
      socket.destroy()
    },
  },
  {
    behavior: 'Calls that come before earlier ones are answered, with bodies, are answered in order.',
    suites: ['nginx'],
    check: async stage => {
      const { port } = await stage.service((incoming, response) => incoming.pipe(response))
      const post = (body: string, more = ''): string =>
        `POST /a HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`
      const answer = await sendRaw(port, post('first') + post('second') + post('third', 'Connection: close\r\n'))
      expect(answer).toMatch(/first[\s\S]*second[\s\S]*third/)
    },
  },
  {
    behavior: 'A caller that waits for 100 Continue is told to go on; the service is not asked.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, calls } = await stage.bytes(ok)
      const answer = await stage.call(port, 'POST /a HTTP/1.1', ['Expect: 100-continue', 'Content-Length: 2'], 'ab')
      expect([statusesIn(answer), headersOf(calls[0]!, 'expect')]).toEqual([[100, 200], []])
    },
  },
  {
    behavior: 'When a caller leaves in the middle of its body, or before the answer, the call ends at the service too.',
    suites: ['reply-from', 'http-proxy'],
    check: async stage => {
      for (const sent of ['Content-Length: 100\r\n\r\npart', 'Content-Length: 0\r\n\r\n']) {
        let onEnd: () => void = () => {}
        let onBegin: () => void = () => {}
        const begun = new Promise<void>(resolve => (onBegin = resolve))
        const ended = new Promise<void>(resolve => (onEnd = resolve))
        const { port } = await stage.service((incoming, response) => {
          incoming.on('error', () => {}).resume()
          response.on('close', onEnd)
          onBegin()
        })
        const socket = connect(port, '127.0.0.1')
        socket.write(`POST /a HTTP/1.1\r\nHost: a\r\n${sent}`)
        await begun
        socket.destroy()
        await ended
      }
    },
  },
  {
    behavior: 'Headers that belong to the connection are not sent on, nor are those that Connection names.',
    suites: ['http-proxy', 'reply-from', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      const named = [
        'Connection: x-hop, x-other',
        'X-Hop: 1',
        'X-Other: 2',
        'Keep-Alive: 5',
        'Proxy-Connection: x',
        'TE: gzip',
      ]
      await stage.call(port, 'GET / HTTP/1.1', [...named, 'Upgrade: foo', 'X-Kept: 1'])
      const { headers } = received[0]!
      for (const name of ['x-hop', 'x-other', 'keep-alive', 'proxy-connection', 'te', 'upgrade']) {
        expect(headers).not.toHaveProperty(name)
      }
      expect(headers['x-kept']).toBe('1')
    },
  },
  {
    behavior: 'Connection cannot name away what the service must know: the length, the host, who called.',
    suites: ['reply-from'],
    check: async stage => {
      const { port, received } = await stage.service((incoming, response) => incoming.pipe(response))
      const names = 'content-length, host, x-forwarded-for'
      const answer = await stage.call(port, 'POST / HTTP/1.1', [`Connection: ${names}`, 'Content-Length: 2'], 'ab')
      expect([answer.includes('\r\nab\r\n'), received[0]!.headers]).toMatchObject([
        true,
        { 'content-length': '2', host: 'shop.example', 'x-forwarded-for': '127.0.0.1' },
      ])
    },
  },
  {
    behavior: 'Several headers of one name stay several values in their order.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      await stage.call(port, 'GET / HTTP/1.1', ['X-A: 1', 'X-A: 2', 'Cookie: a=1', 'Cookie: b=2'])
      expect(received[0]!.headers).toMatchObject({ 'x-a': '1, 2', cookie: 'a=1; b=2' })
    },
  },
  {
    behavior: 'Authorization reaches the service.',
    suites: ['http-proxy'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      await stage.call(port, 'GET / HTTP/1.1', ['Authorization: Basic YTpi'])
      expect(received[0]!.headers.authorization).toBe('Basic YTpi')
    },
  },
  {
    behavior: "The service is told the caller's Host, or its own name with its port.",
    suites: ['http-proxy', 'http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      const kept = await stage.service((_, response) => response.end())
      await stage.call(kept.port, 'GET / HTTP/1.1', ['Host: shop.example:8080'])
      expect(kept.received[0]!.headers.host).toBe('shop.example:8080')
      const own = await stage.service((_, response) => response.end(), { keepHost: false })
      await stage.call(own.port)
      expect(own.received[0]!.headers.host).toBe(new URL(own.serviceUrl).host)
    },
  },
  {
    behavior:
      'The service is told who called, by which host and protocol; an address that the caller claims comes before.',
    suites: ['http-proxy', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.end())
      await stage.call(port, 'GET / HTTP/1.1', ['X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Proto: https'])
      expect(received[0]!.headers).toMatchObject({
        'x-forwarded-for': '203.0.113.9, 127.0.0.1',
        'x-forwarded-host': 'shop.example',
        'x-forwarded-proto': 'http',
        'x-forwarded-port': '80',
      })
    },
  },
  {
    behavior: 'A call of HTTP/1.0 without a Host, or with an empty one, is served.',
    suites: ['http-proxy'],
    check: async stage => {
      const { port } = await stage.service((_, response) => response.end('ok'))
      expect(await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/ 200 OK[\s\S]*ok$/)
      expect(await sendRaw(port, 'GET / HTTP/1.0\r\nHost:\r\n\r\n')).toMatch(/ 200 OK[\s\S]*ok$/)
    },
  },
  {
    behavior: 'A route sets and removes headers of calls and of answers.',
    suites: ['http-proxy-middleware', 'reply-from', 'nginx'],
    check: async stage => {
      const { port, received } = await stage.service((_, response) => response.setHeader('x-removed', '1').end(), {
        requestHeaders: { set: { 'x-added': 'yes', 'x-kept': 'changed' }, remove: ['x-gone'] },
        responseHeaders: { set: { 'x-added': 'too' }, remove: ['x-removed'] },
      })
      const answer = await stage.call(port, 'GET / HTTP/1.1', ['X-Gone: 1', 'X-Kept: 1'])
      expect(received[0]!.headers).toMatchObject({ 'x-added': 'yes', 'x-kept': 'changed' })
      expect(received[0]!.headers).not.toHaveProperty('x-gone')
      expect([headersOf(answer, 'x-added'), headersOf(answer, 'x-removed')]).toEqual([['too'], []])
    },
  },
  {
    behavior: 'Trailers of a call reach the service.',
    suites: ['reply-from'],
    check: async stage => {
      const { port, received } = await stage.service((incoming, response) =>
        incoming.resume().on('end', () => response.end()),
      )
      const lines = ['Transfer-Encoding: chunked', 'Trailer: X-Sum', 'TE: trailers']
      await stage.call(port, 'POST / HTTP/1.1', lines, '1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n')
      expect([received[0]!.trailers, received[0]!.headers.trailer]).toEqual([{ 'x-sum': '1' }, 'X-Sum'])
    },
  },
]
