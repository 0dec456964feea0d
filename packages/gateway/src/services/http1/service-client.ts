import type { OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { AnswerHeads } from './answer-heads.ts'
import { sendTrailers } from './request-trailers.ts'
import { ShortExchange } from './short-exchange.ts'

/** As undici's, with how a socket is opened. */
export type ServiceClientOptions = Omit<Client.Options, 'connect'> & { readonly connect: buildConnector.BuildOptions }

/** What a connection asks of the call that it carries. */
export interface ServiceCall {
  /** The trailers behind its body, asked for when the body has ended. */
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

  /** A call is sent now: what comes next is its answer. */
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

/** How long an answer may still take to arrive after a service has stopped reading. */
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
