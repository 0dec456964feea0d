import type { OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { ShortExchange } from './short-exchange.ts'

/** The options of undici, with a function that opens a socket. */
export type ServiceClientOptions = Omit<Client.Options, 'connect'> & { readonly connect: buildConnector.BuildOptions }

/** The questions of a connection to the call that it carries. */
export interface ServiceCall {
  /** Returns the trailers behind its body, asked for when the body has ended. */
  trailers(): OutgoingHttpHeaders
}

/** One connection to a service, and what is read of its answers before undici does. */
export class ServiceClient extends Client {
  readonly answers: AnswerHeads
  readonly #short: ShortExchange
  #call: ServiceCall | undefined

  constructor(origin: string, { connect, ...options }: ServiceClientOptions) {
    const answers = new AnswerHeads()
    const open = buildConnector(connect)
    super(origin, {
      ...options,
      connect: (place, done) => {
        const lost = this.#short.lost()
        if (lost) {
          done(lost, null)
          return
        }
        open(place, (...result) => {
          const [, socket] = result
          if (socket) this.#attach(socket)
          done(...result)
        })
      },
    })
    this.answers = answers
    this.#short = new ShortExchange({
      host: new URL(origin).host,
      dispatch: (call, handler) => super.dispatch(call, handler),
      maxHeadBytes: options.maxHeaderSize,
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const isShort = !this.closed && !this.destroyed && this.#short.begin(options, handler)
    return isShort || super.dispatch(options, handler)
  }

  /** Notes that a call is sent now: what comes next is its answer. */
  expectAnswer(call: ServiceCall): void {
    this.#call = call
    this.answers.expect()
  }

  /** Looks whether a call takes long. */
  check(now: number): void {
    this.#short.check(now)
  }

  /** Resolves when no call is under way that undici does not know of. */
  settled(): Promise<void> {
    return this.#short.settled()
  }

  #attach(socket: Socket): void {
    const writeShort = socket.write.bind(socket)
    readAfterFailedWrites(socket)
    sendTrailers(socket, () => this.#call?.trailers() ?? {})
    const write = socket.write.bind(socket) as (...words: unknown[]) => boolean
    this.answers.attach(socket)
    const push = socket.push.bind(socket)
    this.#short.attach({ socket, write: writeShort, push })
    socket.push = (piece: Buffer | null, encoding?: BufferEncoding) => this.#short.take(piece) || push(piece, encoding)
    socket.write = (...words: unknown[]) => this.#short.drops() || write(...words)
  }
}

/** The time that an answer may still take to arrive after a service has stopped reading. */
const answerMs = 1000

type Done = (error?: Error | null) => void

/**
 * Makes a socket outlive a write that fails because the other side has closed. A service may answer an upload early and close
 * at once; Node would then destroy the socket for the failed write, and the answer that has arrived would never be read. Here the
 * rest of the upload is dropped instead, and the socket ends when all has been read.
 */
export function readAfterFailedWrites(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writeAll = socket._writev!.bind(socket)
  let hasFailed = false
  // of the write under way: a stream makes one at a time
  let onDone: Done
  const onWritten: Done = error => {
    if (!isClosedByOther(error)) {
      onDone(error)
      return
    }
    hasFailed = true
    const timer = setTimeout(() => socket.destroy(error), answerMs)
    socket.once('close', () => clearTimeout(timer))
    onDone()
  }
  socket._write = (piece, encoding, done) => {
    onDone = done
    if (hasFailed) done()
    else write(piece, encoding, onWritten)
  }
  socket._writev = (pieces, done) => {
    onDone = done
    if (hasFailed) done()
    else writeAll(pieces, onWritten)
  }
}

function isClosedByOther(error: NodeJS.ErrnoException | null | undefined): error is NodeJS.ErrnoException {
  return error?.code === 'EPIPE' || error?.code === 'ECONNRESET'
}

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
  /** The beginning of a head, too short to show its status. */
  #held: Buffer = nothing
  /** The line that is being read, as far as it came in earlier pieces. */
  #lineLength = 0
  #lastByte = 0
  #lines = 0

  /** Notes that a call is sent: what the service sends next is the head of its answer. */
  expect(): void {
    this.#hasBegun = false
    this.#isOver = false
    this.#isAtStart = true
    this.#held = nothing
    this.#lines = 0
  }

  /** Ends the call; returns true if the service has sent anything for it. */
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

  /** Returns a piece of what the service sends, as it is to be parsed. */
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

  /** Reads from its first bytes what a head is; false if there are too few of them. */
  #begin(bytes: Buffer, at: number): boolean {
    if (bytes.length - at < statusEnd) return false
    this.#isInterim = bytes[at + 9] === one && !hasText(bytes, at + 9, '101')
    this.#isDropped = this.#isInterim && hasText(bytes, at + 9, '100')
    this.#isAtStart = false
    this.#lineLength = 0
    return true
  }
}

/** Finds the next line feed. Lines are short, and a native search takes longer to be called than this takes. */
function lineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === lineFeed) return at
  return -1
}

function hasText(bytes: Buffer, at: number, text: string): boolean {
  return bytes.toString('latin1', at, at + text.length) === text
}

/** The bytes that undici writes behind the last chunk of a body, always without trailers. */
const lastChunk = '\r\n0\r\n\r\n'

/** Sends trailers behind chunked bodies on a socket; `take` gives those of the call whose body ends. */
function sendTrailers(socket: Socket, take: () => OutgoingHttpHeaders): void {
  const write = socket.write.bind(socket) as (...words: unknown[]) => boolean
  // bodies are written as bytes, so this text is never a part of one
  socket.write = (piece: unknown, ...rest: unknown[]) =>
    write(piece === lastChunk ? withTrailers(take()) : piece, ...rest)
}

function withTrailers(trailers: OutgoingHttpHeaders): string {
  const lines = Object.entries(trailers).flatMap(([name, values]) =>
    [values].flat().map(value => `${name}: ${value}\r\n`),
  )
  return `\r\n0\r\n${lines.join('')}\r\n`
}
