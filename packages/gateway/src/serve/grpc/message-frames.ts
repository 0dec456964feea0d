import { GrpcError, status } from './grpc-error.ts'

/** Before each message: whether it is compressed, and its length in four bytes. */
export const frameHeadBytes = 5

/** The messages in the body of a call: all that have arrived completely, and where the rest begins. */
export class MessageFrames {
  readonly #maxBytes: number
  /** The pieces of the next message that have arrived. */
  #pieces: Buffer[] = []
  #bytes = 0
  /** Before this many bytes are there, no message is complete. */
  #needed = frameHeadBytes

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** True if a message has begun and not ended. */
  get isPartial(): boolean {
    return this.#bytes > 0
  }

  /** Returns the messages that these bytes complete; throws for one that is too long or compressed. */
  take(chunk: Buffer): Buffer[] {
    this.#bytes += chunk.length
    this.#pieces.push(chunk)
    if (this.#bytes < this.#needed) return []
    const messages: Buffer[] = []
    let bytes = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#needed = frameHeadBytes
    while (bytes.length >= frameHeadBytes) {
      const length = bytes.readUInt32BE(1)
      if (length > this.#maxBytes) {
        throw new GrpcError(
          status.resourceExhausted,
          `a message has ${length} bytes; at most ${this.#maxBytes} are read`,
        )
      }
      if (bytes[0] !== 0) throw new GrpcError(status.unimplemented, 'compressed messages are not read')
      this.#needed = frameHeadBytes + length
      if (bytes.length < this.#needed) break
      messages.push(bytes.subarray(frameHeadBytes, frameHeadBytes + length))
      bytes = bytes.subarray(this.#needed)
      this.#needed = frameHeadBytes
    }
    this.#bytes = bytes.length
    if (this.#bytes > 0) this.#pieces.push(bytes)
    return messages
  }
}

/** Writes the head of a message into a frame. */
export function writeFrameHead(frame: Buffer, length: number): void {
  frame[0] = 0
  frame.writeUInt32BE(length - frameHeadBytes, 1)
}
