import type { Server, Socket } from 'node:net'

/**
 * True if the other side of a TCP connection has left before its address was read. The bytes that it has sent can still be read, and would
 * pass for those of a Unix socket, which has no address either. Node keeps an address that it has read once.
 */
export function isPeerGone(socket: Socket, server: Pick<Server, 'address'>): boolean {
  if (socket.remoteAddress !== undefined) return false
  // a connection may come in by another listener than that of the server
  const kind = (socket as unknown as { readonly _handle?: object | null })._handle?.constructor.name
  if (kind === 'Pipe' || kind === 'TCP') return kind === 'TCP'
  const address = server.address()
  return socket.localAddress !== undefined || (typeof address === 'object' && address !== null)
}
