import { validateHeaderName, validateHeaderValue } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { AnswerBroken } from '../failure.ts'
import { addTrailers } from '../headers/trailers.ts'
import { breakOff, type OutletSource, type ResponseSink } from './response-sink.ts'

/** An answer that is whole has nothing more to come from. */
const noSource: OutletSource = { onReady: () => {}, onGone: () => {} }

/** Sends the answer through Fastify, where the hooks of other filters may see and change it. */
export class ReplySink implements ResponseSink {
  readonly #reply: FastifyReply
  #body: Readable | undefined

  constructor(reply: FastifyReply) {
    this.#reply = reply
  }

  begin(status: number, text: string, headers: readonly string[], source: OutletSource): void {
    assertWritable(status, headers)
    const body = new Readable({
      read: () => source.onReady(),
      destroy: (error, done) => {
        if (!body.readableEnded) source.onGone()
        done(error)
      },
    })
    // a caller who has left gets no answer
    body.on('error', () => {})
    this.#body = body
    for (const [name, values] of grouped(headers)) this.#reply.header(name, values.length === 1 ? values[0]! : values)
    const { raw } = this.#reply
    // not by code(), which takes no status above 599
    raw.statusCode = status
    raw.statusMessage = text
    // Fastify has set the headers by then, after all hooks, and would keep them until the first byte of the body
    raw.once('pipe', () => setImmediate(flushHead, raw))
    this.#reply.send(body)
  }

  send(status: number, text: string, headers: readonly string[], body: Buffer): void {
    this.begin(status, text, headers, noSource)
    if (body.length > 0) this.write(body)
    this.end()
  }

  write(chunk: Buffer): boolean {
    return this.#body!.push(chunk)
  }

  end(trailers: readonly (string | Buffer)[] | null = null): void {
    addTrailers(this.#reply.raw, trailers)
    this.#body!.push(null)
  }

  breakOff(error: Error): void {
    const { raw } = this.#reply
    if (raw.headersSent) breakOff(raw)
    this.#body!.destroy(new AnswerBroken(error))
  }
}

/** Headers travel with the first bytes of the body if those have come, but do not wait for them. */
function flushHead(raw: FastifyReply['raw']): void {
  if (!raw.headersSent && !raw.destroyed) raw.flushHeaders()
}

/** Throws for headers that Node refuses to write: Fastify writes the head later, when no code could answer for that. */
function assertWritable(status: number, headers: readonly string[]): void {
  if (status < 200 || status > 999) throw Object.assign(new RangeError(`status ${status}`), { code: 'ERR_HTTP_STATUS' })
  for (let at = 0; at + 1 < headers.length; at += 2) {
    validateHeaderName(headers[at]!)
    validateHeaderValue(headers[at]!, headers[at + 1]!)
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
