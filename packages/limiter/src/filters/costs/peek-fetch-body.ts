import type { CallBody } from '../../call.ts'
import { bodyOfPrefix, emptyBody, PREFIX_BYTES, unreadableBody } from '../../costs/call-body.ts'
import { announcedBytes, isEncoded } from './peek-body.ts'

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
