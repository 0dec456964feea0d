import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Outlet } from './outlet.ts'

/** Sends the answer through Fastify, where the hooks of other filters may see and change it. */
export class ReplyOutlet implements Outlet {
  readonly #reply: FastifyReply
  #body: Readable | undefined

  constructor(reply: FastifyReply) {
    this.#reply = reply
  }

  begin(status: number, text: string, headers: readonly string[], onReady: () => void, onGone: () => void): void {
    const body = new Readable({
      read: onReady,
      destroy: (error, done) => {
        if (!body.readableEnded) onGone()
        done(error)
      },
    })
    // whoever hung up is told nothing
    body.on('error', () => {})
    this.#body = body
    for (const [name, values] of grouped(headers)) this.#reply.header(name, values.length === 1 ? values[0]! : values)
    this.#reply.raw.statusMessage = text
    this.#reply.code(status).send(body)
  }

  write(chunk: Buffer): boolean {
    return this.#body!.push(chunk)
  }

  end(): void {
    this.#body!.push(null)
  }

  breakOff(error: Error): void {
    this.#body!.destroy(error)
  }
}

function grouped(flat: readonly string[]): Map<string, string[]> {
  const byName = new Map<string, string[]>()
  for (let at = 0; at < flat.length; at += 2) {
    const values = byName.get(flat[at]!)
    if (values) values.push(flat[at + 1]!)
    else byName.set(flat[at]!, [flat[at + 1]!])
  }
  return byName
}
