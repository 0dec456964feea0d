import { EventEmitter, once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect as connectHttp2, constants, createServer as createHttp2Server, type Http2Session } from 'node:http2'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { vi } from 'vitest'
import { Live } from '../../packages/gateway/src/admin/live.ts'
import { stream } from '../../packages/gateway/src/admin/stream.ts'
import { startDemoTraffic } from '../../packages/gateway/src/cli/demo/demo-traffic.ts'
import { FileChanges } from '../../packages/gateway/src/http/tls/file-changes.ts'
import { ServerTls } from '../../packages/gateway/src/http/tls/server-tls.ts'
import { CallerSessions } from '../../packages/gateway/src/inbound/http2/caller-sessions.ts'
import { Closing } from '../../packages/gateway/src/inbound/server.ts'
import { SupervisedProcess } from '../../packages/gateway/src/process/workers/supervised-process.ts'
import { GrpcCall } from '../../packages/gateway/src/serve/grpc/grpc-call.ts'
import { GrpcServer } from '../../packages/gateway/src/serve/grpc/grpc-server.ts'
import { RespServer } from '../../packages/gateway/src/serve/resp/resp-server.ts'
import { RespUsers } from '../../packages/gateway/src/serve/resp/resp-users.ts'
import { HealthChecks } from '../../packages/gateway/src/services/health/health-checks.ts'
import { ShortExchange } from '../../packages/gateway/src/services/http1/short-exchange.ts'
import { Names } from '../../packages/gateway/src/services/names.ts'
import { Slots } from '../../packages/gateway/src/services/slots.ts'
import { LineWriter } from '../../packages/gateway/src/telemetry/logging/line-writer.ts'
import { SpanExporter } from '../../packages/gateway/src/telemetry/tracing/span-exporter.ts'
import { counter, fail, failFirst, type Loop } from './loop.ts'

const untilReal = async (isTrue: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 10_000 && !isTrue(); turn++) await nextTurn()
}

function live(figures: () => Promise<unknown>) {
  const processes = { figures, reports: async () => [], takeLoads: async () => new Map(), states: () => [] }
  return new Live(processes as never, { events: new EventEmitter() } as never, () => ({}))
}

/** A server with calls that do not arrive, each on a connection of its own. */
async function grpcServer(connections: number): Promise<GrpcServer> {
  const path = '/a.B/C'
  const methods = [{ path, kind: 'unary', answer: () => Buffer.alloc(5) }]
  const server = new GrpcServer({
    ...{ methods: methods as never, mayAsk: () => true, maxMessageBytes: 100, maxConnections: 10 },
    onRefused: () => {},
  })
  server.server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const begun = vi.spyOn(GrpcCall.prototype, 'serve')
  const { port } = server.server.address() as AddressInfo
  for (let at = 0; at < connections; at++) {
    const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {})
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc' }
    session.request(headers).on('error', () => {})
    await untilReal(() => begun.mock.calls.length > at)
  }
  return server
}

/** The class of sessions of Node, which it does not export. */
async function sessionClass(): Promise<{ close: (this: Http2Session) => void }> {
  const server = createHttp2Server().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).on('error', () => {})
  const [session] = await once(server, 'session')
  client.destroy()
  server.close()
  // that of servers, and of both sides
  return Object.getPrototypeOf(Object.getPrototypeOf(session))
}

export const loopsOfGateway: readonly Loop[] = [
  {
    place: 'readers of the live figures',
    ms: 10,
    start: () => {
      const readers = [counter(), counter()]
      const watched = live(async () => fail())
      // each reader gets the status when it comes
      const bad = { isThere: false }
      watched.follow(readers[0]!.visit)
      watched.follow(() => bad.isThere && fail())
      watched.follow(readers[1]!.visit)
      bad.isThere = true
      setTimeout(() => watched.reportRules(), 1)
      return readers.map(one => () => one.count - 1)
    },
  },
  {
    place: 'readers of the live figures',
    name: 'signs of life',
    ms: 60_000,
    start: () => {
      let writes = 0
      const write = () => {
        writes++
        // the first two are the head and the status
        if (writes === 3) fail()
      }
      const raw = Object.assign(new EventEmitter(), { writableLength: 0, destroyed: false, writeHead() {}, write })
      stream(
        { hijack() {}, raw, getHeaders: () => ({}) } as never,
        live(async () => fail()),
      )
      return [() => writes - 3]
    },
  },
  {
    place: 'live figures',
    ms: 5000,
    start: () => {
      const asked = counter()
      // figures that cannot be recorded
      live(async () => {
        asked.visit()
        return {}
      })
      return [() => asked.count - 1]
    },
  },
  {
    place: 'addresses of services',
    ms: 20_000,
    start: () => {
      const followers = [counter(), counter()]
      let last = 0
      const names = new Names(async () => [{ address: `10.0.0.${++last}`, family: 4 }])
      for (const follower of [followers[0]!.visit, fail, followers[1]!.visit]) names.follow('a.test', follower)
      return followers.map(one => () => one.count - 1)
    },
  },
  {
    place: 'calls to services',
    ms: 10,
    start: () => {
      const sent = [counter(), counter()]
      const failed = counter()
      for (const onConnect of [sent[0]!.visit, fail, sent[1]!.visit]) {
        const exchange = new ShortExchange({ host: 'a.test', dispatch: () => {}, maxHeadBytes: undefined })
        const socket = { destroyed: false, writable: true, readableLength: 0, once() {}, destroy() {} }
        exchange.attach({ socket: socket as never, write: () => true, push: () => true })
        const handler = { onWholeAnswer() {}, onConnect, onError: failed.visit }
        const options = { method: 'GET', path: '/', headers: [], body: null, headersTimeout: 0 }
        exchange.begin(options as never, handler as never)
      }
      return [...sent.map(one => () => one.count), () => failed.count]
    },
  },
  {
    place: 'health checks',
    ms: 10_000,
    start: () => {
      const { run, later } = failFirst()
      const upstream = { clients: { open: fail, discard() {} }, health: { check: run } }
      new HealthChecks(upstream as never, { intervalMs: 1000, timeoutMs: 100, statuses: [] } as never)
      return [later]
    },
  },
  {
    place: 'calls of gRPC',
    ms: 40_000,
    start: async () => {
      const seen: GrpcCall[] = []
      vi.spyOn(GrpcCall.prototype, 'isGone', 'get').mockImplementation(function (this: GrpcCall) {
        if (!seen.includes(this)) seen.push(this)
        return seen.indexOf(this) === 1 ? fail() : false
      })
      const failed = vi.spyOn(GrpcCall.prototype, 'fail').mockImplementation(() => {})
      await grpcServer(3)
      const failures = (at: number) => () => failed.mock.contexts.filter(one => one === seen[at]).length
      return [failures(0), failures(2)]
    },
  },
  {
    place: 'connections of the Redis protocol',
    ms: 11_000,
    start: async () => {
      const server = new RespServer({
        ...{ limiter: { rules: [] } as never, users: new RespUsers([], () => Buffer.alloc(0)), tls: undefined },
        ...{
          peers: { mayAsk: () => true } as never,
          settings: () => ({ connections: 10 }) as never,
          onRefused: () => {},
        },
      })
      server.server.listen(0, '127.0.0.1')
      await once(server.server, 'listening')
      const sides: Socket[] = []
      server.server.prependListener('connection', socket => sides.push(socket))
      const { port } = server.server.address() as AddressInfo
      for (let at = 0; at < 3; at++) {
        // a command that does not end
        connect(port, '127.0.0.1')
          .on('error', () => {})
          .write('PI')
        await untilReal(() => sides.length > at && sides[at]!.bytesRead > 0)
      }
      const destroyed = sides.map(() => counter())
      sides.forEach((socket, at) => {
        vi.spyOn(socket, 'destroy').mockImplementation(() => {
          destroyed[at]!.visit()
          return at === 1 ? fail() : socket
        })
      })
      return [destroyed[0]!, destroyed[2]!].map(one => () => one.count)
    },
  },
  {
    place: 'connections of gRPC',
    ms: 302_000,
    start: async () => {
      const seen: unknown[] = []
      const closed = counter()
      const session = await sessionClass()
      await grpcServer(3)
      vi.spyOn(session, 'close').mockImplementation(function (this: unknown) {
        const isNew = !seen.includes(this)
        if (isNew) seen.push(this)
        // Node closes it once more when its socket has been destroyed
        if (isNew && seen.length === 2) fail()
        closed.visit()
      })
      // the third one
      return [() => closed.count - 1, () => seen.length - 2]
    },
  },
  {
    place: 'connections of gRPC',
    name: 'when the server ends',
    ms: 2000,
    start: async () => {
      const closed: unknown[] = []
      const session = await sessionClass()
      const server = await grpcServer(3)
      vi.spyOn(session, 'close').mockImplementation(function (this: Http2Session) {
        // not those of callers
        if (this.type !== constants.NGHTTP2_SESSION_SERVER) return
        closed.push(this)
        if (closed.length === 2) fail()
      })
      void server.close(1000)
      return [() => closed.length - 2]
    },
  },
  {
    place: 'connections of callers that speak HTTP/2',
    ms: 10,
    start: async () => {
      const closed: unknown[] = []
      const listener = () => {}
      const sessions = new CallerSessions(listener, {
        ...{ isProxy: () => false, limits: { headersBytes: 16_384 }, refuseExpectation: listener, idleMs: 60_000 },
      })
      const server = createHttpServer().on('clientError', (error, socket) => sessions.take(error, socket as Socket))
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const session = await sessionClass()
      for (let at = 0; at < 3; at++) {
        const { port } = server.address() as AddressInfo
        await once(
          connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {}),
          'remoteSettings',
        )
      }
      vi.spyOn(session, 'close').mockImplementation(function (this: Http2Session) {
        // not those of callers
        if (this.type !== constants.NGHTTP2_SESSION_SERVER) return
        closed.push(this)
        if (closed.length === 2) fail()
      })
      sessions.closeIdle()
      return [() => closed.length - 2]
    },
  },
  {
    place: 'calls of the demo',
    ms: 1000,
    start: () => {
      const { run, later } = failFirst()
      vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('nobody listens'))
      vi.spyOn(Math, 'sin').mockImplementation(() => {
        run()
        return 0
      })
      void startDemoTraffic('http://127.0.0.1:9')
      return [later]
    },
  },
  {
    place: 'files of certificates',
    ms: 60_000,
    start: () => {
      const looked = counter()
      vi.spyOn(FileChanges.prototype, 'haveHappened').mockImplementation(() => {
        looked.visit()
        return fail()
      })
      // the report throws, too
      const tls = new ServerTls({ certificates: [] } as never, { folder: '.', onTrouble: fail } as never)
      tls.attach({ prependListener() {} } as never)
      return [() => looked.count - 1]
    },
  },
  {
    place: 'slots of services',
    name: 'a call that cannot use its slot',
    ms: 10,
    start: () => {
      const granted = counter()
      const slots = new Slots({ max: 1, queueSize: 10, queueMs: 10_000 })
      const user = { onSlot: () => {}, onNoSlot: () => {}, stalledMs: () => 0, evict: () => {} }
      const first = { ...user }
      slots.take(first)
      slots.take({ ...user, onSlot: fail })
      slots.take({ ...user, onSlot: granted.visit })
      slots.release(first)
      return [() => granted.count, () => (slots.inUse === 1 ? 1 : 0)]
    },
  },
  {
    place: 'processes',
    ms: 60_000,
    start: () => {
      const started = counter()
      const start = () => {
        started.visit()
        // the third one cannot be created
        if (started.count === 3) fail()
        const child = Object.assign(new EventEmitter(), { pid: started.count === 2 ? undefined : 1, connected: false })
        // the second one is not created
        if (started.count === 2) setTimeout(() => child.emit('error', new Error('spawn EAGAIN')), 1)
        else setTimeout(() => child.emit('exit', 1, null), 1)
        return child as never
      }
      new SupervisedProcess({ start, onTold: () => {}, onDied: fail, onFailed: fail })
      return [() => started.count - 3]
    },
  },
  {
    place: 'spans',
    ms: 5000,
    start: () => {
      const reported = counter()
      const settings = { endpoint: 'http://127.0.0.1:9', headers: {}, serviceName: 'a' }
      const exporter = new SpanExporter(settings as never, () => {
        reported.visit()
        fail()
      })
      const span = { name: 'a' } as never
      // one that cannot be written
      exporter.add(3, () => [span, { id: 1n } as never, span])
      return [() => reported.count]
    },
  },
  {
    place: 'lines of a log',
    ms: 5000,
    start: () => {
      const written = counter()
      const write = async () => {
        written.visit()
        if (written.count === 1) fail()
      }
      const sink = { chunkBytes: 4, write, refresh: async () => {}, close: async () => {} }
      const writer = new LineWriter(sink as never, { onTrouble: fail })
      for (const line of ['one\n', 'two\n', 'six\n']) writer.write(line)
      return [() => written.count - 2]
    },
  },
  {
    place: 'connections that are closed',
    ms: 2000,
    start: async () => {
      const { run, later } = failFirst()
      let drain = async (): Promise<void> => {}
      const server = createTcpServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const open = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
      const [socket] = await once(server, 'connection')
      const addHook = (_: string, hook: () => Promise<void>) => {
        drain = hook
      }
      new Closing({
        ...{ app: { server, addHook } as never, shutdown: () => ({ timeoutMs: 1000 }) as never, tunnels: () => 0 },
        ...{
          announceClosing() {},
          closeIdleConnections: run,
          closeTunnels() {},
          destroyConnections: () => socket.destroy(),
        },
      })
      let elapsed = 0
      vi.spyOn(performance, 'now').mockImplementation(() => (elapsed += 50))
      await drain()
      open.destroy()
      return [later]
    },
  },
]
