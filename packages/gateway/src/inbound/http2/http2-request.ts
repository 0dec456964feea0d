import type { IncomingHttpHeaders } from 'node:http'
import {
  type IncomingHttpHeaders as Http2Headers,
  Http2ServerRequest,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable, ReadableOptions } from 'node:stream'

type Parts = [stream: ServerHttp2Stream, headers: Http2Headers, options: ReadableOptions, raw: readonly string[]]

/** Node's own, by a type that lets its properties be replaced by accessors. */
const NodeRequest: new (...parts: Parts) => Readable = Http2ServerRequest

const sockets = new WeakMap<object, Socket>()

/** Returns the connection of a session or stream. */
export function socketOf(owner: object): Socket | undefined {
  return sockets.get(owner)
}

/** Remembers the connection of a session and its streams: of a stream that is reset at once, Node knows nothing any more. */
export function rememberSocket(session: ServerHttp2Session, socket: Socket): void {
  sockets.set(session, socket)
  session.prependListener('stream', stream => sockets.set(stream, socket))
}

/**
 * A request of HTTP/2 in the form that the rest of the gateway knows: without pseudo-headers, with `:authority` as its
 * Host, and with a body announced by `transfer-encoding` if no length announces it.
 */
export class Http2Request extends NodeRequest {
  readonly #headers: IncomingHttpHeaders
  readonly #rawHeaders: string[]
  readonly #socket: Socket
  #url: string
  #method: string
  #bytesReceived = 0

  constructor(...parts: Parts) {
    super(...parts)
    const [stream, headers, , rawHeaders] = parts
    this.#method = String(headers[':method'])
    this.#url = String(headers[':path'] ?? '*')
    this.#headers = plainHeaders(headers)
    this.#rawHeaders = plainRawHeaders(rawHeaders)
    this.#socket = socketOf(stream)!
    if (this.#headers['content-length'] === undefined && !stream.endAfterHeaders) {
      this.#headers['transfer-encoding'] = 'chunked'
    }
    // Node would end the body as if it were whole
    stream.once('aborted', () => this.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' })))
    this.on('error', () => {})
  }

  get bytesReceived(): number {
    return this.#bytesReceived
  }

  get headers(): IncomingHttpHeaders {
    return this.#headers
  }

  get rawHeaders(): string[] {
    return this.#rawHeaders
  }

  get socket(): Socket {
    return this.#socket
  }

  get connection(): Socket {
    return this.#socket
  }

  get method(): string {
    return this.#method
  }

  set method(method: string) {
    this.#method = method
  }

  get url(): string {
    return this.#url
  }

  set url(url: string) {
    this.#url = url
  }

  override push(chunk: Buffer | null): boolean {
    if (chunk !== null) this.#bytesReceived += chunk.length
    return super.push(chunk)
  }
}

/** True if a request came over HTTP/2. Its version does not say: a caller of HTTP/1 may write any version into its first line. */
export function isHttp2(request: object): boolean {
  return request instanceof Http2Request
}

function plainHeaders(headers: Http2Headers): IncomingHttpHeaders {
  const plain: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (!name.startsWith(':')) plain[name] = headers[name]
  }
  const authority = headers[':authority']
  if (authority !== undefined) plain.host = authority
  return plain
}

/** Returns the headers with one `host` if all say the same; with several, which is refused later, if they do not. */
function plainRawHeaders(raw: readonly string[]): string[] {
  const plain: string[] = []
  const hosts = new Set<string>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!
    const value = raw[at + 1]!
    if (name === ':authority' || name === 'host') hosts.add(value)
    else if (!name.startsWith(':')) plain.push(name, value)
  }
  for (const host of hosts) plain.push('host', host)
  return plain
}
