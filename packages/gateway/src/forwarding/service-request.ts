import type { IncomingMessage } from 'node:http'
import type { Dispatcher } from 'undici'
import { hasBody } from '../http/body.ts'
import type { CallRequest } from '../http/call.ts'
import { type BulkQueue, bulkBytes } from '../inbound/connections/bulk-queue.ts'
import type { Route } from '../services/routes/route.ts'
import type { Upstream } from '../services/upstream.ts'
import { BodyTooLarge } from './failure.ts'
import { trailersOf } from './headers/trailers.ts'

export interface ServiceRequestParts {
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Body
}

/** A call as it is sent to an address, in undici's words. */
export function serviceRequest(
  { url, method, raw }: CallRequest,
  route: Route,
  upstream: Upstream,
  { headers, body }: ServiceRequestParts,
): Dispatcher.DispatchOptions {
  const { headersMs, bodyMs } = route.settings.timeouts
  const request = {
    path: route.targetAt(upstream, url),
    method: method as Dispatcher.HttpMethod,
    headers,
    body: (body ?? null) as NonNullable<Dispatcher.DispatchOptions['body']> | null,
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    // undici would close the connection after HEAD, and after bodies of methods that it expects none of
    reset: false,
    // by the Host of the caller, undici would ask for another certificate
    servername: upstream.serverName,
  }
  return (body === undefined ? request : { ...request, trailers: () => trailersOf(raw) }) as Dispatcher.DispatchOptions
}

/** The body of a call as it is sent on: bytes that a filter has read, or the caller's own stream. */
export type Body = Buffer | IncomingMessage | AsyncIterable<Uint8Array> | undefined

/** A stream that is long, or whose length is not told, is counted as it flows. */
export function bodyOf({ raw, body }: CallRequest, mostBytes: number, bulk: BulkQueue): Body {
  if (Buffer.isBuffer(body)) return body
  if (!hasBody(raw)) return undefined
  return Number(raw.headers['content-length'] ?? Number.POSITIVE_INFINITY) > bulkBytes
    ? counted(raw, mostBytes, bulk)
    : raw
}

async function* counted(
  body: AsyncIterable<Uint8Array>,
  mostBytes: number,
  bulk: BulkQueue,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  let bytesInTurn = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > mostBytes) throw new BodyTooLarge()
    yield piece
    bytesInTurn += piece.length
    if (bytesInTurn < bulkBytes) continue
    await bulk.turn()
    bytesInTurn = 0
  }
}
