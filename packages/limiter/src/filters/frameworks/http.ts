import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../../answers/answer.ts'
import { emptyBody } from '../../costs/call-body.ts'
import type { Framework } from './framework.ts'
import { type NodeRequest, type NodeResponse, node, watchLeaving } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** As long as `HTTP/1.1 101`. */
const HEAD_LENGTH = 12

/** Node's own servers: HTTP/1, and HTTP/2 through its compatible face. */
export const httpFramework: Framework<NodeRequest, NodeResponse> = {
  ...node,
  identity: request => request,
  path: request => spelledPath(node.target(request)),
  template: () => undefined,
  // the router behind it is not known
  caseInsensitive: () => true,
  setHeader: (response, name, value) => {
    response.setHeader(name, value)
  },
  refuse: (request, response, refusal) => {
    // a caller that did not get 100 Continue may or may not send its body, so the rest of this connection cannot be parsed
    if (request.headers.expect !== undefined && !('stream' in response)) response.setHeader('Connection', 'close')
    node.refuse(request, response, refusal)
  },
}

const { respond: _respond, followAnswer: _followAnswer, ...requestsOfNode } = httpFramework

/** A connection that its caller wants for something else than HTTP: Upgrade and CONNECT. */
export const tunnelFramework: Framework<IncomingMessage, Duplex> = {
  ...requestsOfNode,
  isAnswered: socket => socket.writableEnded,
  // a tunnel has no bodies
  body: () => emptyBody,
  observe: () => {},
  // the handler that opens the tunnel writes its own headers
  setHeader: () => {},
  refuse: (_request, socket, refusal) => {
    socket.on('error', ignore)
    // half a connection could otherwise stay open forever
    socket.end(inBytes(asFailure(refusal)), () => socket.destroy())
  },
  watch: (_request, socket, watcher) => {
    // Node has left the socket to us, and no other code listens yet
    socket.on('error', ignore)
    if (socket.destroyed) {
      watcher.ended(undefined)
      return
    }
    const status = followStatus(socket)
    socket.once('close', () => watcher.ended(status()))
  },
  watchLeaving: (_request, socket, left) => watchLeaving(socket, left),
  abandon: socket => {
    socket.destroy()
  },
}

/** Makes a refusal a failure, since a caller that asks for a tunnel takes any success status for one. */
function asFailure(refusal: Refusal): Refusal {
  return refusal.status < 400 ? { ...refusal, status: 503 } : refusal
}

function ignore(): void {}

/** Reads the status that the application writes to a connection first; undefined while it has written none. */
function followStatus(socket: Duplex): () => number | undefined {
  const sink = socket as unknown as Record<'write' | 'end', (...args: unknown[]) => unknown>
  const { write, end } = sink
  let head = ''
  const follow = (method: (...args: unknown[]) => unknown) =>
    function (this: unknown, ...args: unknown[]): unknown {
      const [chunk] = args
      if (typeof chunk === 'string') head += chunk.slice(0, HEAD_LENGTH)
      else if (chunk instanceof Uint8Array) head += Buffer.from(chunk.subarray(0, HEAD_LENGTH)).toString('latin1')
      if (head.length >= HEAD_LENGTH) {
        sink.write = write
        sink.end = end
      }
      return method.apply(this, args)
    }
  sink.write = follow(write)
  sink.end = follow(end)
  return () => {
    const status = /^HTTP\/1\.\d (\d{3})/.exec(head)?.[1]
    return status === undefined ? undefined : Number(status)
  }
}

function inBytes({ status, headers, body }: Refusal): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const length = Buffer.byteLength(body)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\n${lines}Connection: close\r\nContent-Length: ${length}\r\n\r\n${body}`
}
