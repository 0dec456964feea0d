import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server, type Http2ServerResponse } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana as expressFilter } from './express.ts'
import { diana as fastifyFilter } from './fastify.ts'
import { diana as fetchFilter } from './fetch.ts'
import { guard, diana as httpFilter } from './http.ts'

/*
 * Who ended a call, and how, as filters see it: the application answered, the application broke off, or the caller did. What rules make
 * of each is in `charges`.
 */

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Failures, successes, and calls that nothing has cleared, after two failures before. */
const charges = {
  succeeded: [2, 1, 0],
  'only asked': [2, 1, 3],
  opened: [2, 0, 3],
  refused: [3, 0, 3],
  'broken off by the application': [3, 0, 3],
  'ended by the caller': [3, 1, 3],
} as const

type Ending = keyof typeof charges

const rules = [
  { id: 'failures', limit: '1000/d', countWhen: 'failed' },
  { id: 'successes', limit: '1000/d', countWhen: '200-399' },
  { id: 'clears', limit: '1000/d', resetWhen: 'success' },
  { id: 'open', limit: 100, algorithm: 'concurrency' },
]

async function chargesOf(play: (limiter: Limiter) => Promise<unknown>): Promise<number[]> {
  const limiter = await createLimiter({ rules: rules as never })
  closing.push(() => limiter.close())
  const call = { method: 'POST', path: '/' }
  const charged = async (): Promise<number[]> =>
    (await limiter.peek(call, { cost: 0 })).decisions.map(({ limit, remaining }) => limit - remaining)
  for (let i = 0; i < 2; i++) (await limiter.check(call)).end({ status: 401 })
  await play(limiter)
  for (let tries = 0; (await charged())[3] !== 0 && tries < 1000; tries++) await pause(3)
  return (await charged()).slice(0, 3)
}

type Play = (port: number, hasCome: () => boolean) => Promise<void>

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

async function until(isTrue: () => boolean): Promise<void> {
  for (const started = performance.now(); !isTrue() && performance.now() - started < 5000; ) await pause(3)
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const answers: Record<string, Answer> = {
  succeed: (_request, response) => response.end('{}'),
  refuse: (_request, response) => response.writeHead(401).end(),
  'destroy before the head': (_request, response) => response.destroy(),
  'destroy with an error': (_request, response) => response.destroy(new Error('no')),
  'destroy the socket before the head': (_request, { socket }) => socket!.destroy(),
  'reset the socket': (_request, { socket }) => socket!.resetAndDestroy(),
  'destroy in the turn of the head': (_request, response) => {
    response.write('a')
    response.destroy()
  },
  'destroy in the body': (_request, response) => {
    response.write('a')
    setTimeout(() => response.destroy(), 10)
  },
  'destroy the socket in the body': (request, response) => {
    response.write('a')
    setTimeout(() => request.socket.destroy(), 10)
  },
  wait: () => {},
  begin: (_request, response) => void response.write('a'),
  'give up late': (_request, response) => {
    response.write('a')
    setTimeout(() => response.destroy(), 400)
  },
  'give up after the caller': (request, response) => {
    response.write('a')
    request.socket.once('end', () => response.destroy())
  },
  'write more than is read': (_request, response) => {
    response.write(Buffer.alloc(30_000_000))
    setTimeout(() => response.destroy(), 400)
  },
}

/** Applications with a filter in front of one listener. */
const applications: Record<string, (limiter: Limiter, answer: Answer) => Promise<number>> = {
  'node:http': async (limiter, answer) => start(createServer(httpFilter(limiter, answer as never))),
  'node:http with a listener for bad bytes': async (limiter, answer) => {
    const server = createServer(httpFilter(limiter, answer as never))
    server.on('clientError', (_error, socket) => socket.destroy())
    return start(server)
  },
  express: async (limiter, answer) => {
    const app = express().use(expressFilter(limiter))
    app.use((request, response) => answer(request, response))
    return start(createServer(app))
  },
  fastify: async (limiter, answer) => {
    const app = fastify()
    await app.register(fastifyFilter(limiter))
    app.route({
      method: ['GET', 'POST', 'HEAD', 'OPTIONS'],
      url: '/',
      handler: (request, reply) => {
        reply.hijack()
        answer(request.raw, reply.raw)
      },
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    app.server.closeAllConnections()
    closing.push(() => app.server.closeAllConnections())
    return (app.server.address() as { port: number }).port
  },
}

async function start(server: Parameters<typeof listen>[0]): Promise<number> {
  const { port, close } = await listen(server)
  closing.push(close)
  return port
}

function ask(method = 'POST') {
  return async (port: number): Promise<void> => {
    const request = httpRequest({ port, method, agent: false, path: '/' })
    await new Promise<void>(resolve => {
      request.on('error', () => resolve())
      request.on('response', response =>
        response
          .on('error', () => {})
          .on('close', resolve)
          .resume(),
      )
      request.end()
    })
  }
}

/** Writes bytes, and does something once the application has got the call. */
function write(text: string, next: (socket: Socket) => void): Play {
  return async (port, hasCome) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(text)
    await until(hasCome)
    await pause(20)
    next(socket)
    // a connection that is not read does not notice its end
    await Promise.race([pause(1000), new Promise(resolve => socket.once('close', resolve))])
    socket.destroy()
  }
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const part = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx'
const leave = (socket: Socket): void => void socket.destroy()

const untyped = write(part, () => {})

const calls: [answer: string, play: Play, ending: Ending][] = [
  ['succeed', ask(), 'succeeded'],
  ['succeed', ask('GET'), 'succeeded'],
  ['succeed', ask('HEAD'), 'only asked'],
  ['succeed', ask('OPTIONS'), 'only asked'],
  ['refuse', ask(), 'refused'],
  ...Object.keys(answers)
    .filter(name => name.includes('destroy') || name.includes('reset'))
    .map((name): [string, Play, Ending] => [name, ask('GET'), 'broken off by the application']),
  ['wait', write(get, leave), 'ended by the caller'],
  ['begin', write(get, leave), 'ended by the caller'],
  ['begin', write(get, socket => void socket.resetAndDestroy()), 'ended by the caller'],
  // bytes behind the request that are no HTTP
  ['begin', write(get, socket => void socket.write('\0\0\0\r\n\r\n')), 'ended by the caller'],
  ['wait', write(get, socket => void socket.write('no HTTP\r\n\r\n')), 'ended by the caller'],
  // what the application gives up since the caller does not go on
  ['give up after the caller', write(get, socket => void socket.end()), 'ended by the caller'],
  ['give up late', untyped, 'ended by the caller'],
  ['write more than is read', write(get, socket => void socket.pause()), 'ended by the caller'],
]

const UNTYPED = calls.findIndex(([, play]) => play === untyped)

describe.each(Object.entries(applications))('a call to %s', (name, open) => {
  it('a call is charged by who ended it, and how', async () => {
    // Fastify refuses a body of no type itself
    const played = name === 'fastify' ? calls.filter((_, index) => index !== UNTYPED) : calls
    const found = await Promise.all(
      played.map(async ([answered, play, ending], index) => {
        let calls = 0
        const answer: Answer = (request, response) => {
          calls++
          answers[answered]!(request, response)
        }
        const charged = await chargesOf(async limiter => play(await open(limiter, answer), () => calls > 0))
        return [index, answered, ending, charged]
      }),
    )
    expect(found).toEqual(played.map(([name, , ending], index) => [index, name, ending, [...charges[ending]]]))
  }, 30_000)
})

const grpc = { 'content-type': 'application/grpc' }

const streams: [
  title: string,
  answer: (response: Http2ServerResponse) => void,
  ending: Ending,
  leaves?: 'reset' | 'close',
][] = [
  ['an answer of 200', response => void response.end('{}'), 'succeeded'],
  ['an answer of 401', response => void response.writeHead(401).end(), 'refused'],
  [
    'grpc-status 16 in trailers',
    response => {
      response.writeHead(200, grpc)
      response.addTrailers({ 'grpc-status': '16' })
      response.end('x')
    },
    'refused',
  ],
  [
    'grpc-status 0 in trailers',
    response => {
      response.writeHead(200, grpc)
      response.addTrailers({ 'grpc-status': '0' })
      response.end('x')
    },
    'succeeded',
  ],
  ['grpc-status 7 alone', response => void response.writeHead(200, { ...grpc, 'grpc-status': '7' }).end(), 'refused'],
  ['no grpc-status', response => void response.writeHead(200, grpc).end('x'), 'refused'],
  [
    'a stream that is reset',
    response => void setTimeout(() => response.stream.close(2), 20),
    'broken off by the application',
  ],
  [
    'a stream that is destroyed in its body',
    response => {
      response.write('a')
      setTimeout(() => response.stream.destroy(), 10)
    },
    'broken off by the application',
  ],
  ['a caller who resets', response => void response.write('a'), 'ended by the caller', 'reset'],
  ['a caller who resets before the head', () => {}, 'ended by the caller', 'reset'],
  ['a caller who closes the connection', response => void response.write('a'), 'ended by the caller', 'close'],
  ['a caller who closes the connection before the head', () => {}, 'ended by the caller', 'close'],
]

describe('a call over HTTP/2', () => {
  it.each(streams)('%s is charged by who ended it', async (_title, answer, ending, leaves) => {
    const charged = await chargesOf(async limiter => {
      let hasCome = false
      const port = await start(
        createHttp2Server(
          httpFilter(limiter, (_request, response) => {
            hasCome = true
            answer(response as never)
          }),
        ),
      )
      const session = connectHttp2(`http://127.0.0.1:${port}`)
      session.on('error', () => {})
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      stream.on('error', () => {}).resume()
      stream.end()
      if (leaves) {
        await until(() => hasCome)
        if (leaves === 'reset') stream.close(8)
        else session.destroy()
      }
      if (!stream.closed) await new Promise(resolve => stream.once('close', resolve))
      session.destroy()
    })
    expect(charged).toEqual([...charges[ending]])
  })
})

describe('a call that asks for a tunnel', () => {
  it.each<[string, Ending]>([
    ['HTTP/1.1 101 Switching Protocols\r\n\r\n', 'opened'],
    ['HTTP/1.1 200 Connection Established\r\n\r\n', 'succeeded'],
    ['HTTP/1.1 401 Unauthorized\r\n\r\n', 'refused'],
    ['', 'ended by the caller'],
  ])('%j is charged by what the application writes', async (head, ending) => {
    const charged = await chargesOf(async limiter => {
      const server = createServer()
      let hasCome = false
      server.on('upgrade', (_request, socket) => {
        hasCome = true
        for (const letter of head) socket.write(letter)
        socket.end()
      })
      const port = await start(guard(server, limiter))
      await write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', leave)(port, () => hasCome)
    })
    expect(charged).toEqual([...charges[ending]])
  })
})

describe('a call to a handler of fetch', () => {
  const bodies: [string, () => Response, 'read' | 'cancel', Ending][] = [
    ['an answer', () => new Response('ok'), 'read', 'succeeded'],
    ['an answer without a body', () => new Response(null, { status: 401 }), 'read', 'refused'],
    [
      'a body that fails',
      () => new Response(new ReadableStream({ pull: controller => controller.error(new Error('no')) })),
      'read',
      'broken off by the application',
    ],
    ['a body that is canceled', () => new Response(new ReadableStream({})), 'cancel', 'ended by the caller'],
    ['grpc-status 16', () => new Response('x', { headers: { ...grpc, 'grpc-status': '16' } }), 'read', 'refused'],
    ['an unknown grpc-status', () => new Response('x', { headers: grpc }), 'read', 'ended by the caller'],
  ]
  it.each(bodies)('%s is charged by who ended it', async (_title, answer, how, ending) => {
    const charged = await chargesOf(async limiter => {
      const handler = fetchFilter(limiter, { peer: () => '192.0.2.1' }).wrap(async () => answer())
      const response = await handler(new Request('http://localhost/', { method: 'POST' }))
      if (how === 'read') await response.text().catch(() => {})
      else await response.body!.cancel()
    })
    expect(charged).toEqual([...charges[ending]])
  })
})
