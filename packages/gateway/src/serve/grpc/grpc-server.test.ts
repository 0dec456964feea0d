import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Overrides } from '../rate-limit/overrides.ts'
import { rateLimitService } from '../rate-limit/rate-limit-service.ts'
import type { GrpcMethod } from './grpc-method.ts'
import { GrpcServer } from './grpc-server.ts'

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const maxMessageBytes = 65_536
/** 500 in npm test, and 10,000 in npm run long -- tests. */
const mostStreams = randomRuns(1000)
let limiter: Limiter
let server: GrpcServer
let client: ClientHttp2Session
let port: number
const refused: string[] = []

async function serve(options: { isTrusted?: boolean; methods?: readonly GrpcMethod[] } = {}): Promise<void> {
  limiter = await createLimiter({ rules: [{ id: 'all', limit: '1000000/s' }] })
  const deciding = rateLimitService({ limiter, overrides: new Overrides(limiter, false), deadlineMs: () => 15 })
  server = new GrpcServer({
    methods: [deciding, ...(options.methods ?? [])],
    mayAsk: () => options.isTrusted ?? true,
    ...{ maxMessageBytes, maxConnections: 10, onRefused: reason => refused.push(reason) },
  })
  server.server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  port = (server.server.address() as AddressInfo).port
  if (options.isTrusted !== false) await reconnect()
}

async function reconnect(): Promise<void> {
  client = connect(`http://127.0.0.1:${port}`)
  client.on('error', () => {})
  await once(client, 'remoteSettings')
}

beforeEach(() => {
  refused.length = 0
})
afterEach(async () => {
  client?.destroy()
  await server.close(1000)
  await limiter.close()
})

interface Answer {
  readonly http: number | undefined
  readonly grpc: string | undefined
  readonly message: string | undefined
  readonly body: Buffer
}

async function call(body: Buffer, headers: IncomingHttpHeaders = {}): Promise<Answer> {
  const stream = client.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', ...headers })
  stream.end(body)
  return await answerOf(stream)
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let received: IncomingHttpHeaders = {}
  const pieces: Buffer[] = []
  stream.on('response', headers => {
    received = { ...received, ...headers }
  })
  stream.on('trailers', headers => {
    received = { ...received, ...headers }
  })
  stream.on('data', piece => pieces.push(piece))
  stream.on('error', () => {})
  await new Promise(resolve => stream.once('close', resolve))
  const [grpc, message] = [received['grpc-status'], received['grpc-message']].map(one => one as string | undefined)
  return { http: received[':status'] as number | undefined, grpc, message, body: Buffer.concat(pieces) }
}

function frame(message: Buffer, flag = 0): Buffer {
  const head = Buffer.from([flag, 0, 0, 0, 0])
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** A field of bytes; short ones only. */
const field = (number: number, data: Buffer): Buffer =>
  Buffer.concat([Buffer.from([(number << 3) | 2, data.length]), data])
const entry = field(1, Buffer.concat([field(1, Buffer.from('user')), field(2, Buffer.from('ann'))]))
const question = Buffer.concat([field(1, Buffer.from('edge')), field(2, entry)])

describe('a server of gRPC', () => {
  it('a question is answered with one message and the status 0', async () => {
    await serve()
    const { http, grpc, body } = await call(frame(question))
    expect([http, grpc]).toEqual([200, '0'])
    expect(body.readUInt32BE(1)).toBe(body.length - 5)
    expect([...body.subarray(5, 7)]).toEqual([8, 1])
  })

  it.each([
    ['no message', Buffer.alloc(0), {}, '13'],
    ['half a message', frame(question).subarray(0, 9), {}, '13'],
    ['two messages', Buffer.concat([frame(question), frame(question)]), {}, '13'],
    ['a compressed message', frame(question, 1), {}, '12'],
    ['a message that is too long', frame(Buffer.alloc(maxMessageBytes + 1)), {}, '8'],
    ['a length of four gigabytes', Buffer.from([0, 255, 255, 255, 255]), {}, '8'],
    ['a method that is not there', frame(question), { ':path': '/envoy.None/Call' }, '12'],
    ['a deadline that has passed', frame(question), { 'grpc-timeout': '0m' }, '4'],
    ['a truncated field', frame(question.subarray(0, -1)), {}, '3'],
    ['a number without an end', frame(Buffer.alloc(20, 0xff)), {}, '3'],
    ['a field with the number 0', frame(Buffer.from([0x02, 0])), {}, '3'],
    ['a wire type that does not exist', frame(Buffer.from([0x0f])), {}, '3'],
    ['groups in groups', frame(Buffer.alloc(5000, 0x0b)), {}, '3'],
  ] as const)('%s gets a status that says what is wrong', async (_name, body, headers, status) => {
    await serve()
    const { grpc, message } = await call(body, headers)
    expect(grpc).toBe(status)
    expect(message).toMatch(/^[\x20-\x7e]{5,200}$/)
    expect((await call(frame(question))).grpc).toBe('0')
  })

  it('unknown fields and known ones of another wire type are skipped', async () => {
    await serve()
    const odd = [
      ...[Buffer.from([0x08, 1]), Buffer.from([0x1a, 1, 7]), Buffer.from([0x79, 1, 2, 3, 4, 5, 6, 7, 8])],
      ...[Buffer.from([0x7d, 1, 2, 3, 4]), Buffer.from([0x7b, 0x08, 1, 0x7c]), field(15, Buffer.from('later'))],
    ]
    for (const one of odd) expect((await call(frame(Buffer.concat([one, question])))).grpc).toBe('0')
  })

  it('a request that is not gRPC gets a status of HTTP', async () => {
    await serve()
    expect(await call(Buffer.from('{}'), { 'content-type': 'application/json' })).toMatchObject({ http: 415 })
    expect(await call(Buffer.alloc(0), { 'content-type': 'application/grpc-web' })).toMatchObject({ http: 415 })
    const get = client.request({ ':method': 'GET', ':path': path, 'content-type': 'application/grpc' })
    get.end()
    expect(await answerOf(get)).toMatchObject({ http: 405 })
  })

  it('any bytes get a status, and the next question is answered', async () => {
    await serve()
    const change = fc.tuple(fc.nat(question.length - 1), fc.nat(255))
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
          fc.array(change, { minLength: 1, maxLength: 4 }).map(changes => {
            const changed = Buffer.from(question)
            for (const [at, byte] of changes) changed[at] = byte
            return changed
          }),
        ),
        async message => {
          const { grpc } = await call(frame(message))
          expect(['0', '3']).toContain(grpc)
        },
      ),
      { numRuns: randomRuns(150) },
    )
    expect((await call(frame(question))).grpc).toBe('0')
  })

  it('thousands of questions are open at once over one connection, and each is answered', async () => {
    await serve()
    const streams = Array.from({ length: mostStreams }, () => {
      const stream = client.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
      // a part of the question only, so that all of them are open
      stream.write(frame(question).subarray(0, 9))
      return stream
    })
    const answers = Promise.all(streams.map(answerOf))
    for (const stream of streams) stream.end(frame(question).subarray(9))
    const statuses = new Set((await answers).map(({ grpc }) => grpc))
    expect([...statuses]).toEqual(['0'])
  })

  it('resets by the thousand, which a proxy passes on for its callers, end no other question on the connection', async () => {
    await serve()
    const answers: Promise<Answer>[] = []
    let connections = 1
    for (let round = 0; round < 60; round++) {
      answers.push(call(frame(question)))
      for (let n = 0; n < 50; n++) {
        const stream = client.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
        stream.on('error', () => {})
        if (n % 2 === 0) stream.write(frame(question).subarray(0, 9))
        setImmediate(() => stream.close(constants.NGHTTP2_CANCEL))
      }
      await Promise.all(answers)
      // a proxy opens another connection when it is asked to
      if (client.closed || client.destroyed) {
        await reconnect()
        connections++
      }
    }
    expect((await Promise.all(answers)).map(({ grpc }) => grpc)).toEqual(Array(60).fill('0'))
    expect(connections).toBeGreaterThan(2)
  })

  it('a call whose decision takes longer than its caller waits ends with its deadline', async () => {
    const late: GrpcMethod = { kind: 'unary', path: '/test/Late', answer: () => new Promise(() => {}) }
    await serve({ methods: [late] })
    const { grpc } = await call(frame(question), { ':path': '/test/Late', 'grpc-timeout': '20m' })
    expect(grpc).toBe('4')
  })

  it('a peer that is not trusted is disconnected before anything is read', async () => {
    await serve({ isTrusted: false })
    const socket = connectTcp(port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'close')
    expect(socket.bytesRead).toBe(0)
    expect(refused[0]).toContain('trustProxy')
  })
})
