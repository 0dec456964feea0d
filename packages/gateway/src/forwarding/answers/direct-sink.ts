import type { ServerResponse } from 'node:http'
import type { CallReply } from '../../http/call.ts'
import { addTrailers } from '../headers/trailers.ts'
import { breakOff } from './break-off.ts'
import type { OutletSource, ResponseSink } from './response-sink.ts'
import { writeWhole } from './whole-response.ts'

/** How much of a body is kept for a moment, to be sent in one piece with the headers. */
const maxHeldBytes = 8192

/** Writes to the caller's connection itself, past the hooks of Fastify that could change an answer. */
export class DirectSink implements ResponseSink {
  readonly #reply: CallReply
  readonly #raw: ServerResponse
  #source: OutletSource | undefined
  /** The first bytes of the body, if they came together with the headers; most answers are whole then. */
  #held: Buffer | undefined
  #hasWritten = false

  constructor(reply: CallReply) {
    this.#reply = reply
    this.#raw = reply.raw
  }

  begin(status: number, text: string, headers: readonly string[], source: OutletSource): void {
    this.#writeHead(status, text, headers)
    this.#reply.hijack()
    this.#source = source
    // headers travel with the first bytes of the body, but do not wait for them
    process.nextTick(flush, this)
  }

  send(status: number, text: string, headers: readonly string[], body: Buffer): void {
    this.#hasWritten = true
    if (body.length <= maxHeldBytes && writeWhole(this.#raw, { status, reason: text, headers }, body)) {
      this.#reply.hijack()
      return
    }
    this.#writeHead(status, text, headers)
    this.#reply.hijack()
    this.#endWith(body)
  }

  write(chunk: Buffer): boolean {
    if (!this.#hasWritten && this.#held === undefined && chunk.length <= maxHeldBytes) {
      this.#held = chunk
      return true
    }
    if (this.#held !== undefined) this.flush()
    this.#hasWritten = true
    if (this.#raw.write(chunk)) return true
    this.#raw.once('drain', () => this.#source!.onReady())
    return false
  }

  end(trailers: readonly (string | Buffer)[] | null = null): void {
    addTrailers(this.#raw, trailers)
    this.#hasWritten = true
    if (this.#held === undefined) this.#raw.end()
    else this.#endWith(this.#held)
  }

  breakOff(): void {
    breakOff(this.#raw)
  }

  /** Sends what is kept; what follows is written as it comes. */
  flush(): void {
    if (this.#hasWritten) return
    this.#hasWritten = true
    if (this.#held === undefined) this.#raw.flushHeaders()
    else this.#raw.write(this.#held)
    this.#held = undefined
  }

  /** As text, a short body is written in one piece with the headers, which are text. */
  #endWith(body: Buffer): void {
    if (body.length === 0) this.#raw.end()
    else if (body.length <= maxHeldBytes) this.#raw.end(body.toString('latin1'), 'latin1')
    else this.#raw.end(body)
  }

  #writeHead(status: number, text: string, headers: readonly string[]): void {
    try {
      this.#raw.writeHead(status, text, headers as string[])
    } catch (error) {
      // the answer that is given instead has a reason of its own
      this.#raw.statusMessage = ''
      throw error
    }
  }
}

function flush(sink: DirectSink): void {
  sink.flush()
}
