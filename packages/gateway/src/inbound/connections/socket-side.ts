import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { problemText } from '../problem.ts'
import type { CallerSide } from './caller-side.ts'

/** A connection of HTTP/1.1, which carries one call at a time. */
export class SocketSide implements CallerSide {
  readonly #socket: Socket

  constructor(request: IncomingMessage) {
    // a request that has been cut off has none any more
    this.#socket = request.socket
  }

  get bytesReceived(): number {
    return this.#socket.bytesRead
  }

  get bytesSent(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  get isGone(): boolean {
    return this.#socket.destroyed
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain
  }

  refuse(status: number, detail: string): void {
    this.#socket.end(problemText(status, detail), () => this.#socket.destroy())
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
