import { ServerResponse } from 'node:http'
import type { CallReply } from '../../http/call.ts'
import { addTrailers } from '../headers/trailers.ts'
import { breakOff, type OutletSource, type ResponseSink } from './response-sink.ts'

/** The longest part of a body that is kept for a moment, to be sent in one piece with the headers. */
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

/** The fields that Node's own writeHead sets, and end() looks at. */
interface HeadOfResponse {
  _header: string | null
  _headerSent: boolean
  readonly _keepAliveTimeout?: number
}

const invalidInName = /[^a-z\d-]/
const invalidInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/

/**
 * Writes an answer of a service that is whole, head and body in one piece, as Node would write it: Node would look at each
 * header several times, and write in two pieces. False, with nothing done, for every answer that is not of the usual kind: one
 * of HTTP/1.1 with a length and a date, on a connection that is kept. Names are in lower case.
 */
export function writeWhole(
  raw: ServerResponse,
  head: { readonly status: number; readonly reason: string; readonly headers: readonly string[] },
  body: Buffer,
): boolean {
  if (!isUsual(raw)) return false
  const lines = linesOf(head.headers)
  if (lines === undefined) return false
  const response = raw as ServerResponse & HeadOfResponse
  const { socket } = raw
  const seconds = Math.floor((response._keepAliveTimeout ?? 0) / 1000)
  const keepAlive = `Connection: keep-alive\r\n${seconds > 0 ? `Keep-Alive: timeout=${seconds}\r\n` : ''}`
  const text = `HTTP/1.1 ${head.status} ${head.reason}\r\n${lines}${keepAlive}\r\n`
  raw.statusCode = head.status
  raw.statusMessage = head.reason
  response._header = text
  response._headerSent = true
  socket!.write(text + body.toString('latin1'), 'latin1')
  raw.end()
  return true
}

function isUsual(raw: ServerResponse): boolean {
  const { socket, req } = raw
  if (!(raw instanceof ServerResponse) || !socket?.writable || socket.writableLength > 0) return false
  if (raw.headersSent || !raw.shouldKeepAlive || !('_header' in raw) || raw.getHeaderNames().length > 0) return false
  return req.httpVersion === '1.1' && req.method !== 'HEAD'
}

/** Writes headers as lines; undefined if Node has more to say about them. */
function linesOf(headers: readonly string[]): string | undefined {
  let lines = ''
  let hasLength = false
  let hasDate = false
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    const value = headers[at + 1]!
    switch (name) {
      case 'content-length':
        hasLength = true
        break
      case 'date':
        hasDate = true
        break
      case 'connection':
      case 'expect':
      case 'keep-alive':
      case 'trailer':
      case 'transfer-encoding':
        return undefined
    }
    if (invalidInName.test(name) || invalidInValue.test(value)) return undefined
    lines += `${name}: ${value}\r\n`
  }
  return hasLength && hasDate ? lines : undefined
}
