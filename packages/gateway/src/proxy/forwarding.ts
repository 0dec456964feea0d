import type { OutgoingHttpHeaders } from 'node:http'
import { markUnknownEnd } from 'diana-limiter/words'
import type { Dispatcher } from 'undici'
import type { CallReply, CallRequest } from '../calls/call.ts'
import { bulkBytes } from '../connections/bulk-queue.ts'
import { paceOf, type Work } from '../connections/call-pace.ts'
import { deadlineTrailers, grpcTimeoutMs } from '../grpc/grpc-call.ts'
import { sendProblem } from '../problem.ts'
import type { Route } from '../routes/route.ts'
import { type CallRecord, recordOf } from '../telemetry/call-record.ts'
import type { Connection } from '../upstreams/clients.ts'
import type { SlotUser } from '../upstreams/slots.ts'
import type { Upstream } from '../upstreams/upstream.ts'
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
import type { ForwarderParts } from './forwarder-parts.ts'
import { headersToCaller } from './headers-to-caller.ts'
import { headersToService } from './headers-to-service.ts'
import { sendInterim } from './interim.ts'
import type { Outlet, OutletSource } from './outlet.ts'
import { reasonFor } from './reason.ts'
import { trailersOf } from './trailers.ts'
import { Tries } from './tries.ts'

/** Methods that mean the same once or twice (RFC 9110, section 9.2.2). */
const repeatable: readonly string[] = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

const overdueMs = 5000
const maxInterims = 10

/** One call on its way to a service and back; undici tells it what happens. */
export class Forwarding implements Dispatcher.DispatchHandler, SlotUser, Work, OutletSource {
  readonly #request: CallRequest
  readonly #reply: CallReply
  readonly #route: Route
  readonly #parts: ForwarderParts
  readonly #outlet: Outlet
  readonly #record: CallRecord | undefined
  readonly #tries: Tries
  /** Where the call goes if the answer that came is not taken. */
  #next: Upstream | undefined
  #client: Connection | undefined
  #sentAt = 0
  #interims = 0
  #bytesInTurn = 0
  #isWaitingForTurn = false
  #resume: (() => void) | undefined
  #body: Body
  #headers: string[] = []
  #abort: ((error?: Error) => void) | undefined
  #status = 0
  #hasAnswered = false
  #hasBegun = false
  #isWithoutBody = false
  #isGone = false
  #deadline: NodeJS.Timeout | undefined

  constructor(request: CallRequest, reply: CallReply, route: Route, parts: ForwarderParts) {
    this.#request = request
    this.#reply = reply
    this.#route = route
    this.#parts = parts
    this.#outlet = parts.outletFor(reply)
    this.#record = recordOf(request.raw)
    this.#tries = new Tries(request, route, parts.trust)
  }

  get #upstream(): Upstream {
    return this.#tries.upstream
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
    if (timeoutMs !== undefined) this.#deadline = setTimeout(this.#onDeadline, timeoutMs)
    this.#takeSlot()
  }

  onSlot(): void {
    const { url, method } = this.#request
    const { headersMs, bodyMs } = this.#route.settings.timeouts
    this.#sentAt = performance.now()
    this.#record?.sent(this.#upstream, this.#sentAt)
    this.#record?.trace?.tellService(this.#headers)
    // of connections that are kept, others may have been closed like the one that failed
    this.#client = this.#tries.isFirst ? this.#upstream.clients.take() : this.#upstream.clients.open()
    this.#upstream.health.begin(this.#sentAt)
    this.#client.dispatch(
      {
        path: this.#route.targetAt(this.#upstream, url),
        method: method as Dispatcher.HttpMethod,
        headers: this.#headers,
        body: (this.#body ?? null) as NonNullable<Dispatcher.DispatchOptions['body']> | null,
        headersTimeout: headersMs,
        bodyTimeout: bodyMs,
        // undici would close the connection after HEAD, and after bodies of methods that it expects none of
        reset: false,
        // by the Host of the caller, undici would ask for another certificate
        servername: this.#upstream.serverName,
        ...(this.#body === undefined ? {} : { trailers: () => this.trailers() }),
      } as Dispatcher.DispatchOptions,
      this,
    )
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

  onResponseStarted(): void {
    this.#hasAnswered = true
  }

  onHeaders(status: number, received: Buffer[], resume: () => void, text: string): boolean {
    if (status < 200) {
      if (this.#interims++ < maxInterims) sendInterim(this.#reply.raw, status, received, text)
      return true
    }
    this.#status = status
    this.#record?.trace?.tryAnswered(status)
    if (this.#isNotTaken(status, received)) {
      this.#abort?.(new AnswerNotTaken(`status ${status}`))
      return false
    }
    this.#record?.firstByte(status, performance.now())
    const headers = headersToCaller({ status, received }, this.#reply.getHeaders(), {
      route: this.#route,
      upstream: this.#upstream,
      host: this.#request.headers.host,
    })
    const cookie = this.#tries.cookie()
    if (cookie !== undefined) headers.push('set-cookie', cookie)
    if (this.#parts.isClosing() || this.#leavesBodyUnread()) headers.push('connection', 'close')
    this.#isWithoutBody = status === 204 || status === 304
    this.#resume = resume
    this.#outlet.begin(status, reasonFor(status, text), headers, this)
    this.#hasBegun = true
    return true
  }

  onData(chunk: Buffer): boolean {
    const hasRoom = this.#outlet.write(chunk)
    this.#bytesInTurn += chunk.length
    if (hasRoom && this.#bytesInTurn < bulkBytes) return true
    if (hasRoom) this.onReady()
    return false
  }

  /** The system reads megabytes at once; other calls come first. */
  onReady(): void {
    if (this.#isWaitingForTurn) return
    this.#isWaitingForTurn = true
    this.#parts.bulk.join(() => {
      this.#isWaitingForTurn = false
      this.#bytesInTurn = 0
      // a connection whose answer has ended may carry another call by now
      if (this.#client !== undefined) this.#resume?.()
    })
  }

  onGone(): void {
    this.#abort?.()
  }

  onComplete(trailers: string[] | null): void {
    this.#tellHealth()
    this.#record?.tryEnded(performance.now())
    this.#outlet.end(trailers)
    this.#endAttempt(undefined)
  }

  /** The caller's trailers, which stand behind its body. */
  trailers(): OutgoingHttpHeaders {
    return trailersOf(this.#request.raw)
  }

  onError(error: Error): void {
    if (this.#client === undefined) return
    this.#record?.tryEnded(performance.now(), error)
    this.#endAttempt(error)
  }

  /** Lets go of the connection. Not at once: undici allows no new call while it tells of the end of this one. */
  #endAttempt(error: Error | undefined): void {
    const client = this.#client!
    if (client.answers.end()) this.#hasAnswered = true
    this.#client = undefined
    this.#abort = undefined
    process.nextTick(() => {
      if (error === undefined) this.#upstream.clients.giveBack(client)
      else this.#upstream.clients.discard(client)
      this.#upstream.slots.release(this)
      if (error !== undefined) this.#fail(error)
    })
  }

  #fail(error: Error): void {
    if (this.#isGone) return
    // undici misses the bytes that Content-Length announces, though such an answer has none (RFC 9110, section 8.6)
    if (this.#isWithoutBody) {
      this.#outlet.end()
      return
    }
    const failure = failureOf(error, this.#hasAnswered)
    if (failure.isOfService) this.#upstream.health.fail(performance.now(), error.message)
    if (this.#hasBegun) {
      this.#record?.broken()
      this.#outlet.breakOff(error)
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

  #takeSlot(): void {
    this.#record?.queued(performance.now())
    this.#upstream.slots.take(this)
  }

  #nextTry({ mayStay, isUnprocessed }: { mayStay: boolean; isUnprocessed: boolean }): Upstream | undefined {
    const isRepeatable = this.#body === undefined && (isUnprocessed || repeatable.includes(this.#request.method))
    return this.#tries.again({ isRepeatable, mayStay })
  }

  /** Whether the call is tried again rather than answered with what the service says. */
  #isNotTaken(status: number, received: readonly Buffer[]): boolean {
    const isFailure = this.#route.settings.health.failStatuses.includes(status)
    if (!isFailure && !(this.#client!.isReused && isLateClosing(status, received))) return false
    this.#next = this.#nextTry({ mayStay: !isFailure, isUnprocessed: false })
    if (this.#next === undefined) return false
    if (isFailure) this.#tellHealth()
    return true
  }

  #tellHealth(): void {
    const { health } = this.#upstream
    const isFailure = this.#route.settings.health.failStatuses.includes(this.#status)
    if (isFailure) health.fail(performance.now(), `status ${this.#status}`)
    else health.succeed(performance.now())
  }

  #answerWith(failure: Failure, error: Error): void {
    const { status, detail, isOfService } = failure
    // the service may have done its work before the caller broke the call off
    if (!isOfService && this.#tries.wasSent) markUnknownEnd(this.#reply.raw)
    if (isOfService) this.#request.log.warn({ err: error, service: this.#upstream.name }, adviceOn(failure, error))
    if (this.#leavesBodyUnread()) this.#reply.header('connection', 'close')
    sendProblem(this.#reply, status, detail)
  }

  /** What the caller still sends would be taken for the next call. */
  #leavesBodyUnread(): boolean {
    return this.#body !== undefined && !this.#request.raw.complete
  }

  /** The time is over that a gRPC caller gives for the whole call. */
  readonly #onDeadline = (): void => {
    const passed = new DeadlinePassed('the deadline of the call has passed')
    if (this.#hasBegun) {
      this.#isGone = true
      this.#outlet.end(deadlineTrailers)
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
    clearTimeout(this.#deadline)
    this.#isGone = true
    if (this.#abort) this.#abort()
    // without a connection yet, the call is only in the queue for one
    else if (this.#client === undefined) this.#upstream.slots.release(this)
  }
}
