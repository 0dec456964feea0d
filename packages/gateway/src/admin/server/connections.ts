import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const mostConnections = 256

/**
 * Bounds the connections of a server. Where there are too many, the oldest one that no admitted request came over makes
 * room, so that clients who only hold connections open cannot keep others out.
 */
export class Connections {
  /** In the order in which they came. */
  readonly #strangers = new Set<Socket>()
  readonly #admitted = new Set<Socket>()

  constructor(server: Server, most: number = mostConnections) {
    server.on('connection', (socket: Socket) => {
      socket.on('close', () => {
        this.#strangers.delete(socket)
        this.#admitted.delete(socket)
      })
      this.#strangers.add(socket)
      if (this.#strangers.size + this.#admitted.size <= most) return
      const [oldest] = this.#strangers
      oldest?.destroy()
    })
  }

  /** Admits the connection because a request that may come in has arrived over it. */
  admit(socket: Socket): void {
    if (this.#strangers.delete(socket)) this.#admitted.add(socket)
  }
}
