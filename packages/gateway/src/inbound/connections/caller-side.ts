/** The part of its caller's connection that a call has: all of it with HTTP/1.1, one stream of it with HTTP/2. */
export interface CallerSide {
  readonly bytesReceived: number
  readonly bytesSent: number
  /** True if nothing can be read or written any more. */
  readonly isGone: boolean
  /** True if bytes wait for the caller to read. */
  readonly isFull: boolean
  /** Answers instead of the service, and ends the call. */
  refuse(status: number, detail: string): void
  destroy(): void
}
