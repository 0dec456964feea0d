/** The part of an answer that is kept: enough for the first events of a stream, and for the last ones. */
export const HEAD_BYTES = 16_384
export const TAIL_BYTES = 65_536
const FIRST_BYTES = 4096
const MOST_FREE = 64

/** Buffers of full size that are used again: those of long streams would otherwise be collected as garbage one by one. */
const free: Buffer[] = []
/** For the end of an answer in one piece. */
let joined: Buffer | undefined

/**
 * The beginning and the end of an answer, copied while it passes by. To keep the chunks themselves would cost more: what lives
 * longer than a moment has to be collected as garbage later.
 */
export class AnswerEnds {
  bytes = 0
  /** Grows with the answer to TAIL_BYTES, and is written round and round then. */
  #buffer: Buffer | undefined
  #head: Buffer | undefined

  /** True if nothing has been left out. */
  get isWhole(): boolean {
    return this.bytes <= TAIL_BYTES
  }

  /** The first bytes; undefined while nothing has been left out. */
  get head(): Buffer | undefined {
    return this.#head
  }

  /** The last bytes, until the next answer is read. */
  get tail(): Buffer {
    const buffer = this.#buffer ?? Buffer.alloc(0)
    if (this.isWhole) return buffer.subarray(0, this.bytes)
    const at = this.bytes % TAIL_BYTES
    joined ??= Buffer.allocUnsafeSlow(TAIL_BYTES)
    buffer.copy(joined, 0, at)
    buffer.copy(joined, TAIL_BYTES - at, 0, at)
    return joined
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at += TAIL_BYTES) this.#add(chunk.subarray(at, at + TAIL_BYTES))
  }

  /** Gives the memory back; the parts must not be read any more. */
  release(): void {
    if (this.#buffer?.length === TAIL_BYTES && free.length < MOST_FREE) free.push(this.#buffer)
    this.#buffer = undefined
    this.#head = undefined
  }

  /** Adds at most TAIL_BYTES. */
  #add(chunk: Uint8Array): void {
    const { length } = chunk
    const buffer = this.#bufferFor(this.bytes + length)
    if (this.isWhole && this.bytes + length > TAIL_BYTES) this.#keepHead(buffer, chunk)
    const at = this.bytes % TAIL_BYTES
    const room = buffer.length - at
    if (length <= room) buffer.set(chunk, at)
    else {
      buffer.set(chunk.subarray(0, room), at)
      buffer.set(chunk.subarray(room), 0)
    }
    this.bytes += length
  }

  #keepHead(buffer: Buffer, chunk: Uint8Array): void {
    this.#head = Buffer.concat([buffer.subarray(0, Math.min(this.bytes, HEAD_BYTES)), chunk.subarray(0, HEAD_BYTES)])
    this.#head = this.#head.subarray(0, HEAD_BYTES)
  }

  #bufferFor(bytes: number): Buffer {
    const buffer = this.#buffer
    if (buffer !== undefined && (buffer.length >= bytes || buffer.length === TAIL_BYTES)) return buffer
    let size = buffer?.length ?? FIRST_BYTES
    while (size < bytes && size < TAIL_BYTES) size *= 2
    const larger = (size === TAIL_BYTES ? free.pop() : undefined) ?? Buffer.allocUnsafeSlow(size)
    buffer?.copy(larger, 0, 0, this.bytes)
    this.#buffer = larger
    return larger
  }
}
