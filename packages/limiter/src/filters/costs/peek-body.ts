import type { EventEmitter } from 'node:events'
import type { CallBody } from '../../call.ts'
import { bodyOfPrefix, emptyBody, PREFIX_BYTES, unreadableBody } from '../../costs/call-body.ts'

/** A request of Node's servers, as far as its body is read. */
export interface BodyStream extends EventEmitter {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly readableDidRead: boolean
  readonly readableFlowing: boolean | null
  readonly readableLength: number
  readonly destroyed: boolean
  readonly _readableState?: { readonly ended?: boolean }
  read(): Buffer | string | null
  unshift(chunk: Buffer): void
  resume(): void
}

/** A caller whose first bytes take longer is charged as one whose body cannot be read. */
const PATIENCE_MS = 10_000

/** Returns the size that a request announces for its body; undefined if it announces none. */
export function announcedBytes(headers: BodyStream['headers']): number | undefined {
  const length = headers['content-length']
  if (typeof length === 'string' && /^\d{1,15}$/.test(length)) return Number(length)
  return headers['transfer-encoding'] === undefined && length === undefined ? 0 : undefined
}

/** Returns the text of a header, also if there are several. */
export function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join()
}

/** True if a body is encoded, so that its bytes are not those of a document. */
export function isEncoded(headers: BodyStream['headers']): boolean {
  return (headers['content-encoding'] ?? 'identity') !== 'identity'
}

/**
 * Reads the first bytes of a body and puts them back, so that the application or the proxy gets all of them. `response` says when
 * the rest of a body that is not read can be dropped.
 */
export function peekBody(stream: BodyStream, response: EventEmitter): CallBody | Promise<CallBody> {
  const bytes = announcedBytes(stream.headers)
  const isStarted = stream.readableDidRead || stream.readableFlowing !== null
  if (bytes === 0 && !('stream' in stream)) return emptyBody
  // something else reads it
  if (isStarted || stream.destroyed || isEncoded(stream.headers)) return unreadableBody(bytes)
  return new Promise(resolve => new Peek(stream, bytes, resolve).begin(response))
}

class Peek {
  readonly #stream: BodyStream
  readonly #announced: number | undefined
  readonly #resolve: (body: CallBody) => void
  readonly #pieces: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(stream: BodyStream, announced: number | undefined, resolve: (body: CallBody) => void) {
    this.#stream = stream
    // of HTTP/2, a body may come that nothing announces
    this.#announced = announced === 0 ? undefined : announced
    this.#resolve = resolve
  }

  begin(response: EventEmitter): void {
    const stream = this.#stream
    stream.on('readable', this.#onReadable)
    for (const event of ['close', 'error', 'aborted']) stream.on(event, this.#onGone)
    this.#timer = setTimeout(this.#onGone, PATIENCE_MS)
    // a call may be answered before its body is read: Node then drops the body only if reading has not begun
    response.once('finish', () => {
      if (stream.readableFlowing !== true && stream.listenerCount('readable') === 0) stream.resume()
    })
    if (stream.readableLength > 0 || this.#isEnded) this.#onReadable()
  }

  get #isEnded(): boolean {
    return this.#stream._readableState?.ended === true || this.#bytes === this.#announced
  }

  readonly #onReadable = (): void => {
    const stream = this.#stream
    while (stream.readableLength > 0 && this.#bytes < PREFIX_BYTES) {
      const piece = stream.read()
      if (piece === null) break
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      this.#pieces.push(bytes)
      this.#bytes += bytes.length
    }
    if (this.#bytes < PREFIX_BYTES && !this.#isEnded) return
    const isWhole = this.#isEnded && stream.readableLength === 0
    const prefix = this.#end()
    this.#resolve(
      bodyOfPrefix(prefix.subarray(0, PREFIX_BYTES), {
        isWhole: isWhole && prefix.length <= PREFIX_BYTES,
        bytes: this.#announced,
        type: textOf(stream.headers['content-type']),
      }),
    )
  }

  readonly #onGone = (): void => {
    this.#end()
    this.#resolve(unreadableBody(this.#announced))
  }

  /** Puts back what was read, in the same turn: the stream would otherwise report its end. */
  #end(): Buffer {
    const stream = this.#stream
    clearTimeout(this.#timer)
    stream.off('readable', this.#onReadable)
    for (const event of ['close', 'error', 'aborted']) stream.off(event, this.#onGone)
    const read = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)
    if (read.length > 0 && !stream.destroyed) stream.unshift(read)
    return read
  }
}

/** Reads the first bytes of a body from a copy of the request; the application reads the request itself. */
export async function peekFetchBody(request: Request): Promise<CallBody> {
  const headers = Object.fromEntries(request.headers)
  // a body without a length is chunked
  const bytes = headers['content-length'] === undefined ? undefined : announcedBytes(headers)
  if (request.body === null) return emptyBody
  if (request.bodyUsed || isEncoded(headers)) return unreadableBody(bytes)
  const reader = (request.clone().body as ReadableStream<Uint8Array>).getReader()
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    while (length < PREFIX_BYTES) {
      const { done, value } = await reader.read()
      if (done) return bodyOfPrefix(Buffer.concat(pieces), { isWhole: true, bytes, type: headers['content-type'] })
      pieces.push(value)
      length += value.length
    }
  } catch {
    return unreadableBody(bytes)
  }
  // the copy is not read any further, so that no more of the body is kept for it
  void reader.cancel().catch(() => {})
  return bodyOfPrefix(Buffer.concat(pieces).subarray(0, PREFIX_BYTES), { isWhole: false, bytes })
}
