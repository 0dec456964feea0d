import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { CallRequest } from '../http/call.ts'
import { hasBody } from '../http/message-headers.ts'
import { paceOf } from '../inbound/calls/call-pace.ts'
import { type BulkQueue, bulkBytes } from '../inbound/connections/bulk-queue.ts'
import type { Connection } from '../services/clients.ts'
import type { WholeAnswerHandler } from '../services/http1/short-exchange.ts'
import { keepAliveMsOf, type WholeAnswer } from '../services/http1/whole-answer.ts'
import type { Route } from '../services/routes/route.ts'
import type { SlotUser } from '../services/slots.ts'
import type { Upstream } from '../services/upstream.ts'
import { type CallRecord, recordOf } from '../telemetry/call-record.ts'
import type { AnswerRelay, RelayedHead } from './answers/answer-relay.ts'
import { AnswerNotTaken, BodyTooLarge, ConnectOverdue } from './failure.ts'
import { textsOf } from './headers/end-to-end-headers.ts'
import { trailersOf } from './headers/trailers.ts'

/** The call that is sent, and what is reported to it of an attempt. */
export interface AttemptedCall {
  readonly request: CallRequest
  readonly route: Route
  readonly relay: AnswerRelay
  /** Returns the call as it is sent to an address. */
  requestTo(upstream: Upstream): Dispatcher.DispatchOptions
  /** Reports that the service may get the call from now on. */
  onSent(): void
  /** Reports that no connection has become free. */
  onNoSlot(): void
  /** Returns what the caller is sent of an answer; undefined if the call is tried again rather than answered with it. */
  headOf(status: number, received: readonly string[], isReused: boolean): RelayedHead | undefined
  onFailed(error: Error, hasAnswered: boolean): void
}

const overdueMs = 5000

/** One attempt to get an answer from one address: its slot, its connection, and what the connection reports. */
export class Attempt implements WholeAnswerHandler, SlotUser {
  readonly upstream: Upstream
  readonly #call: AttemptedCall
  readonly #record: CallRecord | undefined
  readonly #isFirst: boolean
  #client: Connection | undefined
  #sentAt = 0
  #abort: ((error?: Error) => void) | undefined
  #status = 0
  #hasAnswered = false
  #isGone = false

  constructor(call: AttemptedCall, upstream: Upstream, isFirst: boolean) {
    this.#call = call
    this.upstream = upstream
    this.#isFirst = isFirst
    this.#record = recordOf(call.request.raw)
  }

  /** True if the connection to the service carries this call. */
  get isUnderWay(): boolean {
    return this.#client !== undefined
  }

  begin(): void {
    this.upstream.slots.take(this)
  }

  onSlot(): void {
    const now = performance.now()
    const { clients, health } = this.upstream
    this.#sentAt = now
    this.#record?.sent(this.upstream, now)
    // of connections that are kept, others may have been closed like the one that failed
    this.#client = this.#isFirst ? clients.take(now) : clients.open()
    health.begin(now)
    this.#client.dispatch(this.#call.requestTo(this.upstream), this)
  }

  onNoSlot(): void {
    this.#call.onNoSlot()
  }

  stalledMs(): number {
    return paceOf(this.#call.request.raw)?.stalledMs ?? 0
  }

  evict(): void {
    paceOf(this.#call.request.raw)?.cut()
  }

  check(now: number): void {
    this.#client?.check(now)
    if (this.#client === undefined || this.#abort !== undefined) return
    const { connectMs } = this.#call.route.settings.timeouts
    if (now - this.#sentAt > connectMs + overdueMs) this.onError(new ConnectOverdue('no connection was made in time'))
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#call.onSent()
    this.#client?.expectAnswer(this)
    if (this.#isGone) abort()
    else this.#abort = abort
  }

  /** Returns the caller's trailers, which stand behind its body. */
  trailers(): OutgoingHttpHeaders {
    return trailersOf(this.#call.request.raw)
  }

  onResponseStarted(): void {
    this.#hasAnswered = true
  }

  onHeaders(status: number, received: Buffer[], resume: () => void, text: string): boolean {
    const { relay, route } = this.#call
    if (status < 200) {
      relay.interim({ status, received, text, to: route.settings.earlyHints ?? 'auto' })
      return true
    }
    this.#client!.keepAliveMs = keepAliveMsOf(received)
    const head = this.#headOf(status, textsOf(received))
    if (head === undefined) {
      this.#abort?.(new AnswerNotTaken(`status ${status}`))
      return false
    }
    this.#record?.firstByte(status, performance.now())
    relay.begin(head, text, resume)
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#call.relay.write(chunk)
  }

  onComplete(trailers: string[] | null): void {
    const now = performance.now()
    this.#succeed(now)
    this.#call.relay.end(trailers)
    const client = this.#letGo()
    // not at once: undici allows no new call while it reports the end of this one
    process.nextTick(() => this.#release(client, performance.now()))
  }

  onWholeAnswer(answer: WholeAnswer): void {
    const { status, headers, keepAliveMs } = answer
    const now = performance.now()
    this.#client!.keepAliveMs = keepAliveMs
    this.#hasAnswered = true
    try {
      const head = this.#headOf(status, headers)
      if (head === undefined) throw new AnswerNotTaken(`status ${status}`)
      this.#record?.firstByte(status, now)
      this.#call.relay.send(head, answer)
    } catch (error) {
      this.onError(error as Error)
      return
    }
    this.#succeed(now)
    this.#release(this.#letGo(), now)
  }

  onError(error: Error): void {
    if (this.#client === undefined) return
    this.#record?.tryEnded(performance.now(), error)
    const client = this.#letGo()
    process.nextTick(() => {
      this.upstream.clients.discard(client)
      this.upstream.slots.release(this)
      if (!this.#isGone) this.#call.onFailed(error, this.#hasAnswered)
    })
  }

  /** Breaks off what is under way; without an error, no caller waits for it any more. */
  abort(error?: Error): void {
    if (this.#abort) this.#abort(error)
    else if (this.#client !== undefined && error !== undefined) this.onError(error)
  }

  /** Ends what is still under way for the answer, which is over. */
  end(error?: Error): void {
    this.#isGone = true
    // without a connection yet, the call is only in the queue for one
    if (this.#client === undefined) this.upstream.slots.release(this)
    else this.#abort?.(error)
  }

  #headOf(status: number, received: readonly string[]): RelayedHead | undefined {
    this.#status = status
    this.#record?.trace?.tryAnswered(status)
    return this.#call.headOf(status, received, this.#client!.isReused)
  }

  #succeed(now: number): void {
    this.#record?.tryEnded(now)
    tellHealth(this.upstream, this.#call.route, this.#status, now)
  }

  #letGo(): Connection {
    const client = this.#client!
    if (client.answers.end()) this.#hasAnswered = true
    this.#client = undefined
    this.#abort = undefined
    return client
  }

  #release(client: Connection, now: number): void {
    this.upstream.clients.giveBack(client, now)
    this.upstream.slots.release(this)
  }
}

/** Takes note of what an answer says about the health of the address that gave it. */
export function tellHealth({ health }: Upstream, { settings }: Route, status: number, now: number): void {
  if (settings.health.failStatuses.includes(status)) health.fail(now, `status ${status}`)
  else health.succeed(now)
}

export interface ServiceRequestParts {
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Body
}

/** Returns a call as it is sent to an address, in undici's words. */
export function serviceRequest(
  { url, method, raw }: CallRequest,
  route: Route,
  upstream: Upstream,
  { headers, body }: ServiceRequestParts,
): Dispatcher.DispatchOptions {
  const { headersMs, bodyMs } = route.settings.timeouts
  const request = {
    path: route.targetAt(upstream, url),
    method: method as Dispatcher.HttpMethod,
    headers,
    body: (body ?? null) as NonNullable<Dispatcher.DispatchOptions['body']> | null,
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    // undici would close the connection after HEAD, and after bodies of methods that it expects none of
    reset: false,
    // by the Host of the caller, undici would ask for another certificate
    servername: upstream.serverName,
  }
  return (body === undefined ? request : { ...request, trailers: () => trailersOf(raw) }) as Dispatcher.DispatchOptions
}

/** The body of a call as it is sent on: bytes that a filter has read, or the caller's own stream. */
export type Body = Buffer | IncomingMessage | AsyncIterable<Uint8Array> | undefined

/** Returns the body of a call; a stream that is long, or whose length is not stated, is counted as it flows. */
export function bodyOf({ raw, body }: CallRequest, mostBytes: number, bulk: BulkQueue): Body {
  if (Buffer.isBuffer(body)) return body
  if (!hasBody(raw)) return undefined
  return Number(raw.headers['content-length'] ?? Number.POSITIVE_INFINITY) > bulkBytes
    ? counted(raw, mostBytes, bulk)
    : raw
}

async function* counted(
  body: AsyncIterable<Uint8Array>,
  mostBytes: number,
  bulk: BulkQueue,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  let bytesInTurn = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > mostBytes) throw new BodyTooLarge()
    yield piece
    bytesInTurn += piece.length
    if (bytesInTurn < bulkBytes) continue
    await bulk.turn()
    bytesInTurn = 0
  }
}
