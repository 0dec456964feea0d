import {
  type IncomingHttpHeaders,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import { constants, Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { Stream } from 'node:stream'
import { grpcTypeOf } from '../../http/grpc/grpc-call.ts'
import { isSingleHeader } from '../../http/http2/single-headers.ts'
import { isOfTheConnection } from '../../http/message-headers.ts'
import { isOver, resetStream } from './stream-resets.ts'

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[] | readonly string[]

/** Node has no name for it in version 20. */
const earlyHints = 103

/** Answers that have no body, whatever is written (RFC 9110, section 6.4.1). */
const bodiless: readonly number[] = [204, 205, 304]

interface NodeResponse extends Stream {
  readonly stream: ServerHttp2Stream & { readonly headRequest: boolean }
  readonly headersSent: boolean
  readonly writableEnded: boolean
  statusCode: number
  getHeaders(): OutgoingHttpHeaders
  setHeader(name: string, value: number | string | readonly string[]): void
  write(chunk: string | Uint8Array, ...rest: unknown[]): boolean
  end(...parts: unknown[]): this
}

/** Node's own, by a type that lets its properties be replaced by accessors. */
const NodeResponse: new (stream: ServerHttp2Stream) => NodeResponse = Http2ServerResponse as never

/** A response of HTTP/2 that can be used as one of HTTP/1.1: what only a connection of HTTP/1.1 can say is left out. */
export class Http2Response extends NodeResponse {
  #bytesWritten = 0

  constructor(stream: ServerHttp2Stream) {
    super(stream)
    if (stream.destroyed || this.stream.headRequest) this.#closeWith(stream)
    // later bytes of the caller are of no use once it has its answer (RFC 9113, section 8.1)
    stream.once('finish', () => {
      // not at once: Node sends the end of the answer in a turn of its own
      setImmediate(() => {
        if (stream.state.remoteClose !== 1) stream.close(constants.NGHTTP2_NO_ERROR)
        // a stream is over only when all that came has been read
        stream.removeAllListeners('data').resume()
      })
    })
  }

  /** Bytes that have left this process; the rest waits for the caller's window. */
  get bytesSent(): number {
    return this.#bytesWritten - this.stream.bufferSize
  }

  get writableNeedDrain(): boolean {
    return this.stream.writableNeedDrain
  }

  /** True if the answer is over. A stream that is reset is finished too, in its own view. */
  get writableFinished(): boolean {
    return this.writableEnded && this.stream.writableFinished && this.stream.rstCode === constants.NGHTTP2_NO_ERROR
  }

  get destroyed(): boolean {
    return isOver(this.stream)
  }

  /**
   * True if the answer is closed. Node calls a stream closed before its end has been sent; a caller that reads nothing keeps it for
   * as long as it likes.
   */
  get closed(): boolean {
    return this.stream.destroyed
  }

  get statusMessage(): string {
    return ''
  }

  set statusMessage(_text: string) {
    // HTTP/2 has no reason phrase
  }

  override setHeader(name: string, value: number | string | readonly string[]): void {
    if (!isOfTheConnection(name.toLowerCase())) super.setHeader(name, value)
  }

  writeHead(status: number, text?: string | Headers, headers: Headers | undefined = headersIn(text)): this {
    const { stream } = this
    if (isOver(stream)) return this
    const said: OutgoingHttpHeaders = { ...this.getHeaders(), ...merged(headers) }
    for (const name in said) {
      validateHeaderName(name)
      for (const value of [said[name]].flat()) validateHeaderValue(name, String(value))
    }
    this.statusCode = status
    // its body is dropped, and a length without a body cannot be read
    if (status === 205) delete said['content-length']
    const isAll = this.writableEnded || isTrailersOnly(said)
    stream.respond({ ':status': status, ...said }, { endStream: isAll, waitForTrailers: !isAll })
    return this
  }

  /**
   * Closes the response with its stream. Node emits no `close` for a stream that was reset before it was served, or for HEAD before
   * the end of the answer.
   */
  #closeWith(stream: ServerHttp2Stream): void {
    let isClosed = false
    this.once('close', () => {
      isClosed = true
    })
    const close = (): void => {
      if (!isClosed) this.emit('close')
    }
    if (stream.destroyed) setImmediate(close)
    else stream.once('close', close)
  }

  writeProcessing(): void {
    this.writeInterim({ ':status': constants.HTTP_STATUS_PROCESSING })
  }

  writeContinue(): boolean {
    return this.writeInterim({ ':status': constants.HTTP_STATUS_CONTINUE })
  }

  writeEarlyHints(hints: Readonly<Record<string, string | string[]>>): boolean {
    return this.writeInterim({ ':status': earlyHints, ...merged(hints) })
  }

  /** Sends an interim answer, or nothing to a caller that has reset its stream: Node would throw. */
  writeInterim(headers: OutgoingHttpHeaders): boolean {
    if (this.headersSent || this.destroyed) return false
    this.stream.additionalHeaders(headers)
    return true
  }

  override write(chunk: string | Uint8Array, ...rest: unknown[]): boolean {
    if (this.stream.headRequest || this.stream.writableEnded || bodiless.includes(this.statusCode)) return true
    this.#bytesWritten += typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length
    return super.write(chunk, ...rest)
  }

  /** Ends the stream without an end of the answer, so that the caller does not take it for a whole one. */
  destroy(): this {
    this.reset(constants.NGHTTP2_INTERNAL_ERROR)
    return this
  }

  /** Ends the stream, also if its caller reads nothing, not even that. */
  reset(code: number): void {
    resetStream(this.stream, code)
    setImmediate(() => this.stream.destroy())
  }
}

/** True if headers are a whole answer, which ends with them: answers of gRPC whose headers have its status. */
function isTrailersOnly(headers: OutgoingHttpHeaders): boolean {
  return headers['grpc-status'] !== undefined && grpcTypeOf(headers as IncomingHttpHeaders) !== undefined
}

function headersIn(text: string | Headers | undefined): Headers | undefined {
  return typeof text === 'string' ? undefined : text
}

/** Names in lower case, with all values of each; nothing of the connection. */
function merged(headers: Headers | undefined): OutgoingHttpHeaders {
  const byName: Record<string, string | string[]> = Object.create(null)
  const add = (name: string, value: unknown): void => {
    const lower = name.toLowerCase()
    if (value === undefined || isOfTheConnection(lower)) return
    const values = Array.isArray(value) ? value.map(String) : [String(value)]
    const earlier = byName[lower]
    if (earlier !== undefined && isSingleHeader(lower)) return
    const all = earlier === undefined ? values : [...[earlier].flat(), ...values]
    byName[lower] = all.length === 1 ? all[0]! : all
  }
  if (Array.isArray(headers)) {
    for (let at = 0; at + 1 < headers.length; at += 2) add(String(headers[at]), headers[at + 1])
  } else {
    for (const name in headers) add(name, (headers as OutgoingHttpHeaders)[name])
  }
  return byName
}
