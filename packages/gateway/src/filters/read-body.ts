import type { FastifyRequest } from 'fastify'
import { hasBody } from '../proxy/body.ts'

/** The whole body of a call, left for the proxy to send on; undefined where it is larger than `mostBytes`. */
export async function readBody(request: FastifyRequest, mostBytes: number): Promise<Buffer | undefined> {
  if (Buffer.isBuffer(request.body)) return request.body.length > mostBytes ? undefined : request.body
  if (!hasBody(request.raw)) return Buffer.alloc(0)
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) return undefined
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request.raw as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > mostBytes) return undefined
    pieces.push(piece)
  }
  const body = Buffer.concat(pieces)
  request.body = body
  return body
}
