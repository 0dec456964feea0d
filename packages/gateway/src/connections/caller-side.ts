import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { streamSideOf } from '../http2/stream-side.ts'
import { problemText } from '../problem.ts'

/** What a call has of its caller's connection: all of it with HTTP/1.1, one stream of it with HTTP/2. */
export interface CallerSide {
  readonly bytesReceived: number
  readonly bytesSent: number
  /** Whether nothing can be read or written any more. */
  readonly isGone: boolean
  /** Whether bytes wait for the caller to read. */
  readonly isFull: boolean
  /** Answers instead of the service, and ends the call. */
  refuse(status: number, detail: string): void
  destroy(): void
}

export function callerSideOf(request: IncomingMessage, response: ServerResponse): CallerSide {
  return request.httpVersionMajor === 2 ? streamSideOf(request, response) : new SocketSide(request)
}

/** A connection of HTTP/1.1, which carries one call at a time. */
class SocketSide implements CallerSide {
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
