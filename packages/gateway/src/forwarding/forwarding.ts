import { overloadRetrySeconds } from 'diana-limiter/gateway'
import type { Dispatcher } from 'undici'
import type { CallReply, CallRequest, Trust } from '../http/call.ts'
import { deadlineTrailers, grpcTimeoutMs } from '../http/grpc/grpc-call.ts'
import type { MessageLimits } from '../http/message-limits.ts'
import { paceOf, type Work } from '../inbound/calls/call-pace.ts'
import type { BulkQueue } from '../inbound/connections/bulk-queue.ts'
import { sendProblem } from '../inbound/problem.ts'
import type { Affinity } from '../services/balancing/affinity.ts'
import type { Route } from '../services/routes/route.ts'
import type { RouteTable } from '../services/routes/route-table.ts'
import { isAccepted, type Throttle } from '../services/throttle.ts'
import type { Upstream } from '../services/upstream.ts'
import type { GatewaySettings } from '../settings/gateway-settings.ts'
import { type CallRecord, recordOf } from '../telemetry/call-record.ts'
import { AnswerRelay, leavesBodyUnread, type RelayedCall, type RelayedHead } from './answers/answer-relay.ts'
import { CompressingSink } from './answers/compressing-sink.ts'
import type { ResponseSink } from './answers/response-sink.ts'
import { Attempt, type AttemptedCall, type Body, bodyOf, serviceRequest, tellHealth } from './attempt.ts'
import { adviceOn, busy, DeadlinePassed, type Failure, failureOf, throttled } from './failure.ts'
import { headersToService } from './headers/end-to-end-headers.ts'

/** One call on its way to a service and back: tried at one address, perhaps again at another, and answered. */
export class Forwarding implements AttemptedCall, RelayedCall, Work {
  readonly request: CallRequest
  readonly route: Route
  readonly relay: AnswerRelay
  readonly #reply: CallReply
  readonly #parts: ForwarderParts
  readonly #record: CallRecord | undefined
  readonly #tries: Tries
  #attempt: Attempt | undefined
  /** The address that the call goes to if the answer that came is not taken. */
  #next: Upstream | undefined
  #body: Body
  #headers: string[] = []
  #deadline: NodeJS.Timeout | undefined
  /** True if the throttle of the route counts the call, and its outcome is not known yet. */
  #isCounted = false

  constructor(request: CallRequest, reply: CallReply, route: Route, parts: ForwarderParts) {
    this.request = request
    this.route = route
    const sink = parts.outletFor(reply)
    const { compressible } = route
    this.#record = recordOf(request.raw)
    this.relay = new AnswerRelay(this, reply, {
      bulk: parts.bulk,
      record: this.#record,
      sink: compressible ? new CompressingSink(sink, compressible, request, reply) : sink,
    })
    this.#reply = reply
    this.#parts = parts
    this.#tries = new Tries(request, route, parts.trust)
  }

  get isUnderWay(): boolean {
    return this.#attempt?.isUnderWay ?? false
  }

  begin(): void {
    if (this.#reply.raw.destroyed) {
      // the caller has left while the call was judged
      this.#record?.observer?.unserved()
      this.#reply.hijack()
      return
    }
    this.#headers = headersToService(this.request, this.route, this.#parts.trust)
    this.#body = bodyOf(this.request, this.route.settings.bodyBytes, this.#parts.bulk)
    const pace = paceOf(this.request.raw)
    if (pace === undefined) this.#reply.raw.on('close', () => this.onEnd())
    else pace.work = this
    const timeoutMs = grpcTimeoutMs(this.request.headers)
    if (timeoutMs !== undefined) this.#deadline = setTimeout(() => this.#onDeadline(), timeoutMs)
    if (this.route.throttle !== undefined && this.#isThrottled(this.route.throttle)) return
    this.#try()
  }

  requestTo(upstream: Upstream): Dispatcher.DispatchOptions {
    this.#record?.trace?.tellService(this.#headers)
    return serviceRequest(this.request, this.route, upstream, { headers: this.#headers, body: this.#body })
  }

  check(now: number): void {
    this.#attempt?.check(now)
  }

  abort(): void {
    this.#attempt?.abort()
  }

  onSent(): void {
    this.#tries.send()
  }

  onNoSlot(): void {
    if (this.#tries.moveToRoom()) this.#attemptAt(this.#tries.upstream)
    else {
      this.#reply.header('retry-after', '1')
      this.#answerWith(busy, new Error('no connection became free'))
    }
  }

  headOf(status: number, received: readonly string[], isReused: boolean): RelayedHead | undefined {
    if (this.#isNotTaken(status, received, isReused)) return undefined
    if (this.#isCounted) this.#settle(isAccepted(status))
    // spelled out: a spread costs more than the rest of it
    return {
      status,
      received,
      exchange: { route: this.route, upstream: this.#tries.upstream, host: this.request.headers.host },
      cookie: this.#tries.cookie(),
      closes: this.#parts.isClosing() || leavesBodyUnread(this.request, this.#body),
    }
  }

  onFailed(error: Error, hasAnswered: boolean): void {
    // undici misses the bytes that Content-Length announces, though such an answer has none (RFC 9110, section 8.6)
    if (this.relay.isWithoutBody) {
      this.relay.end()
      return
    }
    const failure = failureOf(error, hasAnswered)
    if (failure.isOfService) this.#tries.upstream.health.fail(performance.now(), error.message)
    if (this.#isCounted && failure.isOfService) this.#settle(false)
    if (this.relay.hasBegun) {
      if (failure.isOfCaller || isCutOff(this.request.raw)) this.#record?.failedByCaller()
      else this.#record?.broken()
      this.relay.breakOff(error)
    } else if (!this.#triesAgain(failure)) this.#answerWith(failure, error)
  }

  /** Ends what is still under way for the answer, which is over. */
  onEnd(): void {
    if (this.#deadline !== undefined) clearTimeout(this.#deadline)
    this.#attempt?.end()
    // a caller who leaves says nothing about the service
    if (this.#isCounted) this.#settle(true)
  }

  /** Refuses the call if its service is in trouble and has had its part of calls. */
  #isThrottled(throttle: Throttle): boolean {
    if (!throttle.refuses(performance.now(), Math.random())) {
      this.#isCounted = true
      return false
    }
    if (this.#record) this.#record.unsentReason = 'overload'
    this.#reply.header('retry-after', `${overloadRetrySeconds()}`)
    this.#answerWith(throttled, new Error('the service is in trouble'))
    return true
  }

  #settle(isAccepted: boolean): void {
    this.#isCounted = false
    if (isAccepted) this.route.throttle?.accepted(performance.now())
  }

  #try(): void {
    this.#record?.queued(performance.now())
    this.#attemptAt(this.#tries.upstream)
  }

  #attemptAt(upstream: Upstream): void {
    this.#attempt = new Attempt(this, upstream, this.#tries.isFirst)
    this.#attempt.begin()
  }

  #triesAgain({ mayRetry, isUnprocessed = false }: Failure): boolean {
    const next = this.#next ?? (mayRetry ? this.#nextTry({ mayStay: true, isUnprocessed }) : undefined)
    if (next === undefined) return false
    this.#next = undefined
    this.#tries.move(next)
    this.#try()
    return true
  }

  #nextTry(how: { mayStay: boolean; isUnprocessed: boolean }): Upstream | undefined {
    return this.#tries.again({ ...how, hasBody: this.#body !== undefined })
  }

  /** True if the call is tried again rather than answered with what the service says. */
  #isNotTaken(status: number, received: readonly string[], isReused: boolean): boolean {
    const isFailure = this.route.settings.health.failStatuses.includes(status)
    if (!isFailure && !(isReused && isLateClosing(status, received))) return false
    this.#next = this.#nextTry({ mayStay: !isFailure, isUnprocessed: false })
    if (this.#next === undefined) return false
    if (isFailure) tellHealth(this.#tries.upstream, this.route, status, performance.now())
    return true
  }

  #answerWith(failure: Failure, error: Error): void {
    // the answer of this gateway may be under way for long, if its caller reads nothing
    clearTimeout(this.#deadline)
    const { status, detail, isOfService, isOfCaller, type } = failure
    const service = this.#tries.upstream.name
    this.#record?.failed(failure)
    if (this.#tries.wasSent && (isOfCaller || isCutOff(this.request.raw))) this.#record?.failedByCaller()
    if (isOfService) this.request.log.warn({ err: error, service }, adviceOn(failure, error))
    if (leavesBodyUnread(this.request, this.#body)) this.#reply.header('connection', 'close')
    sendProblem(this.#reply, status, detail, type)
  }

  /** Fails the call because the deadline of a gRPC caller has passed. */
  #onDeadline(): void {
    const passed = new DeadlinePassed('the deadline of the call has passed')
    if (this.relay.hasBegun) {
      this.#record?.failedByCaller()
      this.relay.end(deadlineTrailers)
      this.#attempt?.end(passed)
    } else if (this.isUnderWay) this.#attempt?.abort(passed)
    else {
      this.#attempt?.end()
      this.#answerWith(failureOf(passed), passed)
    }
  }
}

/** True if the caller's body has ended before all of it came. */
function isCutOff({ errored, destroyed, complete }: CallRequest['raw']): boolean {
  return (errored ?? null) !== null || (destroyed && !complete)
}

/**
 * True if an answer is that of a service which closes a connection without a call, as HAProxy and Apache do, and which a call has
 * met on its way (RFC 9110, section 15.5.9).
 */
function isLateClosing(status: number, received: readonly string[]): boolean {
  if (status !== 408) return false
  return received.some((name, at) => {
    return at % 2 === 0 && name === 'connection' && /\bclose\b/i.test(received[at + 1] ?? '')
  })
}

/** Everything that a forwarder works with; routes and settings change while it runs. */
export interface ForwarderParts {
  readonly settings: GatewaySettings
  readonly routes: RouteTable
  readonly trust: Trust
  readonly bulk: BulkQueue
  outletFor(reply: CallReply): ResponseSink
  /** Returns what decides the messages of a WebSocket; undefined if no rule is about them. */
  messagesOf(request: CallRequest): MessageLimits | undefined
  /** True if the gateway is closing, so that connections are not kept open. */
  isClosing(): boolean
}

const none: readonly Upstream[] = []

/** Methods that mean the same once or twice (RFC 9110, section 9.2.2). */
const repeatable: readonly string[] = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

/** The conditions under which a call may be tried again. */
export interface Again {
  /** True if the call has a body, which cannot be sent twice. */
  readonly hasBody: boolean
  /** True if the service has said that it did not begin with the call. */
  readonly isUnprocessed: boolean
  /** True if at the same address if there is no other. */
  readonly mayStay: boolean
}

/** Chooses the address of one call: the one that has it, those that failed it, and where it may be tried again. */
export class Tries {
  readonly #request: CallRequest
  readonly #route: Route
  readonly #affinity: Affinity | undefined
  #upstream: Upstream
  #failed: readonly Upstream[] = none
  #isSent = false
  #wasSent = false
  #isRepeated = false

  constructor(request: CallRequest, route: Route, trust: Trust) {
    this.#request = request
    this.#route = route
    this.#affinity = route.affinityOf(request, trust)
    this.#upstream = route.first(performance.now(), this.#affinity)
  }

  get upstream(): Upstream {
    return this.#upstream
  }

  get isFirst(): boolean {
    return this.#failed.length === 0
  }

  /** True if any address may have got a part of the call. */
  get wasSent(): boolean {
    return this.#wasSent
  }

  /** Notes that the address has a connection for the call; what is sent from now on may reach the service. */
  send(): void {
    this.#isSent = true
    this.#wasSent = true
  }

  /** Returns where the call may be tried again, after it failed at the address that had it. */
  again({ hasBody, isUnprocessed, mayStay }: Again): Upstream | undefined {
    const isUnsent = !this.#isSent
    const isRepeatable = !hasBody && (isUnprocessed || repeatable.includes(this.#request.method))
    if (!isUnsent && (this.#isRepeated || !isRepeatable)) return undefined
    const tried = [...this.#failed, this.#upstream]
    const next = this.#route.again(performance.now(), {
      ...{ tried, isUnsent, mayStay: mayStay && !isUnsent },
      affinity: this.#affinity,
    })
    if (next !== undefined) this.#isRepeated ||= this.#isSent
    return next
  }

  /** Moves the call, which has failed at the address that had it, to another. */
  move(next: Upstream): void {
    this.#failed = [...this.#failed, this.#upstream]
    this.#upstream = next
    this.#isSent = false
  }

  /** Moves a call that has waited in vain for a connection to an address that has one by now, if there is one. */
  moveToRoom(): boolean {
    const other = this.#wasSent ? undefined : this.#route.elsewhere(performance.now(), this.#upstream)
    if (other === undefined) return false
    this.#upstream = other
    return true
  }

  /** Returns the cookie that binds the caller to the address that has answered, if one is due. */
  cookie(): string | undefined {
    return this.#affinity && this.#route.cookieFor(this.#affinity, this.#upstream, this.#request)
  }
}
