import type { Socket } from 'node:net'
import { proxyHeaderBytes } from '../connections/proxy-headers.ts'

/** The bytes that every connection of HTTP/2 begins with (RFC 9113, section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** The error that Node's parser of HTTP/1.1 reports once it has read the preface of HTTP/2. */
interface PrefaceError extends NodeJS.ErrnoException {
  readonly rawPacket: Buffer
  readonly bytesParsed: number
}

/** The parser that Node attaches to a connection. */
type ParsedSocket = Socket & { readonly parser?: { remove(): void } | null }

/** True if a caller begins a connection with the preface of HTTP/2, which the parser of HTTP/1.1 stops at. */
export function isPreface(error: NodeJS.ErrnoException, socket: Socket): error is PrefaceError {
  if (error.code !== 'HPE_PAUSED_H2_UPGRADE') return false
  const { rawPacket, bytesParsed } = error as PrefaceError
  // behind a call of HTTP/1.1 it is no preface
  const before = proxyHeaderBytes(socket) + rawPacket.length - bytesParsed
  return socket.bytesRead - before === preface.length
}

/** Takes a connection from the parser of HTTP/1.1; all that the caller has sent can be read from it again. */
export function takeFromParser(socket: ParsedSocket, { rawPacket, bytesParsed }: PrefaceError): void {
  // by this Node gives the reading back to the socket
  socket.on('data', () => {})
  for (const event of ['data', 'end', 'drain', 'timeout']) socket.removeAllListeners(event)
  // its timeouts are for calls of HTTP/1.1; the parser itself is freed when the connection closes
  socket.parser?.remove()
  socket.pause()
  socket.unshift(Buffer.concat([preface, rawPacket.subarray(bytesParsed)]))
}
