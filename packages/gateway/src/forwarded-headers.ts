import type { IncomingHttpHeaders } from 'node:http'
import type { Limiter } from 'diana-limiter'
import type { FastifyRequest } from 'fastify'

/** Headers that are about one connection, not about the message (RFC 9110, section 7.6.1). */
const ofTheConnection = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const

/** Lists to which every limiter on the way adds its own items. */
const lists = ['ratelimit', 'ratelimit-policy'] as const

type OwnHeaders = Readonly<Record<string, number | string | readonly string[] | undefined>>

/** What the service is told: the caller's headers, and who called by which name. `headers` is changed. */
export function toService(
  request: Pick<FastifyRequest, 'method' | 'headers' | 'socket'>,
  headers: IncomingHttpHeaders,
  addressOf: Limiter['addressOf'],
): IncomingHttpHeaders {
  for (const name of ofTheConnection) if (name in headers) headers[name] = undefined
  // Node has answered this already
  if (headers.expect !== undefined) headers.expect = undefined
  // Fastify reads no body here, so there is none to send on
  if (request.method === 'GET' || request.method === 'HEAD') headers['content-length'] = undefined

  const { socket, headers: received } = request
  const peer = addressOf(socket.remoteAddress, undefined)
  const earlier = received['x-forwarded-for']
  // a proxy that is believed about the address is believed about the rest
  const isProxied = earlier !== undefined && addressOf(socket.remoteAddress, earlier) !== peer
  headers['x-forwarded-for'] = earlier === undefined ? peer : `${earlier}, ${peer}`
  if (!isProxied || headers['x-forwarded-host'] === undefined) headers['x-forwarded-host'] = received.host
  if (!isProxied || headers['x-forwarded-proto'] === undefined) headers['x-forwarded-proto'] = 'http'
  return headers
}

/** What the caller is told: the service's headers, beside what Diana has said. `headers` is changed. */
export function toCaller(headers: IncomingHttpHeaders, own: OwnHeaders): IncomingHttpHeaders {
  for (const name of ofTheConnection) if (name in headers) delete headers[name]
  for (const name of lists) {
    if (headers[name] !== undefined && own[name] !== undefined) headers[name] = `${own[name]}, ${headers[name]}`
  }
  return headers
}
