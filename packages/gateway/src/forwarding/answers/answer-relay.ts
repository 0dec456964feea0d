import type { CallReply, CallRequest } from '../../http/call.ts'
import { type BulkQueue, bulkBytes } from '../../inbound/connections/bulk-queue.ts'
import type { WholeAnswer } from '../../services/http1/whole-answer.ts'
import type { CallRecord } from '../../telemetry/call-record.ts'
import { type Exchange, headersToCaller, reasonFor } from '../headers/end-to-end-headers.ts'
import { type Interim, sendInterim } from '../headers/interim.ts'
import type { OutletSource, ResponseSink } from './response-sink.ts'

/** The call whose answer is passed on. */
export interface RelayedCall {
  /** True if the connection to the service still carries this call. */
  readonly isUnderWay: boolean
  /** Breaks the call off, since no caller waits for its answer. */
  abort(): void
}

/** The head of an answer, and what is said besides the service's headers. */
export interface RelayedHead {
  readonly status: number
  readonly received: readonly string[]
  readonly exchange: Exchange
  /** The cookie that binds the caller to an address, if one is due. */
  readonly cookie: string | undefined
  /** True if the caller's connection ends with this answer. */
  readonly closes: boolean
}

/** The sink that the answer goes to, and how large ones take turns. */
export interface RelayParts {
  readonly sink: ResponseSink
  readonly bulk: BulkQueue
  readonly record: CallRecord | undefined
}

const maxInterims = 10

/** Passes the answer of a service on to the caller, as fast as the caller reads it. */
export class AnswerRelay implements OutletSource {
  readonly #call: RelayedCall
  readonly #reply: CallReply
  readonly #bulk: BulkQueue
  readonly #sink: ResponseSink
  readonly #record: CallRecord | undefined
  /** Sees the answer as the service sends it; undefined if no rule asks for it. */
  readonly #observer: CallRecord['observer']
  #interims = 0
  #bytesInTurn = 0
  #isWaitingForTurn = false
  #resume: (() => void) | undefined
  #hasBegun = false
  #isWithoutBody = false

  constructor(call: RelayedCall, reply: CallReply, { sink, bulk, record }: RelayParts) {
    this.#call = call
    this.#reply = reply
    this.#bulk = bulk
    this.#sink = sink
    this.#record = record
    this.#observer = record?.observer
  }

  /** True if the caller has been sent a part of the answer. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** True if the answer is complete with its head. */
  get isWithoutBody(): boolean {
    return this.#isWithoutBody
  }

  interim(interim: Interim): void {
    if (this.#interims++ < maxInterims) sendInterim(this.#reply.raw, interim)
  }

  /** Throws if the head cannot be passed on. */
  begin(head: RelayedHead, text: string, resume: () => void): void {
    const { status } = head
    this.#sink.begin(status, reasonFor(status, text), this.#headersOf(head), this)
    this.#noteHead(head)
    this.#isWithoutBody = status === 204 || status === 304
    this.#resume = resume
    this.#hasBegun = true
  }

  /** Does all at once; throws if the head cannot be passed on. */
  send(head: RelayedHead, { reason, body }: WholeAnswer): void {
    this.#sink.send(head.status, reasonFor(head.status, reason), this.#headersOf(head), body)
    this.#noteHead(head)
    this.#observer?.add(body)
    this.#record?.grpc?.add(body)
    this.#hasBegun = true
  }

  /** False if more is to be awaited: `resume` is called then. */
  write(chunk: Buffer): boolean {
    if (this.#observer !== undefined) this.#observer.add(chunk)
    if (this.#record?.grpc !== undefined) this.#record.grpc.add(chunk)
    const hasRoom = this.#sink.write(chunk)
    this.#bytesInTurn += chunk.length
    if (hasRoom && this.#bytesInTurn < bulkBytes) return true
    if (hasRoom) this.onReady()
    return false
  }

  end(trailers?: readonly (string | Buffer)[] | null): void {
    if (trailers) this.#record?.trailed(trailers)
    this.#sink.end(trailers)
  }

  breakOff(error: Error): void {
    this.#sink.breakOff(error)
  }

  /** Reads on when the caller's turn has come: the system reads megabytes at once, and other calls come first. */
  onReady(): void {
    if (this.#isWaitingForTurn) return
    this.#isWaitingForTurn = true
    this.#bulk.join(() => {
      this.#isWaitingForTurn = false
      this.#bytesInTurn = 0
      // a connection whose answer has ended may carry another call by now
      if (this.#call.isUnderWay) this.#resume?.()
    })
  }

  onGone(): void {
    this.#call.abort()
  }

  #noteHead({ status, received }: RelayedHead): void {
    const header = (name: string): string | undefined => headerIn(received, name)
    this.#record?.relayed(header)
    this.#observer?.begin(status, header)
  }

  #headersOf(head: RelayedHead): string[] {
    const headers = headersToCaller(head, this.#reply.getHeaders(), head.exchange)
    if (head.cookie !== undefined) headers.push('set-cookie', head.cookie)
    if (head.closes) headers.push('connection', 'close')
    return headers
  }
}

function headerIn(received: readonly string[], name: string): string | undefined {
  for (let at = 0; at + 1 < received.length; at += 2) if (received[at]!.toLowerCase() === name) return received[at + 1]
  return undefined
}

/** True if the caller still sends a body, which would be taken for the next call. */
export function leavesBodyUnread({ raw }: CallRequest, body: unknown): boolean {
  return body !== undefined && !raw.complete
}
