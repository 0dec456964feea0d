import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The source of a service's answer. */
export interface OutletSource {
  /** Reports that more may be written. */
  onReady(): void
  /** Reports that the caller does not wait for the answer any more. */
  onGone(): void
}

/** The place that the answer of a service goes to. */
export interface ResponseSink {
  begin(status: number, text: string, headers: readonly string[], source: OutletSource): void
  /** Sends an answer that is whole. */
  send(status: number, text: string, headers: readonly string[], body: Buffer): void
  /** Returns false when the caller must pause until `onReady`. */
  write(chunk: Buffer): boolean
  /** Ends the answer, with the service's trailers. */
  end(trailers?: readonly (string | Buffer)[] | null): void
  /** Breaks an answer off that has begun. */
  breakOff(error: Error): void
}

/**
 * Ends the connection of an answer that has begun and will not be complete. To a caller of HTTP/1.0 the end of the connection may be
 * the end of the answer, so the connection is reset; over TLS, the missing close_notify shows it.
 */
export function breakOff(raw: ServerResponse): void {
  const { socket, req } = raw
  if (req.httpVersion === '1.0' && socket !== null && isTcp(socket)) socket.resetAndDestroy()
  else raw.destroy()
}

function isTcp(socket: Socket): boolean {
  return !('encrypted' in socket) && socket.remoteAddress !== undefined
}
