import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Outlet } from './outlet.ts'

/** Writes to the caller's connection itself, past the hooks of Fastify that could change an answer. */
export class DirectOutlet implements Outlet {
  readonly #reply: FastifyReply
  readonly #raw: ServerResponse
  readonly #patienceMs: number
  #onReady: () => void = () => {}
  #waiting: NodeJS.Timeout | undefined

  constructor(reply: FastifyReply, patienceMs: number) {
    this.#reply = reply
    this.#raw = reply.raw
    this.#patienceMs = patienceMs
  }

  begin(status: number, text: string, headers: readonly string[], onReady: () => void, onGone: () => void): void {
    this.#reply.hijack()
    this.#onReady = onReady
    this.#raw.writeHead(status, text, headers as string[])
    this.#raw.once('close', () => {
      clearTimeout(this.#waiting)
      if (!this.#raw.writableFinished) onGone()
    })
  }

  write(chunk: Buffer): boolean {
    if (this.#raw.write(chunk)) return true
    // a caller who takes nothing must not keep the service's connection for ever
    this.#waiting = setTimeout(() => this.#raw.destroy(), this.#patienceMs).unref()
    this.#raw.once('drain', () => {
      clearTimeout(this.#waiting)
      this.#onReady()
    })
    return false
  }

  end(): void {
    this.#raw.end()
  }

  breakOff(): void {
    this.#raw.destroy()
  }
}
