import type { Server, Socket } from 'node:net'

/**
 * True if the other side of a TCP connection has left before its address was read. The bytes that it has sent can still be read, and would
 * pass for those of a Unix socket, which has no address either. Node keeps an address that it has read once.
 */
export function isPeerGone(socket: Socket, server: Pick<Server, 'address'>): boolean {
  if (socket.remoteAddress !== undefined) return false
  const address = server.address()
  return socket.localAddress !== undefined || (typeof address === 'object' && address !== null)
}
