import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { hasBody } from '../../http/message-headers.ts'
import { paceOf } from '../calls/call-pace.ts'

const mostHeldBytes = 64 * 1024 * 1024
const stalledMs = 1000
/** A connection that is cut closes within a few turns of the event loop. */
const turnsToClose = 10

/** Reads bodies whole, each of a bounded size, and holds no more of all of them together than a process can bear. */
export class BodyReader {
  readonly #mostBytes: number
  readonly #mostHeld: number
  readonly #reading = new Set<IncomingMessage>()
  #held = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#mostHeld = Math.max(mostBytes, mostHeldBytes)
  }

  /** Returns the whole body of a call, left for the proxy to send on; or why it is not read. */
  async read(request: FastifyRequest, reply: FastifyReply): Promise<Buffer | 'too large' | 'no room' | 'gone'> {
    if (Buffer.isBuffer(request.body)) return request.body.length > this.#mostBytes ? 'too large' : request.body
    if (!hasBody(request.raw)) return Buffer.alloc(0)
    if (Number(request.headers['content-length'] ?? 0) > this.#mostBytes) return 'too large'
    const pieces: Buffer[] = []
    let bytes = 0
    this.#reading.add(request.raw)
    // it is held until the call has ended, however it ends
    reply.raw.once('close', () => {
      this.#reading.delete(request.raw)
      this.#held -= bytes
      bytes = 0
    })
    try {
      for await (const piece of request.raw as AsyncIterable<Buffer>) {
        if (bytes + piece.length > this.#mostBytes) return 'too large'
        if (!this.#hasRoom(piece.length) && !(await this.#makeRoom(piece.length))) return 'no room'
        this.#held += piece.length
        bytes += piece.length
        pieces.push(piece)
      }
    } catch {
      // the caller left, or sent what is no body, and no caller waits for an answer
      return 'gone'
    }
    const body = Buffer.concat(pieces)
    request.body = body
    this.#reading.delete(request.raw)
    return body
  }

  #hasRoom(bytes: number): boolean {
    return this.#held + bytes <= this.#mostHeld
  }

  /** Bodies that do not arrive make room for those that do. */
  async #makeRoom(bytes: number): Promise<boolean> {
    for (const raw of this.#reading) {
      const pace = paceOf(raw)
      if (pace && pace.stalledMs >= stalledMs) pace.cut()
    }
    for (let turn = 0; turn < turnsToClose && !this.#hasRoom(bytes); turn++) await nextTurn()
    return this.#hasRoom(bytes)
  }
}
