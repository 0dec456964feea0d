import type { Server, Socket } from 'node:net'

type Accept = (this: Server, socket: Socket) => void

/**
 * The connections that a port may have. A full port gives a new connection the place of the oldest one whose client has not said who it
 * is, so that clients without a password keep out no others. Handshakes of TLS take places, too.
 */
export class Places {
  readonly #most: () => number
  readonly #onRefused: (socket: Socket) => void
  readonly #open = new Set<Socket>()
  /** The connections of unknown clients by their addresses, oldest first. */
  readonly #unknown = new Map<string, Socket>()

  constructor(most: () => number, onRefused: (socket: Socket) => void) {
    this.#most = most
    this.#onRefused = onRefused
  }

  /** Stands between a server and its own listeners: a connection without a place never reaches them. */
  guard(server: Server): void {
    const listeners = server.listeners('connection') as Accept[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      if (this.#admit(socket)) for (const listener of listeners) listener.call(server, socket)
    })
  }

  /** Notes that a client has said who it is; with TLS, the socket is that around the connection. */
  know(socket: Socket): void {
    this.#unknown.delete(addressOf(socket))
  }

  #admit(socket: Socket): boolean {
    const address = addressOf(socket)
    if (this.#open.size >= this.#most() && !this.#endOldest()) {
      this.#onRefused(socket)
      return false
    }
    this.#open.add(socket)
    this.#unknown.set(address, socket)
    socket.once('close', () => this.#forget(address, socket))
    return true
  }

  #endOldest(): boolean {
    for (const [address, socket] of this.#unknown) {
      this.#forget(address, socket)
      socket.destroy()
      return true
    }
    return false
  }

  #forget(address: string, socket: Socket): void {
    this.#open.delete(socket)
    if (this.#unknown.get(address) === socket) this.#unknown.delete(address)
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
