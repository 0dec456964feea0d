import type { Socket } from 'node:net'

/**
 * Keeps what a caller sends before it is known what its connection turns into. It is read, up to a bound, since only a socket that
 * is read reports that its caller has left.
 */
export class EarlyBytes {
  readonly #socket: Socket
  readonly #maxBytes: number
  readonly #pieces: Buffer[]
  #length: number

  constructor(socket: Socket, head: Buffer, maxBytes: number) {
    this.#socket = socket
    this.#maxBytes = maxBytes
    this.#pieces = head.length > 0 ? [head] : []
    this.#length = head.length
    socket.on('data', this.#add)
    socket.on('end', this.#leave)
    socket.resume()
  }

  /** Stops reading; gives the bytes so far. */
  take(): Buffer {
    this.#socket.pause()
    this.#socket.off('data', this.#add)
    this.#socket.off('end', this.#leave)
    return Buffer.concat(this.#pieces)
  }

  readonly #add = (piece: Buffer): void => {
    this.#pieces.push(piece)
    this.#length += piece.length
    if (this.#length > this.#maxBytes) this.#socket.destroy()
  }

  readonly #leave = (): void => {
    this.#socket.destroy()
  }
}
