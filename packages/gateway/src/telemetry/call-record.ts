import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Outcome } from 'diana-limiter'
import type { AnswerObserver, SettledCost } from 'diana-limiter/filter'
import { GrpcOutcome } from 'diana-limiter/gateway'
import type { CallReply, CallRequest } from '../http/call.ts'
import type { Route } from '../services/routes/route.ts'
import type { Upstream } from '../services/upstream.ts'
import type { CallTrace } from './tracing/call-trace.ts'

/** The reason why the gateway answers in place of a service, as metrics name it. */
export type FailureReason =
  | ('unreachable' | 'unreadable' | 'timeout' | 'deadline' | 'unwilling')
  | ('unsendable' | 'too-large' | 'busy' | 'overload' | 'internal')

/** The end of a call: answered in full, left or cut before the end of its answer, or broken off by the service. */
export type CallEnd = 'complete' | 'aborted' | 'broken'

const recordKey: unique symbol = Symbol('diana.callRecord')
const bytesReadKey: unique symbol = Symbol('diana.bytesRead')

interface Recorded {
  [recordKey]?: CallRecord
}

/** Counts that requests and responses of HTTP/2 have of their stream: the connection carries other calls, too. */
interface StreamCounts {
  readonly bytesReceived?: number
  readonly bytesSent?: number
  readonly stream?: { readonly rstCode: number }
}

interface CountedSocket extends Socket {
  [bytesReadKey]?: number
}

/** Returns the record of a request that is being served, or of its response. */
export function recordOf(message: IncomingMessage | ServerResponse): CallRecord | undefined {
  return (message as Recorded)[recordKey]
}

let turns = 0

/** Numbers what happens to the counts of rules in this process, in order. */
export function nextTurn(): number {
  return ++turns
}

/** nginx's status for a call whose caller has left before it was answered. */
const callerLeft = 499

/** A service that breaks off its answer has failed as one that gives none. */
const broken: Outcome = { status: 502, by: 'gateway' }
const unknown: Outcome = {}
const firstError = 400

/**
 * Records one call: times, addresses and counts, collected while the call is served. One record per call is always made, so
 * everything that costs more than an assignment is left to the end of the call. Times are those of `performance.now()`.
 */
export class CallRecord {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly socket: CountedSocket
  readonly startedAt: number
  /** Undefined for bytes that could not be read as a call. */
  readonly method: string | undefined
  /** The target as it came; routing changes the request's own. */
  readonly target: string
  readonly peer: string | undefined
  readonly #written: number
  requestId = ''
  /** The order in which rules decided calls and calls ended; 0 if no rule was asked. */
  turn = 0
  endTurn = 0
  /** The time when the rules counted the end of the call, by their clock; 0 if they did not ask. */
  endUs = 0
  trace: CallTrace | undefined
  route: Route | undefined
  upstream: Upstream | undefined
  /** The number of times that the call was sent to a service. */
  tries = 0
  /** Time in the queue for a connection to a service. */
  slotMs = 0
  sentAt = 0
  /** The time when the last try began. */
  triedAt = 0
  firstByteAt = 0
  upstreamEndedAt = 0
  endedAt = 0
  bytesIn = 0
  bytesOut = 0
  bodyBytesOut = 0
  end: CallEnd = 'complete'
  /** The reason why the gateway sent a call to no service after rules had let it pass. */
  unsentReason: 'overload' | undefined
  /** The reason why the gateway answered with a 5xx of its own, if it did. */
  ownError: FailureReason | undefined
  /** Sees the answer, for rules that read costs from it. */
  observer: AnswerObserver | undefined
  /** The costs of the call by such rules; undefined if they are not known yet. */
  costs: readonly SettledCost[] | undefined
  /** Reads the outcome of an answer of gRPC; undefined for any other answer. */
  grpc: GrpcOutcome | undefined
  #queuedAt = 0
  #status = 0
  /** The side that broke off the call, if one did. */
  #brokenBy: 'service' | 'caller' | undefined
  /** True if the caller gets the answer of a service. */
  #isRelayed = false
  /** The status of an answer of the gateway itself, if the caller is sent another. */
  #meant = 0

  constructor(request: IncomingMessage, response: ServerResponse, now: number) {
    this.request = request
    this.response = response
    this.socket = request.socket
    this.startedAt = now
    this.method = request.method || undefined
    this.target = request.url ?? ''
    // a socket that is closed has no address any more
    this.peer = this.socket.remoteAddress
    this.#written = this.socket.bytesWritten
    ;(request as Recorded)[recordKey] = this
    ;(response as Recorded)[recordKey] = this
  }

  /** The status that the caller was sent; 499 if it left before there was one. */
  get status(): number {
    if (this.#status !== 0) return this.#status
    return this.response.headersSent ? this.response.statusCode : callerLeft
  }

  get totalMs(): number {
    return this.endedAt - this.startedAt
  }

  /** From the first try to the end of the service's answer; undefined if no service was asked. */
  get upstreamMs(): number | undefined {
    if (this.sentAt === 0) return undefined
    return (this.upstreamEndedAt === 0 ? this.endedAt : this.upstreamEndedAt) - this.sentAt
  }

  get firstByteMs(): number | undefined {
    return this.firstByteAt === 0 ? undefined : this.firstByteAt - this.sentAt
  }

  /** From the last try on, until the service began its answer; undefined if it did not. */
  get answerMs(): number | undefined {
    return this.firstByteAt === 0 ? undefined : this.firstByteAt - this.triedAt
  }

  /** Notes that an answer was written to the socket itself, past the response. */
  answered(status: number): void {
    if (this.#status === 0 && !this.response.headersSent) this.#status = status
  }

  /** Notes that the gateway answers itself, in place of a service. */
  failed({ status, reason }: { readonly status: number; readonly reason: FailureReason }): void {
    if (status >= 500) this.ownError = reason
  }

  /** Notes that the call waits for a connection to a service. */
  queued(now: number): void {
    this.#queuedAt = now
  }

  /** Notes that the call is sent to a service, perhaps not for the first time. */
  sent(upstream: Upstream, now: number): void {
    this.slotMs += now - this.#queuedAt
    if (this.tries > 0) this.#countRetry(upstream, now)
    this.upstream = upstream
    this.triedAt = now
    this.tries++
    this.sentAt ||= now
    this.trace?.tryBegan(upstream, now)
  }

  /** Notes that the service has begun to answer. */
  firstByte(status: number, now: number): void {
    this.firstByteAt ||= now
    this.trace?.tryAnswered(status)
  }

  /** Notes that the service has answered in full, or failed. */
  tryEnded(now: number, error?: Error): void {
    this.upstreamEndedAt = now
    this.trace?.tryEnded(now, error)
  }

  /** Notes that the answer of a service goes to the caller from now on. */
  relayed(header: (name: string) => string | undefined): void {
    this.#isRelayed = true
    this.grpc = GrpcOutcome.of(header)
  }

  /** Takes the trailers of that answer, names and values in turn. */
  trailed(trailers: readonly (string | Buffer)[]): void {
    if (this.grpc === undefined) return
    for (let at = 0; at + 1 < trailers.length; at += 2)
      this.grpc.trailer(String(trailers[at]), String(trailers[at + 1]))
  }

  /** Notes the status that the gateway answers with, though the caller is sent another. */
  meant(status: number): void {
    this.#isRelayed = false
    this.#meant = status
  }

  /** Notes that the service broke off an answer that had begun. */
  broken(): void {
    this.#brokenBy ??= 'service'
  }

  /** Notes that the caller made the call fail. A service that was sent the call may have done its work, so the outcome is not known. */
  failedByCaller(): void {
    if (this.tries > 0) this.#brokenBy ??= 'caller'
  }

  /**
   * Says who ended the call and how, for rules: the service by its answer, the gateway by one of its own, or else the caller, of
   * whose call nothing is known. `isWhole` if all of the answer was sent.
   */
  outcomeOf(isWhole: boolean): Outcome {
    if (this.#brokenBy === 'service') return broken
    if (this.#brokenBy === 'caller' || !(isWhole || this.#status !== 0)) return unknown
    if (!this.#isRelayed) return { status: this.#meant || this.status, by: 'gateway' }
    return { status: this.grpc === undefined ? this.status : this.grpc.status }
  }

  /** Finishes the record, since the response is over: reads what can only be known now. */
  finish(now: number): void {
    this.endedAt = now
    // not by the version of the request, which a caller of HTTP/1 may choose
    if ((this.response as StreamCounts).stream !== undefined) this.#countStream()
    else this.#countConnection()
    if (this.#brokenBy === 'service') this.end = 'broken'
    else if (this.#status === 0 && !isWhole(this.response)) this.end = 'aborted'
    if (this.observer !== undefined) this.#settle(this.observer)
  }

  /** Counts a retry: the last try has failed, and another one is made. */
  #countRetry(next: Upstream, now: number): void {
    if (this.route === undefined) return
    this.upstream?.traffic.addFailedTry(this.route.id, now)
    next.traffic.addRetry(this.route.id, now)
  }

  /** Settles the call before it is logged, so that the log has its costs. */
  #settle(observer: AnswerObserver): void {
    const { status, by } = this.outcomeOf(this.end === 'complete')
    // an answer of gRPC has failed although its head says 200
    if (by === 'gateway' || (this.grpc !== undefined && status !== undefined && status >= firstError))
      observer.unserved()
    void observer.end(status)
  }

  #countConnection(): void {
    const { socket } = this
    const { bytesRead } = socket
    this.bytesIn = bytesRead - (socket[bytesReadKey] ?? 0)
    socket[bytesReadKey] = bytesRead
    this.bytesOut = Math.max(0, socket.bytesWritten - socket.writableLength - this.#written)
    this.bodyBytesOut = Math.max(0, this.bytesOut - headLength(this.response))
  }

  /** Counts the bytes of bodies: the connection is shared with other calls, so more cannot be counted. */
  #countStream(): void {
    this.bytesIn = (this.request as StreamCounts).bytesReceived ?? 0
    this.bytesOut = (this.response as StreamCounts).bytesSent ?? 0
    this.bodyBytesOut = this.bytesOut
  }
}

/** True if all of an answer was sent. */
export function isWhole(response: ServerResponse): boolean {
  const { stream } = response as StreamCounts
  return stream === undefined ? response.writableFinished : response.writableEnded && stream.rstCode === 0
}

/** Returns the bytes of the status line and the headers of an answer that has begun. */
function headLength(response: ServerResponse): number {
  const { _header } = response as { _header?: string | null }
  return _header?.length ?? 0
}

/** Adds the id of a request to the headers of its answer. */
export function tellRequestId({ raw }: Pick<CallRequest, 'raw'>, reply: CallReply): void {
  const record = recordOf(raw)
  if (record !== undefined) reply.header('x-request-id', record.requestId)
}
