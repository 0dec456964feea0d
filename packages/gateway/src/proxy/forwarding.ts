import type { OutgoingHttpHeaders } from 'node:http'
import { markUnknownEnd } from 'diana-limiter/words'
import type { CallReply, CallRequest } from '../calls/call.ts'
import { paceOf, type Work } from '../connections/call-pace.ts'
import { deadlineTrailers, grpcTimeoutMs } from '../grpc/grpc-call.ts'
import { sendProblem } from '../problem.ts'
import type { Route } from '../routes/route.ts'
import { type CallRecord, recordOf } from '../telemetry/call-record.ts'
import type { Connection } from '../upstreams/clients.ts'
import type { WholeAnswerHandler } from '../upstreams/short-exchange.ts'
import type { SlotUser } from '../upstreams/slots.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { keepAliveMsOf, type WholeAnswer } from '../upstreams/whole-answer.ts'
import { AnswerRelay, leavesBodyUnread, type RelayedCall, type RelayedHead } from './answer-relay.ts'
import { type Body, bodyOf } from './body.ts'
import {
  AnswerNotTaken,
  adviceOn,
  busy,
  ConnectOverdue,
  DeadlinePassed,
  type Failure,
  failureOf,
  isLateClosing,
} from './failure.ts'
import type { ForwarderParts } from './forwarder.ts'
import { textsOf } from './headers-to-caller.ts'
import { headersToService } from './headers-to-service.ts'
import { serviceRequest } from './service-request.ts'
import { trailersOf } from './trailers.ts'
import { Tries } from './tries.ts'

const overdueMs = 5000

/** One call on its way to a service and back; the connection to the service tells it what happens. */
export class Forwarding implements WholeAnswerHandler, SlotUser, Work, RelayedCall {
  readonly #request: CallRequest
  readonly #reply: CallReply
  readonly #route: Route
  readonly #parts: ForwarderParts
  readonly #relay: AnswerRelay
  readonly #record: CallRecord | undefined
  readonly #tries: Tries
  /** Where the call goes if the answer that came is not taken. */
  #next: Upstream | undefined
  #client: Connection | undefined
  #sentAt = 0
  #body: Body
  #headers: string[] = []
  #abort: ((error?: Error) => void) | undefined
  #status = 0
  #hasAnswered = false
  #isGone = false
  #deadline: NodeJS.Timeout | undefined

  constructor(request: CallRequest, reply: CallReply, route: Route, parts: ForwarderParts) {
    this.#request = request
    this.#reply = reply
    this.#route = route
    this.#parts = parts
    this.#relay = new AnswerRelay(this, reply, parts)
    this.#record = recordOf(request.raw)
    this.#tries = new Tries(request, route, parts.trust)
  }

  get #upstream(): Upstream {
    return this.#tries.upstream
  }

  get isUnderWay(): boolean {
    return this.#client !== undefined
  }

  begin(): void {
    if (this.#reply.raw.destroyed) {
      // the caller has left while the call was judged
      this.#reply.hijack()
      return
    }
    this.#headers = headersToService(this.#request, this.#route, this.#parts.trust)
    this.#body = bodyOf(this.#request, this.#route.settings.bodyBytes, this.#parts.bulk)
    const pace = paceOf(this.#request.raw)
    if (pace === undefined) this.#reply.raw.on('close', () => this.onEnd())
    else pace.work = this
    const timeoutMs = grpcTimeoutMs(this.#request.headers)
    if (timeoutMs !== undefined) this.#deadline = setTimeout(() => this.#onDeadline(), timeoutMs)
    this.#takeSlot()
  }

  #takeSlot(): void {
    this.#record?.queued(performance.now())
    this.#upstream.slots.take(this)
  }

  onSlot(): void {
    const now = performance.now()
    this.#sentAt = now
    this.#record?.sent(this.#upstream, now)
    this.#record?.trace?.tellService(this.#headers)
    // of connections that are kept, others may have been closed like the one that failed
    this.#client = this.#tries.isFirst ? this.#upstream.clients.take(now) : this.#upstream.clients.open()
    this.#upstream.health.begin(now)
    const request = serviceRequest(this.#request, this.#route, this.#upstream, {
      headers: this.#headers,
      body: this.#body,
      trailers: () => this.trailers(),
    })
    this.#client.dispatch(request, this)
  }

  onNoSlot(): void {
    if (this.#tries.moveToRoom()) {
      this.#upstream.slots.take(this)
      return
    }
    this.#reply.header('retry-after', '1')
    this.#answerWith(busy, new Error('no connection became free'))
  }

  stalledMs(): number {
    return paceOf(this.#request.raw)?.stalledMs ?? 0
  }

  evict(): void {
    paceOf(this.#request.raw)?.cut()
  }

  check(now: number): void {
    this.#client?.check(now)
    if (this.#client === undefined || this.#abort !== undefined) return
    const { connectMs } = this.#route.settings.timeouts
    if (now - this.#sentAt > connectMs + overdueMs) this.onError(new ConnectOverdue('no connection was made in time'))
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#tries.send()
    this.#client?.expectAnswer(this)
    if (this.#isGone) abort()
    else this.#abort = abort
  }

  abort(): void {
    this.#abort?.()
  }

  /** The caller's trailers, which stand behind its body. */
  trailers(): OutgoingHttpHeaders {
    return trailersOf(this.#request.raw)
  }

  onResponseStarted(): void {
    this.#hasAnswered = true
  }

  onHeaders(status: number, received: Buffer[], resume: () => void, text: string): boolean {
    if (status < 200) {
      this.#relay.interim(status, received, text)
      return true
    }
    this.#client!.keepAliveMs = keepAliveMsOf(received)
    const head = this.#headOf(status, textsOf(received))
    if (head === undefined) {
      this.#abort?.(new AnswerNotTaken(`status ${status}`))
      return false
    }
    this.#record?.firstByte(status, performance.now())
    this.#relay.begin(head, text, resume)
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#relay.write(chunk)
  }

  onComplete(trailers: string[] | null): void {
    const now = performance.now()
    this.#tellHealth(now)
    this.#record?.tryEnded(now)
    this.#relay.end(trailers)
    const client = this.#endAttempt()
    // not at once: undici allows no new call while it tells of the end of this one
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
      this.#relay.send(head, answer)
    } catch (error) {
      this.onError(error as Error)
      return
    }
    this.#tellHealth(now)
    this.#record?.tryEnded(now)
    this.#release(this.#endAttempt(), now)
  }

  onError(error: Error): void {
    if (this.#client === undefined) return
    this.#record?.tryEnded(performance.now(), error)
    const client = this.#endAttempt()
    process.nextTick(() => {
      this.#upstream.clients.discard(client)
      this.#upstream.slots.release(this)
      this.#fail(error)
    })
  }

  #endAttempt(): Connection {
    const client = this.#client!
    if (client.answers.end()) this.#hasAnswered = true
    this.#client = undefined
    this.#abort = undefined
    return client
  }

  #release(client: Connection, now: number): void {
    this.#upstream.clients.giveBack(client, now)
    this.#upstream.slots.release(this)
  }

  #fail(error: Error): void {
    if (this.#isGone) return
    // undici misses the bytes that Content-Length announces, though such an answer has none (RFC 9110, section 8.6)
    if (this.#relay.isWithoutBody) {
      this.#relay.end()
      return
    }
    const failure = failureOf(error, this.#hasAnswered)
    if (failure.isOfService) this.#upstream.health.fail(performance.now(), error.message)
    if (this.#relay.hasBegun) {
      this.#record?.broken()
      this.#relay.breakOff(error)
    } else if (!this.#triesAgain(failure)) this.#answerWith(failure, error)
  }

  #triesAgain({ mayRetry, isUnprocessed = false }: Failure): boolean {
    const next = this.#next ?? (mayRetry ? this.#nextTry({ mayStay: true, isUnprocessed }) : undefined)
    if (next === undefined) return false
    this.#next = undefined
    this.#hasAnswered = false
    this.#tries.move(next)
    this.#takeSlot()
    return true
  }

  #nextTry(how: { mayStay: boolean; isUnprocessed: boolean }): Upstream | undefined {
    return this.#tries.again({ ...how, hasBody: this.#body !== undefined })
  }

  /** What the caller is sent of an answer; undefined if the call is tried again rather than answered with it. */
  #headOf(status: number, received: readonly string[]): RelayedHead | undefined {
    this.#status = status
    this.#record?.trace?.tryAnswered(status)
    if (this.#isNotTaken(status, received)) return undefined
    return {
      ...{ status, received },
      exchange: { route: this.#route, upstream: this.#upstream, host: this.#request.headers.host },
      cookie: this.#tries.cookie(),
      closes: this.#parts.isClosing() || leavesBodyUnread(this.#request, this.#body),
    }
  }

  #isNotTaken(status: number, received: readonly string[]): boolean {
    const isFailure = this.#route.settings.health.failStatuses.includes(status)
    if (!isFailure && !(this.#client!.isReused && isLateClosing(status, received))) return false
    this.#next = this.#nextTry({ mayStay: !isFailure, isUnprocessed: false })
    if (this.#next === undefined) return false
    if (isFailure) this.#tellHealth(performance.now())
    return true
  }

  #tellHealth(now: number): void {
    const { health } = this.#upstream
    const isFailure = this.#route.settings.health.failStatuses.includes(this.#status)
    if (isFailure) health.fail(now, `status ${this.#status}`)
    else health.succeed(now)
  }

  #answerWith(failure: Failure, error: Error): void {
    const { status, detail, isOfService } = failure
    // the service may have done its work before the caller broke the call off
    if (!isOfService && this.#tries.wasSent) markUnknownEnd(this.#reply.raw)
    if (isOfService) this.#request.log.warn({ err: error, service: this.#upstream.name }, adviceOn(failure, error))
    if (leavesBodyUnread(this.#request, this.#body)) this.#reply.header('connection', 'close')
    sendProblem(this.#reply, status, detail)
  }

  /** The time is over that a gRPC caller gives for the whole call. */
  #onDeadline(): void {
    const passed = new DeadlinePassed('the deadline of the call has passed')
    if (this.#relay.hasBegun) {
      this.#isGone = true
      this.#relay.end(deadlineTrailers)
      this.#abort?.(passed)
    } else if (this.#client !== undefined) {
      if (this.#abort) this.#abort(passed)
      else this.onError(passed)
    } else {
      this.#upstream.slots.release(this)
      this.#answerWith(failureOf(passed), passed)
    }
  }

  /** The answer is over, whoever gave it: what is still under way for it ends. */
  onEnd(): void {
    if (this.#deadline !== undefined) clearTimeout(this.#deadline)
    this.#isGone = true
    if (this.#abort) this.#abort()
    // without a connection yet, the call is only in the queue for one
    else if (this.#client === undefined) this.#upstream.slots.release(this)
  }
}
