import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2'

export interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly trailers: IncomingHttpHeaders
  readonly interims: readonly IncomingHttpHeaders[]
  readonly body: string
  /** The code of the RST_STREAM that ended the call, 0 for none. */
  readonly reset: number
}

/** A connection of HTTP/2 to one address, for tests. */
export class Http2Caller {
  readonly session: ClientHttp2Session

  constructor(url: string, options: ClientSessionOptions | SecureClientSessionOptions = {}) {
    this.session = connect(url, options)
    this.session.on('error', () => {})
  }

  open(headers: OutgoingHttpHeaders, hasBody = false): ClientHttp2Stream {
    const stream = this.session.request(headers, { endStream: !hasBody })
    stream.on('error', () => {})
    return stream
  }

  call(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Answer> {
    const stream = this.open(headers, body !== undefined)
    if (body !== undefined) stream.end(body)
    return answerOn(stream)
  }

  async close(): Promise<void> {
    if (this.session.destroyed) return
    this.session.destroy()
    await once(this.session, 'close')
  }
}

/** All that comes on a stream until it is closed. */
export async function answerOn(stream: ClientHttp2Stream): Promise<Answer> {
  let headers: IncomingHttpHeaders = {}
  let trailers: IncomingHttpHeaders = {}
  const interims: IncomingHttpHeaders[] = []
  const pieces: Buffer[] = []
  stream.on('headers', interim => interims.push(interim))
  stream.on('response', received => {
    headers = received
  })
  stream.on('trailers', received => {
    trailers = received
  })
  stream.on('data', piece => pieces.push(piece))
  await new Promise(resolve => stream.once('close', resolve))
  const status = headers[':status'] as unknown as number | undefined
  return { status, headers, trailers, interims, body: Buffer.concat(pieces).toString(), reset: stream.rstCode ?? 0 }
}
