import type { IncomingMessage } from 'node:http'
import { hasBody } from '../../http/body.ts'
import type { CallRequest } from '../../http/call.ts'
import { type BulkQueue, bulkBytes } from '../../inbound/connections/bulk-queue.ts'
import { BodyTooLarge } from '../failure.ts'

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
