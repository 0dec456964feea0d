import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw } from '../helpers/gateway-rig.ts'
import { Http2Caller } from '../helpers/http2-rig.ts'
import { freePort, startProgram } from '../helpers/servers/program.ts'
import { findNginx } from '../paths/services.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())
const run = promisify(execFile)

const page = '<p>hello</p>'.repeat(500)

/** What a service answers, which a test may change between calls. */
interface Said {
  status: number
  headers: OutgoingHttpHeaders
  pieces: readonly (string | Buffer)[]
}

async function guard(compression: unknown = true, gateway: object = {}) {
  const said: Said = { status: 200, headers: { 'content-type': 'text/html' }, pieces: [page] }
  const service = await rig.serve((incoming, response) => {
    response.writeHead(said.status, said.headers)
    if (incoming.method !== 'HEAD') for (const piece of said.pieces) response.write(piece)
    response.end()
  })
  const guarded = await rig.guard({ gateway: { compression, routes: [{ to: service.url }], ...gateway } })
  return { ...guarded, service, said }
}

interface Received {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** The answer as it stands on the wire. */
function ask(url: string, headers: OutgoingHttpHeaders = {}, method = 'GET'): Promise<Received> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers: { 'accept-encoding': 'gzip, br', ...headers }, agent: false })
    asked.on('error', reject)
    asked.on('response', async answer => {
      try {
        const pieces = await answer.toArray()
        resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(pieces) })
      } catch (error) {
        reject(error)
      }
    })
    asked.end()
  })
}

function decoded({ headers, body }: Pick<Received, 'headers' | 'body'>): string {
  const encoding = headers['content-encoding']
  const plain = encoding === 'br' ? brotliDecompressSync(body) : encoding === 'gzip' ? gunzipSync(body) : body
  return plain.toString()
}

test('answers are not compressed unless the rule file asks for it', async () => {
  const { url } = await guard(false)
  const { headers, body } = await ask(url)
  expect([headers['content-encoding'], headers.vary, body.toString()]).toEqual([undefined, undefined, page])
})

test.each(['br', 'gzip'])('a caller that accepts %s gets the answer in it', async encoding => {
  const { url, said } = await guard()
  said.headers = { ...said.headers, 'content-length': page.length, 'accept-ranges': 'bytes', 'content-digest': 'x' }
  const answer = await ask(url, { 'accept-encoding': encoding })
  expect(answer.headers['content-encoding']).toBe(encoding)
  expect(answer.headers.vary).toBe('Accept-Encoding')
  expect(answer.body.length).toBeLessThan(page.length / 5)
  expect(decoded(answer)).toBe(page)
  for (const name of ['content-length', 'accept-ranges', 'content-digest']) expect(answer.headers[name]).toBe(undefined)
})

describe('an answer is left as it is', () => {
  test.each<[string, Partial<Said>]>([
    ['if it is encoded already', { headers: { 'content-type': 'text/html', 'content-encoding': 'zstd' } }],
    [
      'if it must not be changed',
      { headers: { 'content-type': 'text/html', 'cache-control': 'public, No-Transform' } },
    ],
    ['if it is a part', { status: 206, headers: { 'content-type': 'text/html', 'content-range': 'bytes 0-9/10' } }],
    [
      'if it is short',
      { headers: { 'content-type': 'text/html', 'content-length': 1000 }, pieces: ['x'.repeat(1000)] },
    ],
    ['if it is empty', { headers: { 'content-type': 'text/html', 'content-length': 0 }, pieces: [] }],
    ['if it has no type', { headers: {} }],
    ['if its type is not text', { headers: { 'content-type': 'image/png' } }],
    ['if it is a stream of events', { headers: { 'content-type': 'text/event-stream;charset=utf-8' } }],
    ['if it is gRPC', { headers: { 'content-type': 'application/grpc+json' } }],
    ['if it has no content', { status: 204, headers: { 'content-type': 'text/html' }, pieces: [] }],
  ])('an answer is not compressed %s', async (_, saying) => {
    const { url, said } = await guard()
    Object.assign(said, saying)
    const { headers, body } = await ask(url)
    expect(headers['content-encoding']).toBe((saying.headers as Record<string, string>)['content-encoding'])
    expect([headers.vary, body.toString()]).toEqual([undefined, said.pieces.join('')])
  })
})

test('Vary names Accept-Encoding once, beside what the service says, also for callers that get no encoding', async () => {
  const { url, said } = await guard()
  for (const [vary, expected] of [
    [undefined, 'Accept-Encoding'],
    ['Origin', 'Origin, Accept-Encoding'],
    ['accept-encoding', 'accept-encoding'],
    ['Origin, ACCEPT-ENCODING', 'Origin, ACCEPT-ENCODING'],
    ['*', '*'],
    [['Origin', 'Cookie'], 'Origin, Cookie, Accept-Encoding'],
  ] as const) {
    said.headers = { 'content-type': 'text/html', ...(vary !== undefined && { vary: vary as never }) }
    for (const accepted of ['gzip', 'identity', 'gzip;q=0']) {
      expect((await ask(url, { 'accept-encoding': accepted })).headers.vary).toBe(expected)
    }
  }
})

test('the answer to HEAD has the headers of the answer to GET', async () => {
  const { url, said } = await guard()
  for (const length of [undefined, 100, 6000]) {
    said.pieces = ['x'.repeat(length ?? 5000)]
    said.headers = { 'content-type': 'text/css', etag: '"a"', ...(length && { 'content-length': length }) }
    const [head, get] = [await ask(url, {}, 'HEAD'), await ask(url)]
    for (const { headers } of [head, get])
      for (const name of ['date', 'transfer-encoding', 'ratelimit', 'x-request-id']) delete headers[name]
    expect(head.headers).toEqual(get.headers)
    expect(head.body.length).toBe(0)
  }
})

test('the ETag of a compressed answer is weak, and the service gets its original one', async () => {
  const { url, said, service } = await guard()
  said.headers = { 'content-type': 'text/html', etag: '"v1"' }
  expect((await ask(url)).headers.etag).toBe('W/"v1"')
  expect((await ask(url, { 'accept-encoding': 'identity' })).headers.etag).toBe('"v1"')
  Object.assign(said, { status: 304, headers: { etag: '"v1"' }, pieces: [] })
  const cached = await ask(url, { 'if-none-match': 'W/"v0", W/"v1"' })
  expect([cached.status, cached.headers.etag]).toEqual([304, 'W/"v1"'])
  expect(service.received.at(-1)!.headers['if-none-match']).toBe('"v0", "v1"')
  expect((await ask(url, { 'if-none-match': '"v1"' })).headers.etag).toBe('"v1"')
  await ask(url, { 'if-match': 'W/"v1"' }, 'PUT')
  expect(service.received.at(-1)!.headers['if-match']).toBe('"v1"')
})

test('a route may compress, or not, whatever the gateway says', async () => {
  const { url: to } = await rig.serve((_request, response) => response.setHeader('content-type', 'text/css').end(page))
  const own = { types: 'text/css', minSize: '0B', encodings: 'gzip' }
  const routes = [{ to }, { path: '/off', to, compression: false }, { path: '/own', to, compression: own }]
  const encodings = async (compression: boolean) => {
    const { url } = await rig.guard({ gateway: { compression, routes } })
    return Promise.all(['/', '/off', '/own'].map(async path => (await ask(url + path)).headers['content-encoding']))
  }
  expect(await encodings(true)).toEqual(['br', undefined, 'gzip'])
  expect(await encodings(false)).toEqual([undefined, undefined, 'gzip'])
})

test('any body in any pieces is the same after compression, over HTTP/1.1 and HTTP/2', async () => {
  const { url, said } = await guard({ minSize: '0B', types: '*/*' })
  const caller = new Http2Caller(url)
  rig.later(() => caller.close())
  const piece = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.constant(Buffer.alloc(70_000, 'abc')))
  const pieces = fc.array(
    piece.map(bytes => Buffer.from(bytes)),
    { maxLength: 12 },
  )
  await fc.assert(
    fc.asyncProperty(pieces, fc.constantFrom('br', 'gzip'), fc.boolean(), async (body, encoding, hasLength) => {
      const whole = Buffer.concat(body)
      const length = hasLength ? { 'content-length': whole.length } : {}
      Object.assign(said, { headers: { 'content-type': 'a/b', ...length }, pieces: body.filter(one => one.length > 0) })
      const first = await ask(url, { 'accept-encoding': encoding })
      const stream = caller.open({ ':path': '/', 'accept-encoding': encoding })
      const [[head], chunks] = await Promise.all([once(stream, 'response'), stream.toArray()])
      const second = { headers: head as IncomingHttpHeaders, body: Buffer.concat(chunks) }
      for (const one of [first, second]) {
        expect(one.headers['content-encoding']).toBe(hasLength && whole.length === 0 ? undefined : encoding)
        expect(decoded(one)).toBe(whole.toString())
      }
    }),
    { numRuns: 40 },
  )
})

test('curl, fetch and a caller of HTTP/1.0 can read compressed answers', async () => {
  const { url, port } = await guard()
  expect((await run('curl', ['-s', '--compressed', url])).stdout).toBe(page)
  expect((await run('curl', ['-s', '--compressed', '--http2-prior-knowledge', url])).stdout).toBe(page)
  const fetched = await fetch(url)
  expect([fetched.headers.get('content-encoding'), await fetched.text()]).toEqual(['gzip', page])
  const old = await sendRaw(port, 'GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n')
  const [head, body] = [old.slice(0, old.indexOf('\r\n\r\n')), old.slice(old.indexOf('\r\n\r\n') + 4)]
  expect(head).toMatch(/content-encoding: gzip/i)
  expect(gunzipSync(Buffer.from(body, 'latin1')).toString()).toBe(page)
})

test('each piece of an answer without a length reaches the caller at once', async () => {
  const answers: ServerResponse[] = []
  const { url: to } = await rig.serve((_request, response) => {
    answers.push(response.writeHead(200, { 'content-type': 'text/event-stream' }))
    response.flushHeaders()
  })
  const { url } = await rig.guard({ gateway: { compression: { types: 'text/event-stream' }, routes: [{ to }] } })
  for (const encoding of ['gzip', 'br']) {
    const response = await fetch(url, { headers: { 'accept-encoding': encoding } })
    expect(response.headers.get('content-encoding')).toBe(encoding)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      answers.at(-1)!.write(event)
      expect((await reader.read()).value).toBe(event)
    }
    answers.at(-1)!.end()
  }
})

test('a compressed answer that the service aborts is aborted for the caller, too', async () => {
  const { url: to } = await rig.serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).write(page)
    setTimeout(() => response.destroy(), 50)
  })
  const { url, port } = await rig.guard({ gateway: { compression: true, routes: [{ to }] } })
  await expect(ask(url)).rejects.toThrow('aborted')
  const caller = new Http2Caller(url)
  rig.later(() => caller.close())
  expect((await caller.call({ ':path': '/', 'accept-encoding': 'gzip' })).reset).not.toBe(0)
  await expect(sendRaw(port, 'GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n')).rejects.toThrow('ECONNRESET')
})

test('a caller that does not read slows the service down, and one that leaves ends the call', async () => {
  let sent = 0
  let isClosed = false
  const { url: to } = await rig.serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    const random = Buffer.from(Array.from({ length: 65_536 }, () => Math.random() * 256))
    const send = (): void => {
      while (!response.destroyed && response.write(random)) sent += random.length
      sent += random.length
      response.once('drain', send)
    }
    response.once('close', () => {
      isClosed = true
    })
    send()
  })
  const { port } = await rig.guard({ gateway: { compression: true, routes: [{ to }] } })
  const socket = connect(port, '127.0.0.1').pause()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n')
  let before = -1
  await expect
    .poll(
      () => {
        const isStill = sent > 0 && sent === before
        before = sent
        return isStill
      },
      { timeout: 10_000, interval: 300 },
    )
    .toBe(true)
  expect(sent).toBeLessThan(40_000_000)
  socket.destroy()
  await expect.poll(() => isClosed, { timeout: 5000 }).toBe(true)
})

test('beyond 128 compressed answers at a time, further answers are sent as they are', async () => {
  const answers: ServerResponse[] = []
  const { url: to } = await rig.serve((_request, response) => {
    answers.push(response.writeHead(200, { 'content-type': 'text/html' }))
    response.write(page)
  })
  const { url } = await rig.guard({ gateway: { compression: true, routes: [{ to }] } })
  const caller = new Http2Caller(url)
  rig.later(() => caller.close())
  const encodingOf = async (session: Http2Caller): Promise<unknown> => {
    const stream = session.open({ ':path': '/', 'accept-encoding': 'gzip' })
    const [headers] = await once(stream, 'response')
    return headers['content-encoding']
  }
  const first = await Promise.all(Array.from({ length: 128 }, () => encodingOf(caller)))
  expect(new Set(first)).toEqual(new Set(['gzip']))
  const second = new Http2Caller(url)
  rig.later(() => second.close())
  expect(await encodingOf(second)).toBe(undefined)
  await caller.close()
  await expect.poll(() => encodingOf(second), { timeout: 5000 }).toBe('gzip')
})

test('the gateway compresses the same answers as nginx', async () => {
  const { url, said, service } = await guard({
    encodings: 'gzip',
    types: ['text/html', 'application/json'],
    minSize: '20B',
  })
  const folder = rig.folder()
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${folder}/${kind};`,
  )
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
    events { worker_connections 64; }
    http { access_log off; ${temporary.join(' ')}
      gzip on; gzip_vary on; gzip_types application/json; gzip_proxied any; gzip_http_version 1.0;
      server { listen 127.0.0.1:${port}; location / { proxy_pass ${service.url}; proxy_http_version 1.1; } } }`,
  )
  const nginxUrl = `http://127.0.0.1:${port}`
  const nginx = await startProgram(findNginx(), ['-p', folder, '-c', config], async () => (await fetch(nginxUrl)).ok)
  rig.later(() => nginx.stop())
  const types = ['text/html', 'TEXT/HTML; charset=utf-8', 'application/json', 'text/plain', undefined]
  const sizes = [0, 19, 20, 5000]
  const statuses = [200, 403, 404, 204, 206, 304]
  const tags = ['"a"', 'W/"a"', undefined]
  const encodings = [undefined, 'gzip', 'br']
  const accepted = ['', 'gzip', 'gzip;q=0', 'gzip;q=0.5, br', 'br', 'identity', 'deflate, gzip;q=1.0']
  const anyOf = <Value>(values: readonly Value[]) => fc.constantFrom(...values)
  const answer = fc.record({ type: anyOf(types), size: anyOf(sizes), tag: anyOf(tags), status: anyOf(statuses) })
  const rest = fc.record({
    encoding: anyOf([...encodings, undefined]),
    accepts: anyOf(accepted),
    hasLength: fc.boolean(),
  })
  const seen = ({ status, headers, body }: Received) => ({
    status,
    ...{
      encoding: headers['content-encoding'],
      etag: headers.etag,
      hasLength: headers['content-length'] !== undefined,
    },
    ...{ ranges: headers['accept-ranges'], varies: headers.vary },
    text: headers['content-encoding'] === 'gzip' && body.length > 20 ? decoded({ headers, body }) : body.toString(),
  })
  await fc.assert(
    fc.asyncProperty(answer, rest, async ({ type, size, tag, status }, { encoding, accepts, hasLength }) => {
      const isEmpty = status === 204 || status === 304
      said.status = status
      said.pieces = isEmpty || size === 0 ? [] : ['x'.repeat(size)]
      said.headers = {
        'accept-ranges': 'bytes',
        ...(type && { 'content-type': type }),
        ...(tag && { etag: tag }),
        ...(encoding && { 'content-encoding': encoding }),
        ...(hasLength && !isEmpty && { 'content-length': size }),
      }
      // an encoding must be true for a body to be compared, and nginx compresses an empty one of unknown length
      fc.pre((encoding === undefined || size === 0 || isEmpty) && (hasLength || size > 0 || isEmpty))
      const headers = { 'accept-encoding': accepts }
      const [ours, theirs] = [await ask(url, headers), await ask(nginxUrl, headers)]
      expect(seen(ours)).toEqual(seen(theirs))
    }),
    { numRuns: 100 },
  )
})
