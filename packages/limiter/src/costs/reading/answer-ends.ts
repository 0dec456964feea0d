/** How much of an answer is kept: enough for the first events of a stream, and for the last ones. */
export const HEAD_BYTES = 16_384
export const TAIL_BYTES = 65_536
/** Pieces of this size are kept as they are; a shorter one would keep a larger buffer alive, and is copied. */
const WHOLE_PIECE_BYTES = 8192

/** The beginning and the end of an answer, kept while it passes by. */
export class AnswerEnds {
  bytes = 0
  #pieces: Buffer[] = []
  #kept = 0
  /** How much of the last piece is used, if it is one for copies. */
  #used = -1
  #head: Buffer | undefined
  readonly #mayChange: boolean

  /** `mayChange` says that others may write to the chunks later, so that all of them are copied. */
  constructor({ mayChange }: { readonly mayChange: boolean }) {
    this.#mayChange = mayChange
  }

  /** Whether nothing has been left out. */
  get isWhole(): boolean {
    return this.#kept === this.bytes
  }

  /** The first bytes; undefined while nothing has been left out. */
  get head(): Buffer | undefined {
    return this.#head
  }

  get tail(): Buffer {
    const pieces =
      this.#used < 0 ? this.#pieces : [...this.#pieces.slice(0, -1), this.#pieces.at(-1)!.subarray(0, this.#used)]
    const tail = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
    return this.isWhole ? tail : tail.subarray(Math.max(0, tail.length - TAIL_BYTES))
  }

  add(chunk: Uint8Array): void {
    const { length } = chunk
    if (length === 0) return
    if (length > 3 * TAIL_BYTES) {
      this.add(chunk.subarray(0, TAIL_BYTES))
      this.bytes += length - 2 * TAIL_BYTES
      this.add(chunk.subarray(length - TAIL_BYTES))
      return
    }
    this.bytes += length
    this.#kept += length
    if (length >= WHOLE_PIECE_BYTES) {
      this.#seal()
      const piece = Buffer.from(chunk.buffer, chunk.byteOffset, length)
      this.#pieces.push(this.#mayChange ? Buffer.from(piece) : piece)
    } else this.#copy(chunk)
    while (this.#kept - this.#pieces[0]!.length >= TAIL_BYTES) this.#leaveOut(this.#pieces.shift()!)
  }

  #copy(chunk: Uint8Array): void {
    if (this.#used < 0 || this.#used + chunk.length > WHOLE_PIECE_BYTES) {
      this.#seal()
      this.#pieces.push(Buffer.allocUnsafeSlow(WHOLE_PIECE_BYTES))
      this.#used = 0
    }
    this.#pieces.at(-1)!.set(chunk, this.#used)
    this.#used += chunk.length
  }

  /** Ends a piece for copies, which is as long as what was copied. */
  #seal(): void {
    if (this.#used >= 0) this.#pieces.push(this.#pieces.pop()!.subarray(0, this.#used))
    this.#used = -1
  }

  #leaveOut(piece: Buffer): void {
    this.#kept -= piece.length
    this.#head ??= Buffer.from(Buffer.concat([piece, ...this.#pieces]).subarray(0, HEAD_BYTES))
  }
}
