import { once } from 'node:events'
import { Agent, type IncomingMessage, request as request1 } from 'node:http'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import type { Readable } from 'node:stream'
import { soon } from '../sources/watch.ts'

export interface FilterRequest {
  readonly method?: string | undefined
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** One request under way. */
export interface Exchange {
  /** Status and headers, once they are there; the body comes piece by piece. */
  readonly begun: Promise<{ status: number; headers: Reply['headers']; body: Readable }>
  abort(): void
}

/** A client of the server under test. */
export interface FilterClient {
  open(request: FilterRequest): Exchange
  close(): void
}

/** Speaks HTTP/1.1, on a new connection for each request unless it keeps one. */
export function httpClient(port: number, keepAlive: boolean): FilterClient {
  const agent = new Agent({ keepAlive, maxSockets: keepAlive ? 1 : Number.POSITIVE_INFINITY })
  return {
    open({ method = 'GET', path, headers, body }) {
      const outgoing = request1({ host: '127.0.0.1', port, method, path, headers, agent })
      const begun = new Promise<{ status: number; headers: Reply['headers']; body: Readable }>((resolve, reject) => {
        outgoing.once('response', (incoming: IncomingMessage) => {
          incoming.on('error', () => {})
          resolve({ status: incoming.statusCode!, headers: incoming.headers, body: incoming })
        })
        outgoing.on('error', reject)
      })
      begun.catch(() => {})
      outgoing.end(body)
      return { begun, abort: () => outgoing.destroy() }
    },
    close: () => agent.destroy(),
  }
}

/** Speaks HTTP/2, all requests on one connection. */
export function http2Client(port: number): FilterClient {
  const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  return {
    open({ method = 'GET', path, headers, body }) {
      const stream = session.request(
        { ':method': method, ':path': path, ...headers },
        { endStream: body === undefined },
      )
      stream.on('error', () => {})
      const begun = (async () => {
        const [headers] = (await once(stream, 'response')) as [Record<string, string>]
        return { status: Number(headers[':status']), headers, body: stream }
      })()
      begun.catch(() => {})
      if (body !== undefined) stream.end(body)
      return { begun, abort: () => stream.close(constants.NGHTTP2_CANCEL) }
    },
    close: () => session.destroy(),
  }
}

/** Sends a request and reads the whole answer. */
export async function ask(client: FilterClient, request: FilterRequest): Promise<Reply> {
  const { status, headers, body } = await soon(client.open(request).begun, `an answer to ${request.path}`)
  return { status, headers, body: await soon(textOf(body), 'the end of an answer') }
}

export async function textOf(body: Readable): Promise<string> {
  let text = ''
  for await (const piece of body.setEncoding('utf8')) text += piece
  return text
}

/** Sends bytes as they are on one connection, and reads until as many answers began, or the connection is closed. */
export async function sendBytes(port: number, bytes: string, answers: number): Promise<number[]> {
  const socket = connectSocket(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.setEncoding('latin1').write(bytes, 'latin1')
  let text = ''
  const read = async (): Promise<void> => {
    for await (const piece of socket) {
      text += piece
      if (statusesIn(text).length >= answers) return
    }
  }
  await soon(read(), `${answers} answers on one connection`)
  socket.destroy()
  return statusesIn(text)
}

function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(match => Number(match[1]))
}
