/** The first bytes of a frame of a WebSocket as they were read (RFC 6455, section 5.2). */
export interface FrameHead {
  readonly isLast: boolean
  /** True if the message is compressed (RFC 7692). */
  readonly isCompressed: boolean
  readonly opcode: number
}

/** Receives frames; the bytes of a head come before those of its payload. */
export interface FrameSink {
  onHead(head: FrameHead, bytes: Buffer): void
  onPayload(bytes: Buffer): void
  /** Hears that all bytes of the frame have come. */
  onEnd(): void
}

const LONGEST_HEAD = 14
const CONTINUATION = 0

/** Opcodes from here on are those of control frames. */
export const FIRST_CONTROL = 8
export const CLOSE = 8

/** Finds frames in bytes that arrive in any pieces. It keeps no more than the head of one frame, and reads no payload. */
export class FrameReader {
  readonly #head = Buffer.alloc(LONGEST_HEAD)
  #have = 0
  /** The number of bytes of the payload that are still to come. */
  #left = 0
  #isInPayload = false

  /** True if the next byte begins a frame. */
  get isBetweenFrames(): boolean {
    return this.#have === 0 && !this.#isInPayload
  }

  read(chunk: Buffer, sink: FrameSink): void {
    for (let at = 0; at < chunk.length; ) at = this.readFrame(chunk, sink, at)
  }

  /** Reads to the end of one frame, or of the bytes; returns the place behind what was read. */
  readFrame(chunk: Buffer, sink: FrameSink, from = 0): number {
    let at = from
    while (at < chunk.length) {
      if (this.#isInPayload) {
        const size = Math.min(this.#left, chunk.length - at)
        sink.onPayload(chunk.subarray(at, at + size))
        at += size
        this.#left -= size
        if (this.#left > 0) continue
        this.#end(sink)
        return at
      }
      this.#head[this.#have++] = chunk[at++]!
      if (this.#have < 2 || this.#have < this.#headSize()) continue
      const first = this.#head[0]!
      this.#left = this.#payloadSize()
      this.#isInPayload = true
      sink.onHead(
        { isLast: (first & 0x80) !== 0, isCompressed: (first & 0x40) !== 0, opcode: first & 0x0f },
        Buffer.from(this.#head.subarray(0, this.#have)),
      )
      if (this.#left > 0) continue
      this.#end(sink)
      return at
    }
    return at
  }

  #end(sink: FrameSink): void {
    this.#have = 0
    this.#isInPayload = false
    sink.onEnd()
  }

  #headSize(): number {
    const second = this.#head[1]!
    const length = second & 0x7f
    return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + ((second & 0x80) !== 0 ? 4 : 0)
  }

  #payloadSize(): number {
    const length = this.#head[1]! & 0x7f
    if (length === 126) return this.#head.readUInt16BE(2)
    // a length that no sender can send ends no frame
    return length === 127 ? Number(this.#head.readBigUInt64BE(2)) : length
  }
}

/** True if a frame begins a message. */
export function beginsMessage({ opcode }: FrameHead): boolean {
  return opcode !== CONTINUATION && opcode < FIRST_CONTROL
}

/** Returns a close frame with a status; masked with zeros, which change nothing, if a client sends it. */
export function closeFrame(status: number, reason: string, isMasked: boolean): Buffer {
  const text = Buffer.from(reason)
  const head = Buffer.from([0x88, (isMasked ? 0x80 : 0) | (2 + text.length)])
  const code = Buffer.from([status >> 8, status & 0xff])
  return Buffer.concat([head, isMasked ? Buffer.alloc(4) : Buffer.alloc(0), code, text])
}
