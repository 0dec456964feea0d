import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Limiter } from 'diana-limiter'
import { type Repeated, repeat, visitAll } from 'diana-limiter/gateway'
import { isPeerGone } from '../../http/gone-peer.ts'
import type { ServerTls } from '../../http/tls/server-tls.ts'
import type { Peers } from '../calls/peers.ts'
import type { ServeSettings } from '../serve-settings.ts'
import { Places } from './places.ts'
import { isCommand, mostGuesses, type RespClient, type RespParts, runCommand } from './resp-commands.ts'
import { RespLimits } from './resp-limits.ts'
import { type RespBounds, RespError, RespReader } from './resp-reader.ts'
import { Failure, type Reply, writeReply } from './resp-reply.ts'
import type { RespUsers } from './resp-users.ts'

export interface RespServerParts {
  readonly limiter: Limiter
  readonly peers: Peers
  readonly users: RespUsers
  readonly tls: ServerTls | undefined
  readonly settings: () => ServeSettings
  onRefused(reason: string): void
}

/** A command whose answer is not there yet, or that is behind such a one. */
interface Awaited {
  text: string | undefined
}

const bounds: RespBounds = { arguments: 1024, argumentBytes: 65_536, bytes: 1_048_576 }
/** Bounds of clients that have not said who they are. */
const strangerBounds: RespBounds = { arguments: 10, argumentBytes: 1024, bytes: 4096 }
/** The most commands of a connection that wait for their answers, and the most bytes that wait for its client; no further ones are run. */
const mostAwaited = 1024
const mostUnreadBytes = 1_048_576
/** The time that a command has to arrive, that a client has to sign in, and that it may leave answers unread. */
const slowMs = 10_000
const sweepMs = 1000
const keepAliveMs = 60_000
const endMs = 1000
/** The connections beyond the bound that are accepted and get an error. */
const spareConnections = 100

/** Answers clients of Redis: decisions by rules, and by limits that commands bring along. */
export class RespServer {
  readonly #parts: RespServerParts
  readonly #commands: RespParts
  readonly #connections = new Set<Connection>()
  readonly #places: Places
  readonly #sweeping: Repeated
  readonly server: Server
  #lastId = 0

  constructor(parts: RespServerParts) {
    this.#parts = parts
    const { limiter, users, tls } = parts
    this.#commands = { limits: new RespLimits(limiter), users, connections: () => this.#connections.size }
    this.server = tls
      ? createTlsServer({ ...tls.serverOptions, handshakeTimeout: slowMs, noDelay: true })
      : createServer({ noDelay: true })
    this.server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#accept(socket))
    this.#places = new Places(
      () => parts.settings().connections,
      socket => this.#refuse(socket, tls === undefined, 'ERR max number of clients reached'),
    )
    this.#places.guard(this.server)
    if (tls) tls.attach(this.server as never)
    this.server.maxConnections = parts.settings().connections + spareConnections
    this.server.on('tlsClientError', () => {})
    this.#sweeping = repeat('connections of the Redis protocol', sweepMs, () => this.#sweep())
  }

  get connections(): number {
    return this.#connections.size
  }

  /** Lets the commands under way be answered, and ends the connections. */
  async close(): Promise<void> {
    this.#sweeping.stop()
    const closed = new Promise<void>(resolve => this.server.close(() => resolve()))
    this.#visit(connection => connection.leave())
    const late = setTimeout(() => this.#destroyAll(), endMs)
    await closed
    clearTimeout(late)
  }

  #accept(socket: Socket): void {
    const { peers, users } = this.#parts
    if (socket.destroyed || isPeerGone(socket, this.server)) {
      socket.destroy()
      return
    }
    if (!(users.areAsked || peers.mayAsk(socket))) {
      this.#refuse(socket, true, 'NOPERM this peer may not ask: add its address to trustProxy')
      return
    }
    const connection = new Connection(socket, ++this.#lastId, this.#commands, {
      onKnown: () => this.#places.know(socket),
      onGuesses: () => this.#parts.onRefused(`${socket.remoteAddress}: too many wrong passwords`),
    })
    this.#connections.add(connection)
    socket.once('close', () => this.#connections.delete(connection))
  }

  #refuse(socket: Socket, saysWhy: boolean, why: string): void {
    this.#parts.onRefused(`${socket.remoteAddress}: ${why}`)
    socket.on('error', () => {})
    if (saysWhy) socket.end(`-${why}\r\n`)
    socket.destroySoon()
  }

  #sweep(): void {
    const nowMs = performance.now()
    this.#visit(connection => connection.endIfSlow(nowMs))
  }

  #destroyAll(): void {
    this.#visit(connection => connection.destroy())
  }

  #visit(visit: (connection: Connection) => void): void {
    const drop = (connection: Connection): boolean => this.#connections.delete(connection)
    visitAll('connections of the Redis protocol', this.#connections, visit, drop)
  }
}

/** Hears of a client. */
interface ClientEvents {
  onKnown(): void
  onGuesses(): void
}

/** One client: its commands are run in their order, and so are their answers. */
class Connection {
  readonly #socket: Socket
  readonly #client: RespClient
  readonly #parts: RespParts
  readonly #reader: RespReader
  readonly #events: ClientEvents
  /** The last moment at which the server knew who the client is; at first, the moment of its connection. */
  #knownAtMs = performance.now()
  #isKnown = false
  readonly #awaited: Awaited[] = []
  #out = ''
  #isFlushing = false
  #isPaused = false
  #commands = 0
  /** The commands that were run, and the bytes that the client has taken, when they were last looked at; and since when they are so. */
  #progress = 0
  #progressAtMs: number = this.#knownAtMs

  constructor(socket: Socket, id: number, parts: RespParts, events: ClientEvents) {
    this.#socket = socket
    this.#parts = parts
    this.#events = events
    const user = parts.users.ofNobody
    this.#client = { id, user, version: 2, name: '', isLeaving: false, wrongPasswords: 0 }
    this.#reader = new RespReader(boundsOf(this.#client))
    this.#noteUser()
    socket.setKeepAlive(true, keepAliveMs)
    socket.on('error', () => socket.destroy())
    socket.on('data', piece => {
      if (this.#client.isLeaving) return
      this.#reader.push(piece)
      this.#run()
    })
    socket.on('drain', () => this.#run())
  }

  /** Ends the connection when all that was asked is answered. */
  leave(): void {
    this.#client.isLeaving = true
    this.#flush()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Ends a connection that has not said who it is, sends a command too slowly, or does not read its answers. */
  endIfSlow(nowMs: number): void {
    const { bytesWritten, writableLength } = this.#socket
    const progress = this.#commands + bytesWritten - writableLength
    if (progress !== this.#progress) {
      this.#progress = progress
      this.#progressAtMs = nowMs
    }
    const isIncomplete = this.#reader.isWithin && !this.#isPaused
    const isSlow = (isIncomplete || writableLength > 0) && nowMs - this.#progressAtMs > slowMs
    if (this.#client.user !== undefined) this.#knownAtMs = nowMs
    if (isSlow || nowMs - this.#knownAtMs > slowMs) this.destroy()
  }

  #noteUser(): void {
    if (this.#isKnown || this.#client.user === undefined) return
    this.#isKnown = true
    this.#events.onKnown()
  }

  /** Runs all commands that have arrived, as far as their answers have room. */
  #run(): void {
    const client = this.#client
    if (this.#socket.destroyed) return
    try {
      while (!client.isLeaving && this.#hasRoom()) {
        const words = this.#reader.next()
        if (words === undefined) break
        if (words.length === 0) continue
        this.#commands++
        this.#answer(runCommand(client, words, this.#parts))
        // a request of HTTP is lines, too: its body, which a page of the web may have chosen, must not be read as commands
        if (this.#reader.isLine && !isCommand(words[0]!)) client.isLeaving = true
        if (client.wrongPasswords === mostGuesses) this.#events.onGuesses()
        this.#noteUser()
        this.#reader.bounds = boundsOf(client)
      }
    } catch (error) {
      const message = error instanceof RespError ? `Protocol error: ${error.message}` : 'Diana failed'
      this.#answer(new Failure(`ERR ${message}`))
      client.isLeaving = true
    }
    this.#flush()
  }

  #hasRoom(): boolean {
    const hasRoom =
      this.#awaited.length < mostAwaited && this.#socket.writableLength + this.#out.length < mostUnreadBytes
    if (hasRoom === this.#isPaused) {
      this.#isPaused = !hasRoom
      if (hasRoom) this.#socket.resume()
      else this.#socket.pause()
    }
    return hasRoom
  }

  #answer(reply: Reply | Promise<Reply>): void {
    const { version } = this.#client
    if (!(reply instanceof Promise)) {
      const text = writeReply(reply, version)
      if (this.#awaited.length === 0) this.#out += text
      else this.#awaited.push({ text })
      return
    }
    const awaited: Awaited = { text: undefined }
    this.#awaited.push(awaited)
    void reply.then(found => {
      awaited.text = writeReply(found, version)
      if (this.#awaited[0] === awaited) this.#passLater()
    })
  }

  /** Answers that are there at the same moment are written together. */
  #passLater(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    process.nextTick(() => {
      this.#isFlushing = false
      this.#pass()
    })
  }

  /** Passes on the answers that are there, up to the first that is not. */
  #pass(): void {
    let count = 0
    while (count < this.#awaited.length && this.#awaited[count]!.text !== undefined) {
      this.#out += this.#awaited[count]!.text
      count++
    }
    this.#awaited.splice(0, count)
    this.#run()
  }

  #flush(): void {
    const text = this.#out
    this.#out = ''
    if (text !== '' && this.#socket.writable) this.#socket.write(text)
    if (this.#client.isLeaving && this.#awaited.length === 0) this.#socket.destroySoon()
    // no drain follows answers that the system has taken at once; other connections have their turn first
    else if (this.#isPaused && !this.#socket.writableNeedDrain && this.#awaited.length < mostAwaited) {
      setImmediate(() => this.#run())
    }
  }
}

function boundsOf({ user }: RespClient): RespBounds {
  return user === undefined ? strangerBounds : bounds
}
