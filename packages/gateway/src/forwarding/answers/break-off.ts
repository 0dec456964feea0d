import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Ends the connection of an answer that has begun and will not be complete. To a caller of HTTP/1.0 the end of the connection may be
 * the end of the answer, so the connection is reset; over TLS, the missing close_notify shows it.
 */
export function breakOff(raw: ServerResponse): void {
  const { socket, req } = raw
  if (req.httpVersion === '1.0' && socket !== null && isTcp(socket)) socket.resetAndDestroy()
  else raw.destroy()
}

function isTcp(socket: Socket): boolean {
  return !('encrypted' in socket) && socket.remoteAddress !== undefined
}
