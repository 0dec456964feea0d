import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Outlet } from './outlet.ts'
import { addTrailers } from './trailers.ts'

/** Writes to the caller's connection itself, past the hooks of Fastify that could change an answer. */
export class DirectOutlet implements Outlet {
  readonly #reply: FastifyReply
  readonly #raw: ServerResponse
  #onReady: () => void = () => {}

  constructor(reply: FastifyReply) {
    this.#reply = reply
    this.#raw = reply.raw
  }

  begin(status: number, text: string, headers: readonly string[], onReady: () => void, onGone: () => void): void {
    this.#writeHead(status, text, headers)
    this.#reply.hijack()
    this.#onReady = onReady
    this.#raw.once('close', () => {
      if (!this.#raw.writableFinished) onGone()
    })
    // headers travel with the first bytes of the body, but do not wait for them
    queueMicrotask(() => {
      if (!this.#raw.writableEnded) this.#raw.flushHeaders()
    })
  }

  write(chunk: Buffer): boolean {
    if (this.#raw.write(chunk)) return true
    this.#raw.once('drain', this.#onReady)
    return false
  }

  end(trailers: readonly (string | Buffer)[] | null = null): void {
    addTrailers(this.#raw, trailers)
    this.#raw.end()
  }

  breakOff(): void {
    this.#raw.destroy()
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
