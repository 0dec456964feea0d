import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Repeated, repeat, visitAll } from 'diana-limiter/gateway'
import { grpcTypeOf } from '../../http/grpc/grpc-call.ts'
import { recordOf } from '../../telemetry/call-record.ts'
import type { CallerSide } from '../connections/caller-side.ts'
import { Pace, type PaceLimits, type Progress } from '../connections/pace.ts'
import { isHttp2 } from '../http2/http2-request.ts'
import { streamSideOf } from '../http2/stream-side.ts'
import { problemText } from '../problem.ts'

const paceKey: unique symbol = Symbol('diana.pace')

interface Paced {
  [paceKey]?: CallPace
}

/** Returns the pace at which the caller of a request sends, and reads the response. */
export function paceOf(message: IncomingMessage | ServerResponse): CallPace | undefined {
  return (message as Paced)[paceKey]
}

/** The work for a call: looked at together with its caller, and notified when the answer is over. */
export interface Work extends Transfer {
  onEnd(): void
}

/** Watches one call from its turn until its answer is over and all of its body has arrived. */
export class CallPace implements Transfer {
  /** The work that is done for the call meanwhile. */
  work: Work | undefined
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #side: CallerSide
  readonly #limits: () => PaceLimits
  readonly #beganAt: number
  /** Most calls end before anybody looks at their pace. */
  #pace: Pace | undefined

  constructor(request: IncomingMessage, response: ServerResponse, limits: () => PaceLimits) {
    this.#request = request
    this.#response = response
    this.#side = isHttp2(request) ? streamSideOf(request, response) : new SocketSide(request)
    this.#limits = limits
    this.#beganAt = recordOf(request)?.startedAt ?? performance.now()
    ;(request as Paced)[paceKey] = this
    ;(response as Paced)[paceKey] = this
  }

  /** True if there is nothing to watch any more. */
  get isOver(): boolean {
    return this.#side.isGone || (this.#response.closed && this.#request.complete)
  }

  /** For how long a service has been waiting for the caller. */
  get stalledMs(): number {
    return this.#pace?.stalledMs ?? 0
  }

  check(now: number): void {
    this.#pace ??= new Pace(this.#beganAt)
    if (this.#pace.isTooSlow(this.#progress(), now, this.#limits())) this.cut()
    this.work?.check(now)
  }

  /** Ends the call and its connection; the caller gets the reason if it can still get an answer. */
  cut(): void {
    recordOf(this.#request)?.failedByCaller()
    if (this.#response.headersSent || this.#response.writableEnded) this.#side.destroy()
    else {
      recordOf(this.#request)?.answered(408)
      this.#side.refuse(408, 'This call arrives too slowly.')
    }
  }

  #progress(): Progress {
    const { bytesReceived, bytesSent } = this.#side
    return { sent: bytesReceived, read: bytesSent, awaited: this.#isReadingAwaited() ? 'reading' : this.#awaitedPart() }
  }

  #isReadingAwaited(): boolean {
    const { writableNeedDrain, writableEnded, writableFinished } = this.#response
    return writableNeedDrain || this.#side.isFull || (writableEnded && !writableFinished)
  }

  /** Returns what the caller still has to send. A body counts only while a service reads it, and has read all that has come. */
  #awaitedPart(): Progress['awaited'] {
    const request = this.#request
    if (request.complete) return undefined
    // Node drops the rest, so that the next call can be read
    if (this.#response.writableFinished) return 'sending'
    if (request.readableLength > 0 || this.#response.writableEnded) return undefined
    if (request.readableFlowing !== true && request.listenerCount('readable') === 0) return undefined
    if (!isHttp2(request) || grpcTypeOf(request.headers) === undefined) return 'sending'
    // a gRPC caller may keep its stream open and send nothing until it has something to say
    return this.#response.headersSent ? undefined : 'message'
  }
}

/** A connection of HTTP/1.1, which carries one call at a time. */
export class SocketSide implements CallerSide {
  readonly #socket: Socket

  constructor(request: IncomingMessage) {
    // a request that has been cut off has none any more
    this.#socket = request.socket
  }

  get bytesReceived(): number {
    return this.#socket.bytesRead
  }

  get bytesSent(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  get isGone(): boolean {
    return this.#socket.destroyed
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain
  }

  refuse(status: number, detail: string): void {
    this.#socket.end(problemText(status, detail), () => this.#socket.destroy())
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

/** Something under way, looked at again and again. */
export interface Transfer {
  /** Ends itself if it takes too long. */
  check(now: number): void
  /** True if it need not be looked at any more. */
  readonly isOver?: boolean
}

const checkMs = 500

/** Everything under way: one clock for all of it. */
export class Transfers {
  readonly #transfers = new Set<Transfer>()
  #repeated: Repeated | undefined

  add(transfer: Transfer): void {
    this.#transfers.add(transfer)
    this.#repeated ??= repeat('transfers', checkMs, () => this.#check())
  }

  delete(transfer: Transfer): void {
    this.#transfers.delete(transfer)
  }

  #check(): void {
    const now = performance.now()
    const drop = (transfer: Transfer): boolean => this.#transfers.delete(transfer)
    const look = (transfer: Transfer): unknown => (transfer.isOver ? drop(transfer) : transfer.check(now))
    visitAll('transfers', this.#transfers, look, drop)
    if (this.#transfers.size > 0) return
    this.#repeated?.stop()
    this.#repeated = undefined
  }
}
