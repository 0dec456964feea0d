import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2, constants, type OutgoingHttpHeaders } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { randomRuns } from '@test/random-runs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { serveProgram } from '../../packages/gateway/src/process/serve-program.ts'
import type { ServerProcess } from '../../packages/gateway/src/process/server-program.ts'
import { SpoeReader, SpoeWriter } from '../../packages/gateway/src/serve/spoe/spoe-bytes.ts'
import { createRandom } from '../fuzz/random.mjs'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { envoyClient } from './envoy-client.ts'

const seed = process.env.ODD_SEED ?? 1
const count = Number(process.env.ODD_REQUESTS ?? randomRuns(200))

const rig = new GatewayRig()
let server: ServerProcess

beforeAll(async () => {
  const config = join(rig.folder(), 'diana.yaml')
  const rules = [
    { id: 'none', match: { path: '/full' }, limit: '0/h' },
    { id: 'none', match: { attribute: { user: 'full' } }, limit: '0/h' },
  ].map((rule, index) => ({ ...rule, id: `${rule.id}-${index}` }))
  writeFileSync(config, stringify({ answer: { status: 429 }, rules, serve: { spoe: { port: 0 } } }))
  server = await serveProgram.start({ config, port: 0, grpcPort: 0 })
  rig.later(() => server.close())
})
afterAll(() => rig.close())

describe('questions over gRPC that share a connection', () => {
  const paths = [
    '/envoy.service.auth.v3.Authorization/Check',
    '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  ]
  const usual: OutgoingHttpHeaders = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' }

  /** RateLimitRequest { domain: a, descriptors: [{ entries: [{ user: full }] }] }. */
  const entry = Buffer.from('\x0a\x04user\x12\x04full', 'latin1')
  const descriptor = Buffer.concat([Buffer.from([0x0a, entry.length]), entry])
  const message = Buffer.concat([Buffer.from('\x0a\x01a\x12', 'latin1'), Buffer.from([descriptor.length]), descriptor])
  const framed = (body: Buffer, length = body.length, flag = 0): Buffer => {
    const head = Buffer.alloc(5)
    head[0] = flag
    head.writeUInt32BE(length >>> 0, 1)
    return Buffer.concat([head, body])
  }

  const call = (session: ClientHttp2Session, headers: OutgoingHttpHeaders, body: Buffer, resets = false) =>
    new Promise<{ status: string | undefined; data: Buffer }>(resolve => {
      const pieces: Buffer[] = []
      let status: string | undefined
      const stream = session.request({ ...usual, ...headers })
      const note = (got: Record<string, unknown>): void => {
        status = (got['grpc-status'] as string | undefined) ?? status
      }
      stream.on('error', () => {})
      stream.on('response', note)
      stream.on('trailers', note)
      stream.on('data', piece => pieces.push(piece))
      const end = (): void => resolve({ status, data: Buffer.concat(pieces) })
      stream.on('close', end)
      // an answer may come before the whole question is sent, which then stays unsent
      stream.on('end', () => {
        if (stream.writableFinished) return
        end()
        stream.close(constants.NGHTTP2_CANCEL)
      })
      stream.end(body)
      if (resets) stream.close(constants.NGHTTP2_CANCEL)
    })

  it('no odd question over gRPC closes the connection or costs another caller its answer', async () => {
    const random = createRandom(seed)
    const session = connectHttp2(`http://${server.also!.grpc}`, { maxSessionMemory: 1000 })
    session.on('error', () => {})
    let isClosed = false
    session.on('close', () => {
      isClosed = true
    })
    const large = Buffer.alloc(4_300_000)
    const many = (pairs: number) => Object.fromEntries(random.list(pairs, at => [`x-odd-${at}`, 'a']))
    const kinds: readonly (() => [OutgoingHttpHeaders, Buffer, boolean?])[] = [
      () => [many(random.pick([100, 130, 300, 1000])), framed(message)],
      () => [{ 'x-odd': 'a'.repeat(random.pick([8000, 15_000, 17_000, 40_000, 60_000])) }, framed(message)],
      () => [{ tracestate: '\xe9'.repeat(100) }, framed(message)],
      () => [{}, framed(Buffer.alloc(random.pick([0, 1, 1000, 300_000])))],
      () => [{}, framed(Buffer.from(random.bytes(random.int(1, 200)), 'latin1'))],
      () => [{}, framed(message, random.pick([0, 1, 5_000_000, 2 ** 32 - 1]))],
      () => [{}, framed(message, message.length, random.pick([1, 255]))],
      () => [{}, Buffer.concat([framed(message), framed(message)])],
      () => [{}, Buffer.alloc(0)],
      () => [{}, framed(large)],
      () => [{ 'content-type': random.pick(['application/json', 'application/grpc-web', '']) }, framed(message)],
      () => [{ ':path': `/${'a'.repeat(random.int(1, 9000))}` }, framed(message)],
      () => [{ ':method': random.pick(['GET', 'PUT', 'BREW']) }, framed(message)],
      () => [{ 'grpc-timeout': random.pick(['0n', '1n', '99999999H', 'x', '-1S']) }, framed(message)],
      () => [{ expect: '100-continue' }, framed(message)],
      () => [{}, framed(message), true],
    ]
    const failures: string[] = []
    for (let index = 0; index < count; index++) {
      const [headers, body, resets] = kinds[index % kinds.length]!()
      const odd = call(session, { ':path': random.pick(paths), ...headers }, body, resets)
      // side by side with the odd one, and after it
      const beside = call(session, { ':path': paths[1] }, framed(message))
      await odd
      const after = await call(session, { ':path': paths[1] }, framed(message))
      for (const { status, data } of [await beside, after]) {
        // overall_code = OVER_LIMIT
        if (status !== '0' || data[5] !== 0x08 || data[6] !== 2)
          failures.push(`${index}: ${status} ${data.toString('hex')}`)
      }
      if (isClosed) break
    }
    expect(failures).toEqual([])
    expect(isClosed).toBe(false)
    session.destroy()
  })

  it('a request for external authorization that cannot be read is denied, since Envoy may let a failed one pass', async () => {
    const envoy = envoyClient(server.also!.grpc!)
    const many = Object.fromEntries(Array.from({ length: 1100 }, (_, at) => [`x-${at}`, 'a']))
    const ask = (http: object) => envoy.check({ attributes: { request: { http } } })
    const denied = { denied_response: { status: { code: 'BadRequest' } } }
    expect(await ask({ method: 'GET', path: '/', headers: many })).toMatchObject(denied)
    expect(await ask({ method: 'GET', path: '' })).toMatchObject(denied)
    expect(await ask({ method: 'GET', path: '/', headers: { a: 'b'.repeat(4_200_000) } })).toMatchObject(denied)
    expect(await ask({ method: 'GET', path: '/free', headers: { a: 'b'.repeat(1_000_000) } })).toMatchObject({
      status: { code: 0 },
    })
    envoy.close()
  })
})

describe('questions over SPOE that share a connection', () => {
  const head = (type: number, stream: number): SpoeWriter =>
    new SpoeWriter().byte(type).byte(0).byte(0).byte(0).byte(1).varint(stream).varint(1)

  /** A connection that has said hello; `ask` resolves to the variables that an answer sets, or undefined if none comes. */
  async function open(): Promise<{
    socket: Socket
    ask(stream: number, frame: Buffer): Promise<Map<string, unknown> | undefined>
  }> {
    const [host, port] = server.also!.spoe!.split(':')
    const socket = connect(Number(port), host)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const waiting = new Map<number, (variables: Map<string, unknown> | undefined) => void>()
    let rest = Buffer.alloc(0)
    socket.on('data', chunk => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const frame = rest.subarray(4, 4 + rest.readUInt32BE(0))
        rest = rest.subarray(4 + frame.length)
        const reader = new SpoeReader(frame, 5)
        const stream = reader.varint()
        reader.varint()
        const variables = new Map<string, unknown>()
        while (frame[0] === 103 && !reader.isAtEnd) {
          for (let at = 0; at < 3; at++) reader.byte()
          variables.set(reader.text(), reader.value())
        }
        waiting.get(stream)?.(variables)
        waiting.delete(stream)
      }
    })
    socket.on('close', () => {
      for (const settle of waiting.values()) settle(undefined)
    })
    const hello = head(1, 0).text('supported-versions').value('2.0').text('max-frame-size').value(1_048_576)
    const ask = (stream: number, frame: Buffer) =>
      new Promise<Map<string, unknown> | undefined>(resolve => {
        waiting.set(stream, resolve)
        socket.write(frame)
      })
    await ask(0, hello.text('capabilities').value('pipelining').frame())
    return { socket, ask }
  }

  const notify = (stream: number, values: Readonly<Record<string, string | number | boolean>>): Buffer => {
    const writer = head(3, stream).text('check').byte(Object.keys(values).length)
    for (const [name, value] of Object.entries(values)) writer.text(name).value(value)
    return writer.frame()
  }

  it('no odd question over SPOE closes the connection or costs another caller its answer', async () => {
    const random = createRandom(seed)
    const { socket, ask } = await open()
    const full = { method: 'GET', target: '/full', headers: 'host: a\r\n' }
    const kinds: readonly ((stream: number) => Buffer)[] = [
      stream => notify(stream, {}),
      stream =>
        notify(stream, {
          ...full,
          target: random.pick(['', '*', '/%zz', '\xff', '/a b', 'http://a b/', '/'.repeat(9000)]),
        }),
      stream => notify(stream, { ...full, method: random.pick(['', 'BREW', '\x01', 'a'.repeat(9000)]) }),
      stream => notify(stream, { method: 1, target: true, headers: 7 }),
      stream =>
        notify(stream, { ...full, headers: `a: ${'b'.repeat(random.pick([16_000, 65_000, 200_000, 1_000_000]))}\r\n` }),
      stream =>
        notify(stream, { ...full, headers: random.list(random.pick([100, 300, 5000]), at => `${at}: a\r\n`).join('') }),
      stream => notify(stream, { ...full, headers: random.bytes(300) }),
      stream => notify(stream, { ...full, headers: '__proto__: a\r\nhost: b\r\nhost: c\r\nconstructor: d\r\n' }),
      stream => notify(stream, { ...full, host: random.pick(['a b', '', '\xff', 'a'.repeat(1000)]) }),
      // values that end too early or have a type that does not exist
      stream => head(3, stream).text('check').byte(2).text('method').byte(0x0f).frame(),
      stream => head(3, stream).text('check').byte(9).text('method').value('GET').frame(),
      stream => head(3, stream).text('check').byte(1).text('target').byte(8).varint(100_000).frame(),
      stream => head(3, stream).byte(250).frame(),
      stream => {
        const writer = head(3, stream)
        for (let at = 0; at < 20; at++) writer.text('check').byte(0)
        return writer.frame()
      },
    ]
    const failures: string[] = []
    for (let index = 0; index < count; index++) {
      const stream = 1 + index * 3
      const odd = ask(stream, kinds[index % kinds.length]!(stream))
      const beside = ask(stream + 1, notify(stream + 1, full))
      const variables = await odd
      if (variables?.has('status') !== true) failures.push(`${index} got ${variables && [...variables.keys()]}`)
      for (const others of [await beside, await ask(stream + 2, notify(stream + 2, full))]) {
        if (others?.get('status') !== 429) failures.push(`${index} made another question get ${others?.get('status')}`)
      }
      if (socket.destroyed) break
    }
    expect(failures).toEqual([])
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })
})
