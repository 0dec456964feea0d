import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import {
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { EchoClient, serveGrpc } from '../../helpers/grpc-rig.ts'
import { Http2Caller } from '../../helpers/http2-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

type Done = (error: ServiceError | null, value?: Buffer) => void
interface Echo extends Client {
  Unary(message: Buffer, metadata: Metadata, options: object, done: Done): ClientReadableStream<Buffer>
  Other(message: Buffer, metadata: Metadata, options: object, done: Done): ClientReadableStream<Buffer>
  Collect(done: Done): ClientWritableStream<Buffer>
  Repeat(message: Buffer, metadata?: Metadata, options?: object): ClientReadableStream<Buffer>
  Talk(): ClientDuplexStream<Buffer, Buffer>
}

async function guardEcho(rules: object[] = [{ id: 'all', limit: '1000000/s' }], more: object = {}) {
  const { port, seen } = await serveGrpc(rig)
  const route = { to: `http://127.0.0.1:${port}`, protocol: 'http2', ...more }
  const guarded = await rig.guard({ rules, gateway: { routes: [route] } })
  return { ...guarded, seen, client: clientOf(guarded.port) }
}

function clientOf(port: number): Echo {
  const client = new EchoClient(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.enable_retries': 0,
    'grpc.max_receive_message_length': -1,
  }) as unknown as Echo
  rig.later(() => client.close())
  return client
}

interface Outcome {
  readonly error: ServiceError | null
  readonly value: string | undefined
  readonly early: Metadata | undefined
  readonly trailers: Metadata | undefined
}

function unary(client: Echo, word: string | Buffer, options: object = {}, name: 'Unary' | 'Other' = 'Unary') {
  return new Promise<Outcome>(resolve => {
    let early: Metadata | undefined
    const metadata = new Metadata()
    metadata.set('x-mine', 'own')
    const call = client[name](Buffer.from(word), metadata, options, (error, value) => {
      // the status comes right behind
      setImmediate(() => resolve({ error, value: value?.toString(), early, trailers }))
    })
    let trailers: Metadata | undefined
    call.on('metadata', received => {
      early = received
    })
    call.on('status', received => {
      trailers = received.metadata
    })
  })
}

describe('a gRPC client', () => {
  test('a gRPC client makes calls of all four kinds, with metadata both ways', async () => {
    const { client } = await guardEcho()
    const { value, early, trailers } = await unary(client, 'one')
    expect([value, early?.get('x-seen'), trailers?.get('x-after')]).toEqual(['one', ['own'], ['behind']])

    const collected = await new Promise((resolve, reject) => {
      const call = client.Collect((error, answer) => (error ? reject(error) : resolve(answer?.toString())))
      for (const word of ['a', 'b', 'c']) call.write(Buffer.from(word))
      call.end()
    })
    expect(collected).toBe('a b c')

    const repeated: string[] = []
    for await (const piece of client.Repeat(Buffer.from('x'))) repeated.push(piece.toString())
    expect(repeated).toEqual(['x 0', 'x 1', 'x 2', 'x 3', 'x 4'])

    const talk = client.Talk()
    for (const word of ['hello', 'again']) {
      talk.write(Buffer.from(word))
      expect(String((await once(talk, 'data'))[0])).toBe(word)
    }
    talk.end()
    expect((await once(talk, 'status'))[0].code).toBe(status.OK)
  })

  test('a gRPC client gets the status of the service with its details and binary metadata', async () => {
    const { client } = await guardEcho()
    const { error } = await unary(client, 'fail')
    expect([error?.code, error?.details]).toEqual([status.FAILED_PRECONDITION, 'not now, größer'])
    expect(error?.metadata.get('details-bin')).toEqual([Buffer.from([0, 1, 255])])
  })

  test('a gRPC client sends and gets messages of 8 MB', async () => {
    const { client } = await guardEcho()
    const { value } = await unary(client, Buffer.alloc(8_000_000, 'm'))
    expect(value).toHaveLength(8_000_000)
  })

  test('a gRPC client that cancels ends the call at the service', async () => {
    const { client, seen } = await guardEcho()
    const call = client.Unary(Buffer.from('wait'), new Metadata(), {}, () => {})
    await expect.poll(() => seen).toContain('wait')
    call.cancel()
    await expect.poll(() => seen).toContain('wait cancelled')
    const stream = client.Repeat(Buffer.from('forever'))
    stream.on('error', () => {})
    await once(stream, 'data')
    stream.cancel()
    await expect.poll(() => seen).toContain('repeat cancelled')
  })
})

describe('limits for gRPC', () => {
  test('limits for gRPC refuse with RESOURCE_EXHAUSTED, and say when to try again', async () => {
    const { client, seen } = await guardEcho([{ id: 'all', limit: '2/m' }])
    await unary(client, 'one')
    await unary(client, 'two')
    const { error } = await unary(client, 'three')
    expect(error?.code).toBe(status.RESOURCE_EXHAUSTED)
    expect(error?.details).toContain('rule "all"')
    const seconds = Number(error?.metadata.get('retry-after')[0])
    expect(seconds).toBeGreaterThan(0)
    expect(error?.metadata.get('grpc-retry-pushback-ms')).toEqual([`${seconds * 1000}`])
    expect(error?.metadata.get('ratelimit')).toHaveLength(1)
    expect(seen).toEqual(['one', 'two'])
  })

  test('limits for gRPC count methods apart by their path', async () => {
    const { client } = await guardEcho([{ id: 'unary', match: { path: '/test.Echo/Unary' }, limit: '1/m' }])
    expect((await unary(client, 'one')).error).toBeNull()
    expect((await unary(client, 'two')).error?.code).toBe(status.RESOURCE_EXHAUSTED)
    expect((await unary(client, 'two', {}, 'Other')).error).toBeNull()
  })
})

describe('what the gateway answers itself is a status of gRPC', () => {
  test('a gRPC call gets UNAVAILABLE if the service cannot be reached', async () => {
    const guarded = await rig.guard({ gateway: { routes: [{ to: 'http://127.0.0.1:1', protocol: 'http2' }] } })
    const { error } = await unary(clientOf(guarded.port), 'one')
    expect([error?.code, error?.details]).toEqual([status.UNAVAILABLE, 'The service cannot be reached.'])
  })

  test('a gRPC call gets UNIMPLEMENTED if no route takes the call', async () => {
    const guarded = await rig.guard({ gateway: { routes: [{ path: '/other', to: 'http://127.0.0.1:1' }] } })
    expect((await unary(clientOf(guarded.port), 'one')).error?.code).toBe(status.UNIMPLEMENTED)
  })

  test('a gRPC call gets DEADLINE_EXCEEDED if the service does not begin its answer in time', async () => {
    const { client } = await guardEcho(undefined, { timeouts: { headers: '200ms' } })
    expect((await unary(client, 'wait')).error?.code).toBe(status.DEADLINE_EXCEEDED)
  })

  test.each([
    ['before the service answers', '/test.Echo/Unary', 'wait'],
    ['after the service has begun to answer', '/test.Echo/Repeat', 'forever'],
  ])(
    'a gRPC call gets DEADLINE_EXCEEDED %s once grpc-timeout has passed, and the call ends at the service',
    async (_, path, word) => {
      const { url, seen } = await guardEcho()
      const caller = new Http2Caller(url)
      rig.later(() => caller.close())
      const grpc = { 'content-type': 'application/grpc', te: 'trailers', 'grpc-timeout': '300m' }
      const message = Buffer.concat([Buffer.from([0, 0, 0, 0, word.length]), Buffer.from(word)])
      const begun = performance.now()
      const { status, headers, trailers } = await caller.call({ ':method': 'POST', ':path': path, ...grpc }, message)
      expect([status, headers['grpc-status'] ?? trailers['grpc-status']]).toEqual([200, '4'])
      expect(performance.now() - begun).toBeGreaterThan(290)
      await expect.poll(() => seen.join()).toContain('cancelled')
    },
  )

  test('a gRPC call gets UNAUTHENTICATED if a filter wants to know who calls', async () => {
    const { port } = await serveGrpc(rig)
    const routes = [{ to: `http://127.0.0.1:${port}`, protocol: 'http2' }]
    const filters = [{ use: 'api-key', keys: [{ name: 'ann', sha256: 'ab'.repeat(32) }] }]
    const guarded = await rig.guard({ gateway: { routes, filters } })
    expect((await unary(clientOf(guarded.port), 'one')).error?.code).toBe(status.UNAUTHENTICATED)
  })
})

const hasPython = spawnSync('/usr/bin/python3', ['-c', 'import grpc']).status === 0

test.runIf(hasPython)('a client in Python makes calls of all four kinds, is refused and runs out of time', async () => {
  const { port } = await guardEcho([{ id: 'other', match: { path: '/test.Echo/Other' }, limit: '1/m' }])
  const { stdout } = await promisify(execFile)('/usr/bin/python3', ['test/grpc/client.py', `127.0.0.1:${port}`])
  expect(JSON.parse(stdout)).toEqual({
    unary: ['one', 'own', 'behind'],
    collect: 'a b c',
    repeat: ['x 0', 'x 1', 'x 2', 'x 3', 'x 4'],
    talk: ['hello', 'again'],
    fail: ['FAILED_PRECONDITION', 'not now, größer'],
    refused: ['RESOURCE_EXHAUSTED', true],
    late: 'DEADLINE_EXCEEDED',
    large: 5_000_000,
  })
})
