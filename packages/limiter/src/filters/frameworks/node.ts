import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../../answers/answer.ts'
import type { CallBody } from '../../call.ts'
import { warnWhile } from '../../common/warn-once.ts'
import { bodyOfValue } from '../../costs/call-body.ts'
import { clientCertificateOf } from '../../http/client-certificate.ts'
import { observeNode } from '../costs/observe-node.ts'
import { announcedBytes, type BodyStream, peekBody } from '../costs/peek-body.ts'
import type { Framework, Watcher } from './framework.ts'
import { followEnding, type NodeRequest, type NodeResponse } from './node-ending.ts'

export type { NodeRequest, NodeResponse } from './node-ending.ts'

type Node = Pick<
  Framework<NodeRequest, NodeResponse>,
  | 'method'
  | 'headers'
  | 'target'
  | 'peer'
  | 'clientCertificate'
  | 'isAnswered'
  | 'refuse'
  | 'watch'
  | 'watchLeaving'
  | 'body'
  | 'observe'
> & {
  abandon(): void
  reportError(request: unknown, error: unknown, what: string): void
}

/** The part that all frameworks on Node's own server have in common: the request and the response behind theirs. */
export const node: Node = {
  method: request => request.method ?? 'GET',
  headers: request => request.headers,
  target: request => request.url ?? '/',
  peer: request => request.socket.remoteAddress,
  clientCertificate: request => clientCertificateOf(request.socket),
  isAnswered: response => response.headersSent || response.writableEnded,
  refuse: refuseNode,
  watch: watchNode,
  watchLeaving: watchUpgrading,
  body: (request, response) => bodyOf(request, (request as { readonly body?: unknown }).body, response),
  observe: (_request, response, observer) => observeNode(response, observer),
  abandon: () => {},
  reportError: (_request, error, what) => warnWhile('DIANA_FAILED', `${what}: ${String(error)}`, what),
}

/** Returns the body as the application has parsed it, or else its first bytes, which are put back. */
export function bodyOf(request: NodeRequest, parsed: unknown, response: NodeResponse): CallBody | Promise<CallBody> {
  const known = bodyOfValue(parsed, announcedBytes(request.headers))
  return known ?? peekBody(request as unknown as BodyStream, response)
}

function refuseNode(request: NodeRequest, response: NodeResponse, { status, headers, body }: Refusal): void {
  response.statusCode = status
  // one call at a time, since the types of HTTP/1 and HTTP/2 have no common form of writeHead
  for (const [name, value] of headers) response.setHeader(name, value)
  response.setHeader('Content-Length', Buffer.byteLength(body))
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}

function watchNode(request: NodeRequest, response: NodeResponse, watcher: Watcher): void {
  if (isGone(request, response)) {
    watcher.ended(undefined)
    return
  }
  const pipeline = isBehindOthers(response) ? pipelineOf(request.socket) : undefined
  const statusAtEnd = followEnding(request, response)
  const end = (): void => {
    pipeline?.delete(end)
    watcher.ended(statusAtEnd())
  }
  pipeline?.add(end)
  response.once('close', end)
}

/**
 * Watches a connection that asks for another protocol, on which Node reads no further, so that nothing else notices that its caller
 * disconnects.
 */
function watchUpgrading(request: NodeRequest, _response: NodeResponse, left: () => void): (() => void) | undefined {
  if (!('upgrade' in request) || request.upgrade !== true) return undefined
  const { socket } = request
  return watchLeaving(socket, () => {
    left()
    // half a connection could otherwise stay open forever
    socket.destroy()
  })
}

/** The waiting calls of a pipelined connection: one listener for all, however many a caller sends. */
const pipelines = new WeakMap<Socket, Set<() => void>>()

/** True if a response is behind others of its connection: it has no socket yet, and gets no event when that closes. */
function isBehindOthers(response: NodeResponse): boolean {
  return !('stream' in response) && response.socket === null
}

function pipelineOf(socket: Socket): Set<() => void> {
  const known = pipelines.get(socket)
  if (known !== undefined) return known
  const ends = new Set<() => void>()
  pipelines.set(socket, ends)
  socket.once('close', () => {
    for (const end of ends) end()
  })
  return ends
}

/** True if nothing can be sent any more: Node throws if an interim answer is sent on a stream that is over. */
export function isGone(request: NodeRequest, response: NodeResponse): boolean {
  if ('stream' in response) return response.stream.destroyed || response.stream.closed
  return response.destroyed || request.socket.destroyed
}

/** A caller who sends more than this while they wait is not read any further; they are noticed when the connection closes. */
const MOST_BYTES = 65_536

/**
 * Reports that the caller of a connection has closed their half of it, while no other code reads it: the end of a stream is
 * only noticed by reading. Returns a function that stops it and puts what was read back into the stream.
 */
export function watchLeaving(socket: Duplex, left: () => void): () => void {
  const chunks: Buffer[] = []
  let bytes = 0
  const read = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      chunks.push(chunk)
      bytes += chunk.length
    }
    if (bytes > MOST_BYTES) socket.off('readable', read)
  }
  const stop = (): void => {
    socket.off('readable', read)
    socket.off('end', left)
    if (bytes > 0 && !socket.readableEnded) socket.unshift(Buffer.concat(chunks))
    bytes = 0
  }
  socket.once('end', left)
  socket.on('readable', read)
  return stop
}
