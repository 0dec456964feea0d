import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, createServer, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Limiter } from 'diana-limiter'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GatewayRig, type Guarded } from '../helpers/gateway-rig.ts'

/*
 * Who ended a call, and how: the table below makes calls end in every way, over every protocol, and each row names the ending. What
 * rules make of an ending is in `charges`.
 */

const ESTIMATE = 50

/** What a call leaves charged by rules that count failures, by rules that count successes and by tokens; and whether it clears counts. */
const charges = {
  'the service succeeded': { failures: 0, successes: 1, clears: true, tokens: ESTIMATE },
  'the service succeeded and reported its usage': { failures: 0, successes: 1, clears: true, tokens: 7 },
  'the service succeeded, and the call only asked': { failures: 0, successes: 1, clears: false, tokens: ESTIMATE },
  'the service opened a tunnel': { failures: 0, successes: 0, clears: false, tokens: ESTIMATE },
  'the service refused': { failures: 1, successes: 0, clears: false, tokens: 0 },
  'the service refused with a status of gRPC': { failures: 1, successes: 0, clears: false, tokens: 0 },
  'the service broke off': { failures: 1, successes: 0, clears: false, tokens: 0 },
  'the gateway refused': { failures: 1, successes: 0, clears: false, tokens: 0 },
  'the gateway answered in place of a service': { failures: 0, successes: 0, clears: false, tokens: 0 },
  'the caller ended it': { failures: 1, successes: 1, clears: false, tokens: ESTIMATE },
  'the caller ended it after a report': { failures: 1, successes: 1, clears: false, tokens: 7 },
} as const

type Ending = keyof typeof charges

const by = 'header:x-key'
const rules = [
  { id: 'failures', by, limit: '1000/d', countWhen: 'failed' },
  { id: 'successes', by, limit: '1000/d', countWhen: '200-399' },
  { id: 'clears', by, limit: '1000/d', resetWhen: 'success' },
  {
    id: 'tokens',
    by,
    limit: '100000/d',
    cost: { reserve: { from: 'header:x-tokens', min: ESTIMATE, max: ESTIMATE }, settle: 'json:usage.total' },
  },
  { id: 'open', by, limit: 100, algorithm: 'concurrency' },
]

const rig = new GatewayRig()
let http1: string
let http2: string

/** The keys of calls that a service has got, and does not answer. */
const waiting = new Set<string>()
const whenWaiting = (key: string) => until(async () => waiting.has(key))

/** How many calls of each key a service has refused. */
const guessed = new Map<string, number>()

/** Answers as the header `x-do` says. */
const services: Record<string, (response: ServerResponse) => void> = {
  succeed: response => response.end('{}'),
  refuse: response => {
    const key = String(response.req.headers['x-key'])
    guessed.set(key, (guessed.get(key) ?? 0) + 1)
    response.writeHead(401).end()
  },
  report: response => response.end('{"usage":{"total":7}}'),
  wait: ({ req }) => void waiting.add(String(req.headers['x-key'])),
  'break before the head': ({ socket }) => socket!.destroy(),
  'reset before the head': ({ socket }) => socket!.resetAndDestroy(),
  'break after the head': response => {
    response.writeHead(200, { 'content-length': 100 }).flushHeaders()
    setTimeout(() => response.socket!.destroy(), 20)
  },
  'break in the body': response => {
    response.writeHead(200).write('{"a":')
    setTimeout(() => response.socket!.destroy(), 20)
  },
  'reset in the body': response => {
    response.writeHead(200).write('{"a":')
    setTimeout(() => response.socket!.resetAndDestroy(), 20)
  },
  'break in front of the trailers': response => {
    response.writeHead(200, { trailer: 'x-a' }).write('{"a":1}')
    setTimeout(() => response.socket!.end(), 20)
  },
  'grpc-status 0 in the body': response => endWeb(response, 'application/grpc-web+proto', 0),
  'grpc-status 16 in the body': response => endWeb(response, 'application/grpc-web+proto', 16),
  'grpc-status 0 in text': response => endWeb(response, 'application/grpc-web-text', 0),
  'grpc-status 16 in text': response => endWeb(response, 'application/grpc-web-text', 16),
  begin: response => response.writeHead(200).write('{"a":'),
  'begin and report': response =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"usage":{"total":7}}\n\n'),
}

/** An answer of gRPC-Web: a message, and the trailers in a frame behind it. */
function endWeb(response: ServerResponse, type: string, status: number): void {
  const trailers = `grpc-status:${status}\r\n`
  const frames = Buffer.concat([Buffer.from([0, 0, 0, 0, 1, 7, 0x80, 0, 0, 0, trailers.length]), Buffer.from(trailers)])
  response.setHeader('content-type', type)
  response.end(type.endsWith('text') ? frames.toString('base64') : frames)
}

const grpc = { ':status': 200, 'content-type': 'application/grpc' }

/** The same for services that speak HTTP/2, gRPC among them. */
const streams: Record<string, (stream: ServerHttp2Stream, key: string) => void> = {
  succeed: stream => {
    stream.respond({ ':status': 200 })
    stream.end('{}')
  },
  refuse: stream => stream.respond({ ':status': 401 }, { endStream: true }),
  wait: (_stream, key) => void waiting.add(key),
  'break before the head': stream => stream.close(2),
  'break in the body': stream => {
    // with trailers to come, Node does not end the answer before it resets the stream
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.write('{"a":')
    setTimeout(() => stream.close(2), 20)
  },
  'break the connection': stream => {
    stream.respond({ ':status': 200 })
    stream.write('{"a":')
    setTimeout(() => stream.session?.destroy(), 20)
  },
  begin: stream => {
    stream.respond({ ':status': 200 })
    stream.write('{"a":')
  },
  'grpc-status 0 in trailers': stream => endGrpc(stream, { 'grpc-status': '0' }),
  'grpc-status 16 in trailers': stream => endGrpc(stream, { 'grpc-status': '16' }),
  'grpc-status 99 in trailers': stream => endGrpc(stream, { 'grpc-status': '99' }),
  'a grpc-status that is no number': stream => endGrpc(stream, { 'grpc-status': 'OK' }),
  'trailers without a grpc-status': stream => endGrpc(stream, { 'x-a': '1' }),
  'grpc-status 16 alone': stream => stream.respond({ ...grpc, 'grpc-status': '16' }, { endStream: true }),
  'grpc-status 0 alone': stream => stream.respond({ ...grpc, 'grpc-status': '0' }, { endStream: true }),
  'begin gRPC': stream => {
    stream.respond(grpc, { waitForTrailers: true })
    stream.write(Buffer.alloc(5))
  },
  'break gRPC in the body': stream => {
    stream.respond(grpc, { waitForTrailers: true })
    stream.write(Buffer.alloc(5))
    setTimeout(() => stream.close(2), 20)
  },
}

function endGrpc(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  stream.respond(grpc, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end(Buffer.alloc(5))
}

beforeAll(async () => {
  const service = await rig.serve((request, response) => {
    request.on('error', () => {}).resume()
    services[String(request.headers['x-do'])]!(response)
  })
  service.server.on('upgrade', (request, socket) => {
    const isOpen = request.headers['x-do'] === 'open'
    socket.end(
      isOpen ? 'HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n' : 'HTTP/1.1 401 N\r\n\r\n',
    )
  })
  http1 = service.url
  const server = createServer()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {}).resume()
    streams[String(headers['x-do'])]!(stream, String(headers['x-key']))
  })
  server.on('session', session => {
    session.on('error', () => {})
    rig.later(() => session.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  rig.later(() => server.close())
  http2 = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => rig.close())

interface Scene {
  readonly gateway: Guarded
  readonly key: string
}

type Play = (scene: Scene) => Promise<void>

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** `once` rejects on an error, which many of these calls end with. */
async function closed(stream: Duplex): Promise<void> {
  if (!stream.closed) await new Promise(resolve => stream.once('close', resolve))
}

/** A call of HTTP/1.1, answered or not. */
function overHttp1(path: string, headers: OutgoingHttpHeaders = {}, { method = 'POST', body = '' } = {}): Play {
  return async ({ gateway, key }) => {
    const request = httpRequest(new URL(path, gateway.url), {
      ...{ method, agent: false, path },
      headers: { 'x-key': key, ...headers },
    })
    request.end(body)
    await over(request)
  }
}

async function over(request: ClientRequest): Promise<void> {
  await new Promise<void>(resolve => {
    request.on('error', () => resolve())
    request.on('upgrade', (_answer, socket) => socket.on('close', resolve).resume().end())
    request.on('response', response => {
      response.on('error', () => {})
      response.on('close', resolve)
      response.resume()
    })
  })
}

/** A call over one connection of raw bytes; `next` once the answer has begun, or the service has got the call. */
function overSocket(head: string, { first = '', next }: { first?: string; next: string | 'leave' | 'reset' }): Play {
  return async ({ gateway, key }) => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`${head}\r\nHost: a\r\nX-Key: ${key}\r\n\r\n${first}`)
    await Promise.race([once(socket, 'data'), whenWaiting(key)])
    socket.resume()
    if (next === 'reset') socket.resetAndDestroy()
    else if (next === 'leave') socket.destroy()
    else socket.write(next)
    await closed(socket)
  }
}

interface Http2Options {
  readonly body?: string | Buffer
  /** What the caller does once the answer has begun, or the service has got the call. */
  readonly next?: ((stream: ReturnType<ClientHttp2Session['request']>) => void) | undefined
}

function overHttp2(path: string, headers: OutgoingHttpHeaders = {}, { body = '', next }: Http2Options = {}): Play {
  return async ({ gateway, key }) => {
    const session = connectHttp2(gateway.url)
    session.on('error', () => {})
    const stream = session.request({ ':method': 'POST', ':path': path, 'x-key': key, ...headers })
    stream.on('error', () => {})
    stream.resume()
    if (next === undefined) stream.end(body)
    else {
      stream.write(body)
      await Promise.race([once(stream, 'response'), whenWaiting(key)])
      next(stream)
    }
    await closed(stream)
    session.close()
  }
}

const grpcCall = { 'content-type': 'application/grpc', te: 'trailers' }
const large = 'x'.repeat(300_000)
const chunk = `${large.length.toString(16)}\r\n${large}\r\n`
const post = (path: string, how: string) => `POST ${path} HTTP/1.1\r\nX-Do: ${how}\r\nTransfer-Encoding: chunked`
const websocket = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'x' },
}
const withoutBody = { method: 'GET' }
const upgrade = (how: string) => overHttp1('/http1', { ...websocket, 'x-do': how }, withoutBody)

const calls: [title: string, play: Play, ending: Ending][] = [
  ['HTTP/1, answered 200', overHttp1('/http1', { 'x-do': 'succeed' }), 'the service succeeded'],
  [
    'HTTP/1, answered 200 with a usage',
    overHttp1('/http1', { 'x-do': 'report' }),
    'the service succeeded and reported its usage',
  ],
  ['HTTP/1, answered 401', overHttp1('/http1', { 'x-do': 'refuse' }), 'the service refused'],
  ...['HEAD', 'OPTIONS'].map((method): [string, Play, Ending] => [
    `HTTP/1, ${method} answered 200`,
    overHttp1('/http1', { 'x-do': 'succeed' }, { method }),
    'the service succeeded, and the call only asked',
  ]),
  ['HTTP/2, answered 200', overHttp2('/http1', { 'x-do': 'succeed' }), 'the service succeeded'],
  ['HTTP/2, answered 401', overHttp2('/http1', { 'x-do': 'refuse' }), 'the service refused'],
  ['HTTP/2 to HTTP/2, answered 200', overHttp2('/http2', { 'x-do': 'succeed' }), 'the service succeeded'],
  ['HTTP/1 to HTTP/2, answered 401', overHttp1('/http2', { 'x-do': 'refuse' }), 'the service refused'],
  [
    'a content type of gRPC with an answer that is none',
    overHttp1('/http1', { 'x-do': 'succeed', ...grpcCall }),
    'the service succeeded',
  ],
  [
    'a content type of gRPC with a refusal that is none',
    overHttp1('/http1', { 'x-do': 'refuse', ...grpcCall }),
    'the service refused',
  ],
  ['a WebSocket that is opened', upgrade('open'), 'the service opened a tunnel'],
  ['a WebSocket that is refused', upgrade('refuse'), 'the service refused'],

  ...['grpc-status 0 in trailers', 'grpc-status 0 alone'].map((how): [string, Play, Ending] => [
    `gRPC, ${how}`,
    overHttp2('/http2', { 'x-do': how, ...grpcCall }),
    'the service succeeded',
  ]),
  ...[
    'grpc-status 16 in trailers',
    'grpc-status 99 in trailers',
    'a grpc-status that is no number',
    'trailers without a grpc-status',
    'grpc-status 16 alone',
  ].flatMap((how): [string, Play, Ending][] => [
    [`gRPC, ${how}`, overHttp2('/http2', { 'x-do': how, ...grpcCall }), 'the service refused with a status of gRPC'],
    [
      `gRPC asked for as JSON over HTTP/1, ${how}`,
      overHttp1('/http2', { 'x-do': how, 'content-type': 'application/json' }),
      'the service refused with a status of gRPC',
    ],
  ]),

  ...['body', 'text'].flatMap((place): [string, Play, Ending][] => [
    [
      `gRPC-Web, grpc-status 0 in the ${place}`,
      overHttp1('/http1', { 'x-do': `grpc-status 0 in ${place === 'text' ? '' : 'the '}${place}` }),
      'the service succeeded',
    ],
    [
      `gRPC-Web over HTTP/2, grpc-status 16 in the ${place}`,
      overHttp2('/http1', { 'x-do': `grpc-status 16 in ${place === 'text' ? '' : 'the '}${place}` }),
      'the service refused with a status of gRPC',
    ],
  ]),
  ...['break before the head', 'reset before the head'].flatMap((how): [string, Play, Ending][] => [
    [`HTTP/1, ${how}`, overHttp1('/http1', { 'x-do': how }), 'the gateway refused'],
    [`gRPC over HTTP/1, ${how}`, overHttp1('/http1', { 'x-do': how, ...grpcCall }), 'the gateway refused'],
    [`HTTP/2, ${how}`, overHttp2('/http1', { 'x-do': how }), 'the gateway refused'],
  ]),
  ...['break after the head', 'break in the body', 'reset in the body', 'break in front of the trailers'].flatMap(
    (how): [string, Play, Ending][] => [
      [`HTTP/1, ${how}`, overHttp1('/http1', { 'x-do': how }), 'the service broke off'],
      [`gRPC over HTTP/1, ${how}`, overHttp1('/http1', { 'x-do': how, ...grpcCall }), 'the service broke off'],
      [`HTTP/2, ${how}`, overHttp2('/http1', { 'x-do': how }), 'the service broke off'],
    ],
  ),
  [
    'HTTP/2 service, break before the head',
    overHttp2('/http2', { 'x-do': 'break before the head' }),
    'the gateway refused',
  ],
  ...['break in the body', 'break the connection', 'break gRPC in the body'].flatMap(
    (how): [string, Play, Ending][] => [
      [`HTTP/2 to HTTP/2, ${how}`, overHttp2('/http2', { 'x-do': how }), 'the service broke off'],
      [`HTTP/1 to HTTP/2, ${how}`, overHttp1('/http2', { 'x-do': how }), 'the service broke off'],
    ],
  ),

  ...(
    [
      ['JSON', {}],
      ['gRPC', grpcCall],
      ['gRPC-Web', { 'content-type': 'application/grpc-web+proto' }],
      ['gRPC-Web in text', { 'content-type': 'application/grpc-web-text' }],
    ] as const
  ).flatMap(([kind, headers]) => [
    ...[
      ['a service that cannot be reached', '/nowhere', {}],
      ['a service that does not answer in time', '/http1', { 'x-do': 'wait' }],
      ['a path without a route', '/none', {}],
      ['a body that is announced too large', '/http1', { 'content-length': 1_000_000 }],
      ['TRACE', '/http1', { ':method': 'TRACE' }],
    ].flatMap(([what, path, more]): [string, Play, Ending][] => {
      const { ':method': method = 'POST', ...sent } = more as Record<string, string>
      const body = sent['content-length'] === undefined ? '' : 'x'
      return [
        [
          `${kind} over HTTP/1, ${what}`,
          overHttp1(path as string, { ...headers, ...sent }, { method, body }),
          'the gateway refused',
        ],
        [
          `${kind} over HTTP/2, ${what}`,
          overHttp2(path as string, { ...headers, ...(more as object) }, body === '' ? {} : { body, next: () => {} }),
          'the gateway refused',
        ],
      ]
    }),
    ...[
      ['an answer of a route', '/answer', {}],
      ['a redirect', '/redirect', {}],
    ].flatMap(([what, path]): [string, Play, Ending][] => [
      [
        `${kind} over HTTP/1, ${what}`,
        overHttp1(path as string, headers),
        'the gateway answered in place of a service',
      ],
      [
        `${kind} over HTTP/2, ${what}`,
        overHttp2(path as string, headers),
        'the gateway answered in place of a service',
      ],
    ]),
    [
      `${kind}, OPTIONS of the whole server`,
      overHttp1('*', headers, { method: 'OPTIONS' }),
      'the gateway answered in place of a service',
    ] as [string, Play, Ending],
  ]),

  ...['wait', 'begin'].flatMap((how): [string, Play, Ending][] => [
    [
      `HTTP/1, the caller leaves (${how})`,
      overSocket(`GET /http1 HTTP/1.1\r\nX-Do: ${how}`, { next: 'leave' }),
      'the caller ended it',
    ],
    [
      `HTTP/1, the caller resets (${how})`,
      overSocket(`GET /http1 HTTP/1.1\r\nX-Do: ${how}`, { next: 'reset' }),
      'the caller ended it',
    ],
    [
      `HTTP/1, the caller leaves in its body (${how})`,
      overSocket(post('/http1', how), { first: '1\r\nx\r\n', next: 'leave' }),
      'the caller ended it',
    ],
    [
      `HTTP/1, the caller resets in its body (${how})`,
      overSocket(post('/http1', how), { first: '1\r\nx\r\n', next: 'reset' }),
      'the caller ended it',
    ],
    [
      `HTTP/1, a bad chunk (${how})`,
      overSocket(post('/http1', how), { first: '1\r\nx\r\n', next: 'zz\r\n' }),
      'the caller ended it',
    ],
    [
      `HTTP/1 to HTTP/2, a bad chunk (${how})`,
      overSocket(post('/http2', how), { first: '1\r\nx\r\n', next: 'zz\r\n' }),
      'the caller ended it',
    ],
    [
      `HTTP/1, a body that becomes too large (${how})`,
      overSocket(post('/http1', how), { first: '1\r\nx\r\n', next: chunk }),
      'the caller ended it',
    ],
    [
      `HTTP/1 to HTTP/2, a body that becomes too large (${how})`,
      overSocket(post('/http2', how), { first: '1\r\nx\r\n', next: chunk }),
      'the caller ended it',
    ],
    [
      `gRPC over HTTP/1, a body that becomes too large (${how})`,
      overSocket(`${post('/http1', how)}\r\nContent-Type: application/grpc`, { first: '1\r\nx\r\n', next: chunk }),
      'the caller ended it',
    ],
    [
      `HTTP/2, a body that becomes too large (${how})`,
      overHttp2('/http1', { 'x-do': how }, { body: 'x', next: stream => stream.write(large) }),
      'the caller ended it',
    ],
    [
      `HTTP/2 to HTTP/2, a body that becomes too large (${how})`,
      overHttp2('/http2', { 'x-do': how }, { body: 'x', next: stream => stream.write(large) }),
      'the caller ended it',
    ],
    ...[0, 2, 8].flatMap((code): [string, Play, Ending][] => [
      [
        `HTTP/2, the caller resets with code ${code} (${how})`,
        overHttp2('/http1', { 'x-do': how }, { body: 'x', next: stream => stream.close(code) }),
        'the caller ended it',
      ],
      [
        `HTTP/2 to HTTP/2, the caller resets with code ${code} (${how})`,
        overHttp2('/http2', { 'x-do': how }, { body: 'x', next: stream => stream.close(code) }),
        'the caller ended it',
      ],
    ]),
    [
      `HTTP/2, the caller closes the connection (${how})`,
      overHttp2('/http1', { 'x-do': how }, { body: 'x', next: stream => stream.session!.destroy() }),
      'the caller ended it',
    ],
    [
      `gRPC, a deadline of the caller (${how})`,
      overHttp2('/http1', { 'x-do': how, ...grpcCall, 'grpc-timeout': '100m' }),
      'the caller ended it',
    ],
  ]),
  [
    'gRPC, a deadline of the caller after the answer has begun',
    overHttp2('/http2', { 'x-do': 'begin gRPC', ...grpcCall, 'grpc-timeout': '100m' }),
    'the caller ended it',
  ],
  [
    'HTTP/1, the caller leaves after a report',
    overSocket('GET /http1 HTTP/1.1\r\nX-Do: begin and report', { next: 'leave' }),
    'the caller ended it after a report',
  ],
  [
    'HTTP/1, a body that becomes too large after a report',
    overSocket(post('/http1', 'begin and report'), { first: '1\r\nx\r\n', next: chunk }),
    'the caller ended it after a report',
  ],
]

const chains: [string, object][] = [
  ['a gateway without filters', {}],
  ['a gateway with a filter', { filters: [async () => {}] }],
]

let keys = 0

describe.each(chains)('%s', (_chain, options) => {
  let gateway: Guarded
  beforeAll(async () => {
    const timeouts = { headers: '400ms', connect: '1s' }
    const limits = { body: '256KiB' }
    gateway = await rig.guard(
      {
        rules,
        gateway: {
          routes: [
            { path: '/http1', to: http1, timeouts, limits },
            { path: '/http2', to: http2, protocol: 'http2', timeouts, limits },
            { path: '/nowhere', to: rig.nowhere(), timeouts },
            { path: '/answer', answer: { body: 'ok' } },
            { path: '/redirect', redirect: { to: '/answer' } },
          ],
        },
      },
      options,
    )
  })

  /** What a call leaves charged to a caller with two failures before it, so that what clears them is seen. */
  const chargesOf = async (play: Play): Promise<number[]> => {
    const key = `key-${++keys}`
    const isOver = async (): Promise<boolean> => (await charged(gateway.limiter, key))[4] === 0
    for (let i = 0; i < 2; i++) await overHttp1('/http1', { 'x-do': 'refuse' })({ gateway, key })
    await until(isOver)
    await play({ gateway, key })
    await until(isOver)
    return (await charged(gateway.limiter, key)).slice(0, 4)
  }

  test.each(Object.keys(charges) as Ending[])('every call that ends so is charged alike: %s', async ending => {
    const { failures, successes, clears, tokens } = charges[ending]
    const alike = calls.filter(([, , one]) => one === ending)
    const found = await Promise.all(alike.map(async ([title, play]) => [title, await chargesOf(play)]))
    const expected = alike.map(([title]) => [title, [2 + failures, successes, clears ? 0 : 3, tokens]])
    expect(found).toEqual(expected)
    expect(found.length).toBeGreaterThan(0)
  })
})

/** Gives up after a while: what is expected then fails. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (const started = performance.now(); !(await isTrue()) && performance.now() - started < 5000; ) await pause(5)
}

test('no call that the gateway answers itself lets a caller guess on', async () => {
  const by = 'header:x-key'
  const login = { id: 'login', by, limit: '10/15m', countWhen: 'failed', resetWhen: 'success' }
  const gateway = await rig.guard({
    rules: [login],
    gateway: {
      routes: [
        { path: '/http1', to: http1, limits: { body: '1KiB' } },
        { path: '/nowhere', to: rig.nowhere() },
        { path: '/answer', answer: { body: 'ok' } },
      ],
    },
  })
  const tricks: [string, Play][] = [
    ['a path without a route', overHttp1('/none', grpcCall)],
    ['a body that is announced too large', overHttp1('/http1', grpcCall, { body: 'x'.repeat(2000) })],
    ['a service that cannot be reached', overHttp1('/nowhere', grpcCall)],
    ['an answer of a route', overHttp1('/answer', grpcCall)],
    ['TRACE', overHttp1('/http1', grpcCall, { method: 'TRACE' })],
    ['OPTIONS', overHttp1('*', {}, { method: 'OPTIONS' })],
    ['OPTIONS of the service', overHttp1('/http1', { 'x-do': 'succeed' }, { method: 'OPTIONS' })],
    ['a path without a route, over HTTP/2', overHttp2('/none', grpcCall)],
  ]
  const guesses = await Promise.all(
    tricks.map(async ([title, trick]) => {
      const key = `guesses: ${title}`
      for (let i = 0; i < 15; i++) {
        await trick({ gateway, key })
        await overHttp1('/http1', { 'x-do': 'refuse' })({ gateway, key })
      }
      return [title, guessed.get(key) ?? 0] as const
    }),
  )
  for (const [title, count] of guesses) expect(`${title}: ${count <= 10 ? 'bounded' : count}`).toBe(`${title}: bounded`)
})

/** What each rule has counted for a key. */
async function charged(limiter: Limiter, key: string): Promise<number[]> {
  const { decisions } = await limiter.peek({ method: 'POST', path: '/', headers: { 'x-key': key } }, { cost: 0 })
  return rules.map(({ id }) => {
    const { limit, remaining } = decisions.find(({ rule }) => rule === id)!
    return limit - remaining
  })
}
