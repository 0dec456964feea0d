import type { Server } from 'node:net'

/** The object that Node has below a server. Messages between processes can carry it, as they carry servers. */
export interface ServerHandle {
  readonly fd: number
  close(): void
}

/** A listening socket that can be handed to another process. */
export interface ListeningSocket {
  readonly handle: ServerHandle
  /** Reports that the socket has been handed over. */
  release(): void
}

/** Returns the socket of a server in this process, which keeps it; undefined if it cannot be handed over, as on Windows. */
export function socketOf(server: Server): ListeningSocket | undefined {
  const { _handle: handle } = server as unknown as { _handle: ServerHandle | null }
  return handle !== null && handle.fd >= 0 ? { handle, release: () => {} } : undefined
}
