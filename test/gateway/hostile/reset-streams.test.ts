import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { openDecisionServer } from '../../../packages/gateway/src/serve/decision-server.ts'
import { serveSection } from '../../../packages/gateway/src/serve/serve-settings.ts'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, framesIn, frameTypes, openRaw as openFrames } from '../../helpers/http2-frames.ts'

const rig = new GatewayRig()
afterAll(() => rig.close())
const ports = new Map<string, number>()
const names = ['the gateway', 'the gateway with filters', 'the HTTP port of serve', 'the gRPC port of serve']

beforeAll(async () => {
  const service = await rig.serve((request, response) => {
    if (request.url !== '/held') request.resume().on('end', () => response.end('served'))
  })
  const routes = [{ to: service.url }]
  ports.set('the gateway', (await rig.guard({ gateway: { routes } })).port)
  ports.set('the gateway with filters', (await rig.guard({ gateway: { routes } }, { filters: [async () => {}] })).port)
  const config = join(rig.folder(), 'diana.yaml')
  const rules = [{ id: 'all', limit: '1000000/s' }]
  writeFileSync(config, stringify({ rules, trustProxy: ['127.0.0.1'], serve: {} }))
  const limiter = await createLimiter({ config, sections: [serveSection] })
  const { app, grpc, close } = await openDecisionServer({ limiter, folder: '.', isReady: () => true })
  rig.later(() => limiter.close())
  rig.later(() => close())
  ports.set('the HTTP port of serve', Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port))
  grpc!.server.listen(0, '127.0.0.1')
  await once(grpc!.server, 'listening')
  ports.set('the gRPC port of serve', (grpc!.server.address() as AddressInfo).port)
})

const errors: unknown[] = []
const note = (error: unknown): void => void errors.push(error)
beforeEach(() => {
  errors.length = 0
  process.on('uncaughtExceptionMonitor', note)
})
afterEach(() => void process.off('uncaughtExceptionMonitor', note))

async function openRaw(port: number) {
  const opened = await openFrames(port)
  // a connection that is ended may be reset
  opened.closed.catch(() => {})
  return opened
}

type Fields = readonly (readonly [name: string, value: string])[]
const fields = (method: string, path: string, ...more: Fields): Fields => [
  ...([
    [':method', method],
    [':scheme', 'http'],
    [':authority', 'a.test'],
    [':path', path],
  ] as const),
  ...more,
]
const paths = [
  '/a',
  '/held',
  '/healthz',
  '/check/nginx',
  '/v1/check',
  '/envoy.service.auth.v3.Authorization/Check',
  '/%zz',
]
const extras: Fields[] = [
  [],
  [['expect', '100-continue']],
  [['expect', '200-maybe']],
  [['content-type', 'application/grpc']],
  [
    ['content-type', 'application/grpc'],
    ['expect', '100-continue'],
  ],
  [
    ['content-type', 'application/json'],
    ['content-length', '2'],
    ['expect', '100-continue'],
  ],
]
/** Header blocks of calls that a caller may open and reset. */
const blocks = ['GET', 'POST', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'get'].flatMap(method =>
  paths.flatMap(path => extras.map(extra => block(fields(method, path, ...extra)))),
)
blocks.push(
  block([
    [':method', 'CONNECT'],
    [':authority', 'a.test:1'],
  ]),
)
const codes = [0, 1, 2, 5, 7, 8, 11]
const resetOf = (id: number, code: number): Buffer => frame('reset', 0, id, Buffer.from([0, 0, 0, code]))

/** True if a new caller of a port is answered. */
async function isServed(port: number): Promise<boolean> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  try {
    const stream = session.request({ ':method': 'POST', ':path': '/grpc.health.v1.Health/Check' }).end()
    const [headers] = await once(stream, 'response')
    return headers[':status'] !== undefined
  } finally {
    session.destroy()
  }
}

describe('streams of HTTP/2 that are reset', () => {
  test.each(names)('%s meets no error on streams that are reset as soon as they are opened', async name => {
    const port = ports.get(name)!
    // each connection stays below the bound of resets
    for (let at = 0; at < blocks.length; at += 150) {
      const { socket, received } = await openRaw(port)
      const some = blocks.slice(at, at + 150)
      const pieces = some.flatMap((one, index) => {
        const id = 2 * index + 1
        const end = index % 2 === 0 ? flags.endStream : 0
        const opening = frame('headers', flags.endHeaders | end, id, one)
        return [opening, resetOf(id, codes[index % codes.length]!)]
      })
      // in one piece, so that streams are over before the server gets them; it answers the PING when it has read them all
      socket.write(Buffer.concat([...pieces, frame('ping', 0, 0, Buffer.alloc(8))]))
      const isRead = () => framesIn(received()).some(({ type, flag }) => type === frameTypes.ping && flag === flags.ack)
      for (let turn = 0; turn < 200 && !socket.destroyed && !isRead(); turn++) await pause(5)
      await pause(20)
      socket.destroy()
    }
    expect(errors).toEqual([])
    expect(await isServed(port)).toBe(true)
  })

  test.each(names)('%s meets no error on streams that are reset while they are served', async name => {
    const port = ports.get(name)!
    for (const [turn, waitMs] of [0, 1, 5].entries()) {
      const chosen = blocks.filter((_, at) => at % 3 === turn)
      for (let at = 0; at < chosen.length; at += 100) {
        const { socket } = await openRaw(port)
        const some = chosen.slice(at, at + 100)
        for (const [index, one] of some.entries()) {
          const id = 2 * index + 1
          socket.write(frame('headers', flags.endHeaders, id, one))
          if (index % 10 === 0) await pause(waitMs)
          socket.write(
            Buffer.concat([frame('data', 0, id, Buffer.from('{}')), resetOf(id, codes[index % codes.length]!)]),
          )
        }
        socket.destroy()
      }
    }
    await pause(100)
    expect(errors).toEqual([])
    expect(await isServed(port)).toBe(true)
  })
})

describe('rapid resets', () => {
  const open = block(fields('POST', '/held', ['content-type', 'application/grpc']))

  test.each(names)(
    '%s ends a connection whose caller resets stream after stream, while it keeps sending',
    async name => {
      const { socket, received } = await openRaw(ports.get(name)!)
      let id = 1
      const until = performance.now() + 10_000
      while (!socket.destroyed && performance.now() < until) {
        const pieces = Array.from({ length: 50 }, () => {
          const pair = [frame('headers', flags.endHeaders, id, open), resetOf(id, codes[id % codes.length]!)]
          id += 2
          return Buffer.concat(pair)
        })
        socket.write(Buffer.concat(pieces))
        await pause(5)
      }
      expect(socket.destroyed).toBe(true)
      const [goaway] = framesIn(received()).filter(({ type }) => type === frameTypes.goaway)
      // the system may drop it with the connection; nghttp2 has a bound of its own, which may be met in the same read
      const ends = [constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR]
      // those who may ask are proxies, which are asked for another connection first
      if (name.includes('of serve')) ends.push(constants.NGHTTP2_NO_ERROR)
      if (goaway) expect(ends).toContain(goaway.payload.readUInt32BE(4))
      expect(await isServed(ports.get(name)!)).toBe(true)
      expect(errors).toEqual([])
    },
  )

  test.each(names)('%s keeps the connection of a caller that cancels many of its calls', async name => {
    const session = connectHttp2(`http://127.0.0.1:${ports.get(name)!}`)
    session.on('error', () => {})
    const headers = { ':method': 'POST', 'content-type': 'application/grpc' }
    const ends: Promise<void>[] = []
    const begin = (path: string): ClientHttp2Stream => {
      const stream = session.request({ ...headers, ':path': path })
      stream.on('error', () => {}).resume()
      // a port that does not hold calls may have ended one before it is canceled
      ends.push(new Promise(resolve => stream.once('close', resolve)))
      return stream
    }
    // a page with a hundred calls is left, three times; then half of the calls are canceled, for long
    for (let page = 0; page < 3; page++) {
      const streams = Array.from({ length: 100 }, () => begin('/held'))
      await pause(20)
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await Promise.all(ends)
    }
    for (let turn = 0; turn < 6; turn++) {
      for (let call = 0; call < 40; call++) begin('/a').end()
      const canceled = Array.from({ length: 40 }, () => begin('/held'))
      // Node's client cannot cancel a call in the turn that begins it
      await pause(1)
      for (const stream of canceled) stream.close(constants.NGHTTP2_CANCEL)
      await Promise.all(ends)
    }
    expect([session.closed, session.destroyed]).toEqual([false, false])
    session.destroy()
    expect(errors).toEqual([])
  })
})
