import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { CallerSide } from '../connections/caller-side.ts'
import { writeProblem } from '../problem.ts'
import type { Http2Request } from './http2-request.ts'
import type { Http2Response } from './http2-response.ts'

/** Returns the side of the caller for a request that came by HTTP/2. */
export function streamSideOf(request: IncomingMessage, response: ServerResponse): CallerSide {
  return new StreamSide(request as unknown as Http2Request, response as unknown as Http2Response)
}

/** One stream of a connection of HTTP/2. */
class StreamSide implements CallerSide {
  readonly #request: Http2Request
  readonly #response: Http2Response

  constructor(request: Http2Request, response: Http2Response) {
    this.#request = request
    this.#response = response
  }

  get bytesReceived(): number {
    return this.#request.bytesReceived
  }

  get bytesSent(): number {
    return this.#response.bytesSent
  }

  get isGone(): boolean {
    return this.#response.closed
  }

  /** True if bytes wait for the caller. The end of a stream that is over but not gone waits for its connection. */
  get isFull(): boolean {
    return this.#response.stream.bufferSize > 0 || this.#response.destroyed
  }

  refuse(status: number, detail: string): void {
    writeProblem(this.#response as unknown as ServerResponse, status, detail)
  }

  destroy(): void {
    this.#response.reset(constants.NGHTTP2_CANCEL)
  }
}
