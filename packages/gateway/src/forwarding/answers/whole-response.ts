import { ServerResponse } from 'node:http'

/** What Node's own writeHead sets, and end() looks at. */
interface HeadOfResponse {
  _header: string | null
  _headerSent: boolean
  readonly _keepAliveTimeout?: number
}

const invalidInName = /[^a-z\d-]/
const invalidInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/

/**
 * Writes an answer of a service that is whole, head and body in one piece, as Node would write it: Node would look at each
 * header several times, and write in two pieces. False, with nothing done, for every answer that is not of the usual kind: one
 * of HTTP/1.1 with a length and a date, on a connection that is kept. Names are in lower case.
 */
export function writeWhole(
  raw: ServerResponse,
  head: { readonly status: number; readonly reason: string; readonly headers: readonly string[] },
  body: Buffer,
): boolean {
  if (!isUsual(raw)) return false
  const lines = linesOf(head.headers)
  if (lines === undefined) return false
  const response = raw as ServerResponse & HeadOfResponse
  const { socket } = raw
  const seconds = Math.floor((response._keepAliveTimeout ?? 0) / 1000)
  const keepAlive = `Connection: keep-alive\r\n${seconds > 0 ? `Keep-Alive: timeout=${seconds}\r\n` : ''}`
  const text = `HTTP/1.1 ${head.status} ${head.reason}\r\n${lines}${keepAlive}\r\n`
  raw.statusCode = head.status
  raw.statusMessage = head.reason
  response._header = text
  response._headerSent = true
  socket!.write(text + body.toString('latin1'), 'latin1')
  raw.end()
  return true
}

function isUsual(raw: ServerResponse): boolean {
  const { socket, req } = raw
  if (!(raw instanceof ServerResponse) || !socket?.writable || socket.writableLength > 0) return false
  if (raw.headersSent || !raw.shouldKeepAlive || !('_header' in raw) || raw.getHeaderNames().length > 0) return false
  return req.httpVersion === '1.1' && req.method !== 'HEAD'
}

/** Undefined if Node has more to say about them. */
function linesOf(headers: readonly string[]): string | undefined {
  let lines = ''
  let hasLength = false
  let hasDate = false
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    const value = headers[at + 1]!
    switch (name) {
      case 'content-length':
        hasLength = true
        break
      case 'date':
        hasDate = true
        break
      case 'connection':
      case 'expect':
      case 'keep-alive':
      case 'trailer':
      case 'transfer-encoding':
        return undefined
    }
    if (invalidInName.test(name) || invalidInValue.test(value)) return undefined
    lines += `${name}: ${value}\r\n`
  }
  return hasLength && hasDate ? lines : undefined
}
