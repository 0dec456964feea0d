import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { isSingleHeader } from '../../http/http2/single-headers.ts'
import { isOfTheConnection } from '../../http/message-headers.ts'
import { http2Failure, ServiceGarbled, ServiceLate } from './http2-failure.ts'

/** A call as undici's clients take it; trailers are asked for when the body has been sent. */
export interface StreamCall {
  readonly path: string
  readonly method: string
  /** Names in lower case and values in turn, or by name. */
  readonly headers?: readonly string[] | Readonly<Record<string, string>> | undefined
  readonly body?: Buffer | AsyncIterable<Uint8Array> | null | undefined
  readonly headersTimeout?: number | undefined
  readonly bodyTimeout?: number | undefined
  readonly trailers?: (() => OutgoingHttpHeaders) | undefined
}

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants

/** One call on a session of HTTP/2; its handler gets the events of undici's clients. */
export class ServiceStream {
  readonly #call: StreamCall
  readonly #handler: Dispatcher.DispatchHandler
  #stream: ClientHttp2Stream | undefined
  #timer: NodeJS.Timeout | undefined
  #expectedBytes: number | undefined
  #receivedBytes = 0
  #hasAnswered = false
  #isOver = false
  #wasLate = false
  /** True if all of the answer has come. */
  #hasEnded = false
  #trailers: readonly string[] = []

  constructor(call: StreamCall, handler: Dispatcher.DispatchHandler) {
    this.#call = call
    this.#handler = handler
  }

  /** False if the call has been given up before it was sent. */
  begin(session: ClientHttp2Session, origin: URL): boolean {
    if (this.#isOver) return false
    this.#handler.onConnect?.(error => this.fail(error ?? new Error('the call was aborted')))
    if (this.#isOver) return false
    const { headersTimeout, trailers } = this.#call
    const body = this.#call.body ?? null
    let stream: ClientHttp2Stream
    try {
      stream = session.request(headersFor(this.#call, origin), { endStream: body === null, waitForTrailers: true })
    } catch (error) {
      this.fail(error as Error)
      return false
    }
    this.#stream = stream
    this.#watch(stream)
    if (trailers) stream.on('wantTrailers', () => sendTrailers(stream, trailers()))
    this.#setTimeout(headersTimeout)
    if (Buffer.isBuffer(body)) stream.end(body)
    else if (body !== null) void this.#send(stream, body)
    return true
  }

  /** Calls back once the stream has closed; `wasLate` if the service has not answered in time. */
  onceClosed(onClosed: (wasLate: boolean) => void): void {
    this.#stream!.once('close', () => onClosed(this.#wasLate))
  }

  /** Ends the call at the service, in any state. */
  fail(error: Error): void {
    if (this.#isOver) return
    this.#end()
    const stream = this.#stream
    if (stream && !stream.destroyed) {
      stream.close(NGHTTP2_CANCEL)
      // also if the service reads nothing, not even that
      setImmediate(() => stream.destroy())
    }
    this.#handler.onError?.(error)
  }

  #watch(stream: ClientHttp2Stream): void {
    const onHead = (headers: IncomingHttpStatusHeader, _flags: number, raw: unknown): void =>
      this.#tell(() => this.#onHead(headers[':status'], rawOf(raw)))
    stream.on('headers', onHead as never)
    stream.on('response', onHead as never)
    stream.on('data', (chunk: Buffer) => this.#tell(() => this.#onData(chunk)))
    stream.on('trailers', ((_headers: unknown, _flags: number, raw: unknown) => {
      this.#trailers = rawOf(raw)
    }) as never)
    watchEnd(stream, () => {
      this.#hasEnded = true
    })
    stream.on('end', () => {
      if (this.#hasAnswered && this.#hasEnded && stream.rstCode === NGHTTP2_NO_ERROR) this.#tell(() => this.#complete())
    })
    stream.on('error', error => this.fail(http2Failure(error, stream.rstCode, this.#hasAnswered)))
    stream.on('close', () => this.fail(http2Failure(undefined, stream.rstCode, this.#hasAnswered)))
  }

  #onHead(status = 0, raw: readonly string[]): void {
    const isFinal = status >= 200
    if (isFinal) {
      this.#hasAnswered = true
      this.#handler.onResponseStarted?.()
      this.#setTimeout(this.#call.bodyTimeout)
      const at = raw.findIndex((text, index) => index % 2 === 0 && text === 'content-length')
      if (at >= 0 && this.#call.method !== 'HEAD' && status !== 304) this.#expectedBytes = Number(raw[at + 1])
    }
    const head = raw.map(text => Buffer.from(text, 'latin1'))
    if (this.#handler.onHeaders?.(status, head, this.#resume, '') === false) this.#stream!.pause()
  }

  #onData(chunk: Buffer): void {
    this.#receivedBytes += chunk.length
    this.#timer?.refresh()
    if (this.#handler.onData?.(chunk) === false) this.#stream!.pause()
  }

  #complete(): void {
    if (this.#expectedBytes !== undefined && this.#expectedBytes !== this.#receivedBytes) {
      this.fail(new ServiceGarbled(`${this.#receivedBytes} bytes came of ${this.#expectedBytes}`))
      return
    }
    this.#end()
    this.#handler.onComplete?.(this.#trailers as string[])
    // a service may answer before it has read all (RFC 9113, section 8.1)
    if (!this.#stream!.writableEnded) this.#stream!.close(NGHTTP2_NO_ERROR)
  }

  /** Calls a handler; whatever it throws ends its own call only. */
  #tell(what: () => void): void {
    if (this.#isOver) return
    try {
      what()
    } catch (error) {
      this.fail(error as Error)
    }
  }

  readonly #resume = (): void => {
    this.#timer?.refresh()
    this.#stream!.resume()
  }

  #setTimeout(ms = 0): void {
    clearTimeout(this.#timer)
    this.#timer = ms > 0 ? setTimeout(() => this.#onTimeout(), ms) : undefined
  }

  #onTimeout(): void {
    // while the caller does not read, the service is not to blame
    if (this.#stream!.isPaused()) this.#timer!.refresh()
    else {
      this.#wasLate = true
      this.fail(new ServiceLate(this.#hasAnswered ? 'the answer stopped' : 'no answer came'))
    }
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  /** Iterates by hand: leaving a loop would destroy the caller's stream, which still needs its answer. */
  async #send(stream: ClientHttp2Stream, body: AsyncIterable<Uint8Array>): Promise<void> {
    const pieces = body instanceof Readable ? body.iterator({ destroyOnReturn: false }) : body[Symbol.asyncIterator]()
    try {
      while (!this.#isOver) {
        const { done, value } = await pieces.next()
        if (done || this.#isOver) break
        if (!this.#hasAnswered) this.#timer?.refresh()
        if (!stream.write(value)) await hasRoom(stream)
      }
      if (!this.#isOver) stream.end()
    } catch (error) {
      this.fail(error as Error)
    }
  }
}

/** Reports that the service has ended its side. A stream that is reset emits `end` as well, but Node closes it first. */
function watchEnd(stream: ClientHttp2Stream, onEnd: () => void): void {
  const push = stream.push.bind(stream)
  stream.push = (chunk, encoding) => {
    if (chunk === null && !stream.closed) onEnd()
    return push(chunk, encoding)
  }
}

function hasRoom(stream: ClientHttp2Stream): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('close', done)
  })
}

function sendTrailers(stream: ClientHttp2Stream, trailers: OutgoingHttpHeaders): void {
  try {
    stream.sendTrailers(trailers)
  } catch {
    // the stream has ended meanwhile
  }
}

/** Names and values in turn, without pseudo-headers. */
function rawOf(raw: unknown): readonly string[] {
  const flat = raw as readonly string[]
  return flat.filter((_, at) => !flat[at - (at % 2)]!.startsWith(':'))
}

function headersFor({ method, path, headers = [] }: StreamCall, origin: URL): OutgoingHttpHeaders {
  const flat: readonly string[] = Array.isArray(headers) ? headers : Object.entries(headers).flat()
  const all: OutgoingHttpHeaders = Object.assign(Object.create(null), {
    ':method': method,
    ':scheme': origin.protocol.slice(0, -1),
    ':authority': origin.host,
    ':path': path,
    // trailers are passed on, and gRPC asks for it
    te: 'trailers',
  })
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at]!
    const value = flat[at + 1]!
    const earlier = all[name]
    if (isOfTheConnection(name)) continue
    if (name === 'host') all[':authority'] = value
    else if (earlier === undefined) all[name] = value
    else if (!isSingleHeader(name)) all[name] = [...(Array.isArray(earlier) ? earlier : [String(earlier)]), value]
  }
  return all
}
