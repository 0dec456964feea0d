import { GrpcError, status } from './grpc-error.ts'

/** Before each message: whether it is compressed, and its length in four bytes. */
export const frameHeadBytes = 5

/** The messages in the body of a call: all that have arrived completely, and where the rest begins. */
export class MessageFrames {
  readonly #maxBytes: number
  #rest: Buffer | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether a message has begun and not ended. */
  get isPartial(): boolean {
    return this.#rest !== undefined
  }

  /** The messages that these bytes complete; throws for one that is too long or compressed. */
  take(chunk: Buffer): Buffer[] {
    const messages: Buffer[] = []
    let bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    while (bytes.length >= frameHeadBytes) {
      const length = bytes.readUInt32BE(1)
      if (length > this.#maxBytes) {
        throw new GrpcError(
          status.resourceExhausted,
          `a message has ${length} bytes; at most ${this.#maxBytes} are read`,
        )
      }
      if (bytes[0] !== 0) throw new GrpcError(status.unimplemented, 'compressed messages are not read')
      if (bytes.length < frameHeadBytes + length) break
      messages.push(bytes.subarray(frameHeadBytes, frameHeadBytes + length))
      bytes = bytes.subarray(frameHeadBytes + length)
    }
    this.#rest = bytes.length === 0 ? undefined : bytes
    return messages
  }
}

/** Fills in what stands before a message of a frame. */
export function writeFrameHead(frame: Buffer, length: number): void {
  frame[0] = 0
  frame.writeUInt32BE(length - frameHeadBytes, 1)
}
