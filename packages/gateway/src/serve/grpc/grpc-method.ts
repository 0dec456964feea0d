import type { IncomingHttpHeaders } from 'node:http2'

/** The peer that asks, and its deadline. */
export interface GrpcContext {
  /** The address of the connection's other side. */
  readonly peer: string | undefined
  readonly headers: IncomingHttpHeaders
  /** Returns a signal that aborts when the caller has left or its deadline has passed. */
  signal(): AbortSignal
}

/** A method with one request and one response: frames with their heads, as `ProtoWriter` makes them. */
export interface UnaryMethod {
  readonly kind: 'unary'
  readonly path: string
  answer(message: Buffer, context: GrpcContext): Buffer | Promise<Buffer>
  /**
   * Returns the answer to a message that cannot be read, because of `detail`. Without it such a call ends with a status, which a
   * proxy takes for a failure of the decision server.
   */
  refusal?(detail: string): Buffer
}

/** A call whose requests and responses are streams. */
export interface GrpcStream extends GrpcContext {
  send(frame: Buffer): void
  end(): void
}

/** A method that answers each message of a stream. */
export interface StreamMethod {
  readonly kind: 'stream'
  readonly path: string
  /** Is called once for a call; returns what is called with each message of it, and at its end. */
  open(stream: GrpcStream): { message(message: Buffer): void; end(): void }
}

export type GrpcMethod = UnaryMethod | StreamMethod
