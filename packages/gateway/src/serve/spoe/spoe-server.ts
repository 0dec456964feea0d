import { createServer, type Server, type Socket } from 'node:net'
import type { Limiter, Verdict } from 'diana-limiter'
import { isPeerGone } from '../../http/gone-peer.ts'
import { decideWithin } from '../calls/decide-within.ts'
import type { Peers } from '../calls/peers.ts'
import type { ServeSettings } from '../serve-settings.ts'
import { SpoeError } from './spoe-bytes.ts'
import { badRequest, failed, spoeCall, variablesOf } from './spoe-call.ts'
import {
  acknowledge,
  agentDisconnect,
  agentHello,
  frameType,
  readArguments,
  readFrame,
  readValues,
  type SpoeFrame,
} from './spoe-frames.ts'

export interface SpoeServerParts {
  readonly limiter: Limiter
  readonly peers: Peers
  readonly settings: () => ServeSettings
  onRefused(reason: string): void
}

type Variables = Readonly<Record<string, string | number>>

/** The largest frame: HAProxy sends all headers of a request in one frame, and none that is larger than its buffers. */
const maxFrameBytes = 1_048_576
const leastFrameBytes = 256
const helloMs = 5000
const invalidFrame = 4
const normal = 0

/** HAProxy's Stream Processing Offload Protocol, version 2.0: HAProxy asks about each request, and sets variables by the answers. */
export class SpoeServer {
  readonly #parts: SpoeServerParts
  readonly #sockets = new Set<Socket>()
  readonly server: Server

  constructor(parts: SpoeServerParts) {
    this.#parts = parts
    this.server = createServer({ noDelay: true }, socket => this.#accept(socket))
  }

  /** Asks HAProxy to leave, which opens no further calls on these connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>(resolve => this.server.close(() => resolve()))
    for (const socket of this.#sockets) socket.end(agentDisconnect(normal, 'the server is ending'))
    const late = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, 1000)
    await closed
    clearTimeout(late)
  }

  #accept(socket: Socket): void {
    const { peers, settings, onRefused } = this.#parts
    if (isPeerGone(socket, this.server)) {
      socket.destroy()
      return
    }
    if (!peers.isTrusted(socket.remoteAddress) || this.#sockets.size >= settings().connections) {
      onRefused(`${socket.remoteAddress} is not among the peers of trustProxy, or there are too many connections`)
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    const unspoken = setTimeout(() => socket.destroy(), helloMs)
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(unspoken)
      this.#sockets.delete(socket)
    })
    // HAProxy reads its answers; what does not is not read either
    socket.on('drain', () => socket.resume())
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', chunk => {
      clearTimeout(unspoken)
      try {
        rest = this.#readFrames(socket, rest.length === 0 ? chunk : Buffer.concat([rest, chunk]))
      } catch (error) {
        const message = error instanceof SpoeError ? error.message : 'Diana failed'
        socket.removeAllListeners('data').resume()
        socket.end(agentDisconnect(invalidFrame, message))
      }
    })
  }

  /** Answers all frames that have arrived, and returns the bytes after them. */
  #readFrames(socket: Socket, bytes: Buffer): Buffer {
    let at = 0
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32BE(at)
      if (length > maxFrameBytes) throw new SpoeError(`a frame has ${length} bytes; at most ${maxFrameBytes} are read`)
      if (bytes.length - at < 4 + length) break
      this.#answer(socket, readFrame(bytes.subarray(at + 4, at + 4 + length)))
      at += 4 + length
    }
    return bytes.subarray(at)
  }

  #answer(socket: Socket, frame: SpoeFrame): void {
    if (frame.type === frameType.hello) this.#greet(socket, frame)
    else if (frame.type === frameType.notify) this.#decide(socket, frame)
    else if (frame.type === frameType.disconnect) socket.end(agentDisconnect(normal, ''))
    else throw new SpoeError(`frames of type ${frame.type} are not read`)
  }

  #greet(socket: Socket, { reader }: SpoeFrame): void {
    const values = readValues(reader)
    const theirs = Number(values.get('max-frame-size') ?? 0)
    socket.write(agentHello(Math.max(leastFrameBytes, Math.min(maxFrameBytes, theirs))))
    if (values.get('healthcheck') === true) socket.end()
  }

  /**
   * Decides a question; whatever is wrong with one is its own answer, since the questions of other callers come over the same
   * connection.
   */
  #decide(socket: Socket, frame: SpoeFrame): void {
    const reply = (variables: Variables): void => {
      if (socket.writable && !socket.write(acknowledge(frame, variables))) socket.pause()
    }
    try {
      const variables = this.#variablesFor(frame, socket.remoteAddress)
      if (variables instanceof Promise) variables.then(reply, () => reply(failed))
      else reply(variables)
    } catch (error) {
      reply(error instanceof SpoeError ? badRequest(`This call cannot be read: ${error.message}.`) : failed)
    }
  }

  #variablesFor({ reader }: SpoeFrame, peer: string | undefined): Variables | Promise<Variables> {
    const { limiter, peers, settings } = this.#parts
    const call = spoeCall(readArguments(reader), peers, peer)
    if (typeof call === 'string') return badRequest(call)
    const verdict = decideWithin(limiter, call, { waitMs: settings().deadlineMs })
    const answer = (one: Verdict): Variables => variablesOf(one, Date.now())
    return verdict instanceof Promise ? verdict.then(answer) : answer(verdict)
  }
}
