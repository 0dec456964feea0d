import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { grpcTimeoutMs } from '../../http/grpc/grpc-call.ts'
import { grpcMessage } from '../../http/grpc/grpc-status.ts'
import { isOver } from '../../inbound/http2/stream-resets.ts'
import { ProtoError } from '../protobuf/proto-reader.ts'
import { GrpcError, status } from './grpc-error.ts'
import type { GrpcContext, GrpcMethod, GrpcStream, StreamMethod, UnaryMethod } from './grpc-method.ts'
import { MessageFrames } from './message-frames.ts'

export interface GrpcCallParts {
  readonly maxMessageBytes: number
  onEnd(call: GrpcCall): void
}

const answerHeaders = { ':status': 200, 'content-type': 'application/grpc' }
const withTrailers = { waitForTrailers: true }
const fineTrailers = { 'grpc-status': '0' }

function sendFineTrailers(this: ServerHttp2Stream): void {
  if (!isOver(this)) this.sendTrailers(fineTrailers)
}

/** One call of gRPC, from its first byte to its trailers. */
export class GrpcCall implements GrpcStream {
  readonly headers: IncomingHttpHeaders
  readonly peer: string | undefined
  readonly beganAtMs: number
  readonly #stream: ServerHttp2Stream
  readonly #parts: GrpcCallParts
  #controller: AbortController | undefined
  #deadline: NodeJS.Timeout | undefined
  #isArriving = true
  #isAnswered = false
  #hasResponded = false
  #isStream = false

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    peer: string | undefined,
    beganAtMs: number,
    parts: GrpcCallParts,
  ) {
    this.#stream = stream
    this.headers = headers
    this.peer = peer
    this.beganAtMs = beganAtMs
    this.#parts = parts
  }

  /** Ends a call that has no end of its own. */
  endStream(): void {
    if (this.#isStream) this.end()
  }

  /** True if its request has not arrived completely. */
  get isArriving(): boolean {
    return this.#isArriving && !this.#isAnswered
  }

  /** True if its stream has ended in any way. */
  get isGone(): boolean {
    return this.#stream.destroyed
  }

  signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  serve(method: GrpcMethod): void {
    if (method.kind === 'unary') this.#serveUnary(method)
    else {
      this.#watchEnd()
      this.#serveStream(method)
    }
  }

  /** Watches for the end of a call that is not answered as soon as it has arrived; most are, and a listener costs time. */
  #watchEnd(): void {
    this.#stream.once('close', () => {
      this.#controller?.abort()
      clearTimeout(this.#deadline)
      this.#parts.onEnd(this)
    })
  }

  /** Answers with a status alone. */
  fail(code: number, message: string): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#parts.onEnd(this)
    const stream = this.#stream
    if (isOver(stream)) return
    const trailers = { 'grpc-status': `${code}`, 'grpc-message': grpcMessage(message) }
    if (this.#hasResponded) {
      stream.removeAllListeners('wantTrailers')
      stream.once('wantTrailers', () => {
        if (!isOver(stream)) stream.sendTrailers(trailers)
      })
      stream.end()
    } else stream.respond({ ...answerHeaders, ...trailers }, { endStream: true })
    // later bytes of the caller are of no use to anyone; a reset that came in the same read is the caller's
    if (this.#isArriving) setImmediate(() => stream.close(0))
  }

  send(frame: Buffer): void {
    if (this.#isAnswered || isOver(this.#stream)) return
    this.#respond()
    this.#stream.write(frame)
  }

  end(): void {
    if (this.#isAnswered || isOver(this.#stream)) return
    this.#isAnswered = true
    this.#respond()
    this.#stream.end()
  }

  #serveUnary(method: UnaryMethod): void {
    const frames = new MessageFrames(this.#parts.maxMessageBytes)
    let message: Buffer | undefined
    this.#stream.on('data', (chunk: Buffer) => {
      if (this.#isAnswered) return
      try {
        for (const one of frames.take(chunk)) {
          if (message !== undefined) throw new GrpcError(status.internal, 'this method takes one message')
          message = one
        }
      } catch (error) {
        this.#refuse(method, error)
      }
    })
    this.#stream.once('end', () => {
      this.#isArriving = false
      if (this.#isAnswered) return
      if (message === undefined || frames.isPartial) this.fail(status.internal, 'the request is not a whole message')
      else this.#answer(method, message)
    })
  }

  #answer(method: UnaryMethod, message: Buffer): void {
    try {
      const waitMs = grpcTimeoutMs(this.headers as never)
      if (waitMs === 0) throw deadlinePassed
      const answer = method.answer(message, this as GrpcContext)
      if (!(answer instanceof Promise)) {
        this.#finish(answer)
        return
      }
      this.#watchEnd()
      if (waitMs !== undefined) {
        this.#deadline = setTimeout(() => {
          this.#controller?.abort()
          this.#failBy(deadlinePassed)
        }, waitMs)
      }
      answer.then(
        frame => this.#finish(frame),
        error => this.#failBy(error),
      )
    } catch (error) {
      this.#refuse(method, error)
    }
  }

  /** Answers a message that cannot be read. */
  #refuse({ refusal }: UnaryMethod, error: unknown): void {
    const isUnreadable = error instanceof ProtoError || error instanceof GrpcError
    if (refusal === undefined || !isUnreadable || error === deadlinePassed) this.#failBy(error)
    else this.#finish(refusal(error.message))
  }

  #finish(frame: Buffer): void {
    this.#parts.onEnd(this)
    if (this.#isAnswered || isOver(this.#stream)) return
    this.#isAnswered = true
    this.#respond()
    this.#stream.end(frame)
  }

  #respond(): void {
    if (this.#hasResponded) return
    this.#hasResponded = true
    this.#stream.once('wantTrailers', sendFineTrailers)
    this.#stream.respond(answerHeaders, withTrailers)
  }

  #serveStream(method: StreamMethod): void {
    this.#isStream = true
    const frames = new MessageFrames(this.#parts.maxMessageBytes)
    const open = method.open(this)
    this.#stream.on('data', (chunk: Buffer) => {
      try {
        this.#isArriving = false
        for (const message of frames.take(chunk)) if (!this.#isAnswered) open.message(message)
      } catch (error) {
        this.#failBy(error)
      }
    })
    this.#stream.once('end', () => {
      this.#isArriving = false
      if (!this.#isAnswered) open.end()
    })
  }

  #failBy(error: unknown): void {
    if (error instanceof GrpcError) this.fail(error.status, error.message)
    else if (error instanceof ProtoError)
      this.fail(status.invalidArgument, `not a message of this method: ${error.message}`)
    else this.fail(status.unavailable, 'Diana could not decide this call')
  }
}

const deadlinePassed = new GrpcError(status.deadlineExceeded, 'the deadline of this call has passed')
