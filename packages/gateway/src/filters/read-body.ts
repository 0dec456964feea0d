import type { FastifyReply, FastifyRequest } from 'fastify'
import { hasBody } from '../proxy/body.ts'

const mostHeldBytes = 64 * 1024 * 1024

/** Reads bodies whole, each of a bounded size, and holds no more of all of them together than a process can bear. */
export class BodyReader {
  readonly #mostBytes: number
  readonly #mostHeld: number
  #held = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#mostHeld = Math.max(mostBytes, mostHeldBytes)
  }

  /** The whole body of a call, left for the proxy to send on; or why it is not read. */
  async read(request: FastifyRequest, reply: FastifyReply): Promise<Buffer | 'too large' | 'no room'> {
    if (Buffer.isBuffer(request.body)) return request.body.length > this.#mostBytes ? 'too large' : request.body
    if (!hasBody(request.raw)) return Buffer.alloc(0)
    if (Number(request.headers['content-length'] ?? 0) > this.#mostBytes) return 'too large'
    const pieces: Buffer[] = []
    let bytes = 0
    // it is held until the call has ended, however it ends
    reply.raw.once('close', () => {
      this.#held -= bytes
      bytes = 0
    })
    for await (const piece of request.raw as AsyncIterable<Buffer>) {
      if (bytes + piece.length > this.#mostBytes) return 'too large'
      if (this.#held + piece.length > this.#mostHeld) return 'no room'
      this.#held += piece.length
      bytes += piece.length
      pieces.push(piece)
    }
    const body = Buffer.concat(pieces)
    request.body = body
    return body
  }
}
