import type { Socket } from 'node:net'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const one = 0x31
const crlf = Buffer.from('\r\n')
const nothing = Buffer.alloc(0)
/** `HTTP/1.1 100` */
const statusEnd = 12
/** As many as Node reads of a call. */
const maxLines = 2000

/** Short lines cost far more memory than they have bytes. */
class TooManyHeaders extends Error {
  readonly code = 'UND_ERR_HEADERS_OVERFLOW'
}

/**
 * Changes the heads of answers before undici parses them, since undici fails on two things that other proxies accept: a `100
 * Continue` that was not asked for, which is dropped, and lines that end with LF alone (RFC 9112, section 2.2), which get their
 * CR. Bodies are left as they are.
 */
export class AnswerHeads {
  #hasBegun = false
  #isOver = true
  #isAtStart = false
  #isInterim = false
  #isDropped = false
  /** The beginning of a head, too short to tell its status. */
  #held: Buffer = nothing
  /** The line that is being read, as far as it came in earlier pieces. */
  #lineLength = 0
  #lastByte = 0
  #lines = 0

  /** A call is sent: what the service sends next is the head of its answer. */
  expect(): void {
    this.#hasBegun = false
    this.#isOver = false
    this.#isAtStart = true
    this.#held = nothing
    this.#lines = 0
  }

  /** The call is over; true if the service has sent anything for it. */
  end(): boolean {
    const hasBegun = this.#hasBegun
    this.#hasBegun = false
    this.#isOver = true
    return hasBegun
  }

  /** Reads what a socket receives before anything else does. */
  attach(socket: Socket): void {
    const push = socket.push.bind(socket)
    socket.push = (piece: Buffer | null, encoding?: BufferEncoding) => {
      if (this.#isOver) return push(piece, encoding)
      if (piece !== null) {
        const isTaken = push(this.read(piece))
        if (this.#lines > maxLines) socket.destroy(new TooManyHeaders('the head of an answer has too many lines'))
        return isTaken
      }
      if (this.#held.length > 0) push(this.#held)
      return push(null)
    }
  }

  /** A piece of what the service sends, as it is to be parsed. */
  read(received: Buffer): Buffer {
    this.#hasBegun = true
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, received]) : received
    const kept: Buffer[] = []
    let from = 0
    let at = 0
    this.#held = nothing
    while (!this.#isOver && at < bytes.length) {
      if (this.#isAtStart) {
        if (!this.#begin(bytes, at)) {
          this.#held = bytes.subarray(at)
          break
        }
        if (this.#isDropped) kept.push(bytes.subarray(from, at))
      }
      const end = lineEnd(bytes, at)
      if (end < 0) {
        this.#lineLength += bytes.length - at
        this.#lastByte = bytes[bytes.length - 1]!
        at = bytes.length
        break
      }
      const length = this.#lineLength + end - at
      const hasReturn = length > 0 && (end > at ? bytes[end - 1] : this.#lastByte) === carriageReturn
      if (!hasReturn && !this.#isDropped) {
        kept.push(bytes.subarray(from, end), crlf)
        from = end + 1
      }
      at = end + 1
      this.#lines++
      this.#lineLength = 0
      if (length > (hasReturn ? 1 : 0)) continue
      if (this.#isDropped) from = at
      this.#isDropped = false
      if (this.#isInterim) this.#isAtStart = true
      else this.#isOver = true
    }
    const end = this.#isOver ? bytes.length : at
    if (from === 0 && end === bytes.length && !this.#isDropped) return bytes
    if (!this.#isDropped) kept.push(bytes.subarray(from, end))
    return Buffer.concat(kept)
  }

  /** Tells by its first bytes what a head is; false if there are too few of them. */
  #begin(bytes: Buffer, at: number): boolean {
    if (bytes.length - at < statusEnd) return false
    this.#isInterim = bytes[at + 9] === one && !hasText(bytes, at + 9, '101')
    this.#isDropped = this.#isInterim && hasText(bytes, at + 9, '100')
    this.#isAtStart = false
    this.#lineLength = 0
    return true
  }
}

/** Where the next line feed stands. Lines are short, and a native search takes longer to be called than this takes. */
function lineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === lineFeed) return at
  return -1
}

function hasText(bytes: Buffer, at: number, text: string): boolean {
  return bytes.toString('latin1', at, at + text.length) === text
}
