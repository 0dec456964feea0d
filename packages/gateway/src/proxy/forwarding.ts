import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { sendProblem } from '../problem.ts'
import type { Route } from '../routes/route.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { type Body, bodyOf } from './body.ts'
import { type Failure, failureOf } from './failure.ts'
import type { ForwarderParts } from './forwarder.ts'
import { headersToCaller } from './headers-to-caller.ts'
import { headersToService } from './headers-to-service.ts'
import type { Outlet } from './outlet.ts'

/** Methods that mean the same once or twice (RFC 9110, section 9.2.2). */
const repeatable: readonly string[] = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

/** One call on its way to a service and back; undici tells it what happens. */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #route: Route
  readonly #parts: ForwarderParts
  readonly #outlet: Outlet
  #upstream: Upstream
  #body: Body
  #headers: string[] = []
  #abort: ((error?: Error) => void) | undefined
  #isRetried = false
  #hasBegun = false
  #isGone = false

  constructor(request: FastifyRequest, reply: FastifyReply, route: Route, parts: ForwarderParts) {
    this.#request = request
    this.#reply = reply
    this.#route = route
    this.#parts = parts
    this.#outlet = parts.outletFor(reply)
    this.#upstream = route.next(performance.now())
  }

  begin(): void {
    this.#headers = headersToService(this.#request, this.#route, this.#parts.trust)
    this.#body = bodyOf(this.#request, this.#parts.settings.limits.bodyBytes)
    this.#reply.raw.once('close', this.#onClose)
    this.#send()
  }

  onConnect(abort: (error?: Error) => void): void {
    if (this.#isGone) abort()
    else this.#abort = abort
  }

  onHeaders(status: number, received: Buffer[], resume: () => void, text: string): boolean {
    // early hints and the like are for whoever asked for them, and nobody did
    if (status < 200) return true
    const headers = headersToCaller(received, this.#reply.getHeaders(), this.#route)
    if (this.#parts.isClosing() || this.#leavesBodyUnread()) headers.push('connection', 'close')
    this.#outlet.begin(status, text, headers, resume, () => this.#abort?.())
    this.#hasBegun = true
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#outlet.write(chunk)
  }

  onComplete(): void {
    this.#upstream.health.succeed()
    this.#outlet.end()
  }

  onError(error: Error): void {
    if (this.#isGone) return
    const failure = failureOf(error)
    if (failure.isOfService) this.#upstream.health.fail(performance.now())
    if (this.#hasBegun) this.#outlet.breakOff(error)
    else if (!this.#retries(failure)) this.#answerWith(failure, error)
  }

  #send(): void {
    const { url, method } = this.#request
    const { headersMs, bodyMs } = this.#route.settings.timeouts
    this.#upstream.health.begin(performance.now())
    this.#upstream.pool.dispatch(
      {
        path: this.#route.targetAt(this.#upstream, url),
        method: method as Dispatcher.HttpMethod,
        headers: this.#headers,
        body: (this.#body ?? null) as NonNullable<Dispatcher.DispatchOptions['body']> | null,
        headersTimeout: headersMs,
        bodyTimeout: bodyMs,
      },
      this,
    )
  }

  /** One second try, elsewhere; or at the only address there is, where a connection that was kept had been left. */
  #retries({ mayRetry }: Failure): boolean {
    const { method } = this.#request
    if (!mayRetry || this.#isRetried || this.#body !== undefined || !this.#route.settings.retry) return false
    if (!repeatable.includes(method)) return false
    this.#isRetried = true
    this.#upstream = this.#route.next(performance.now(), this.#upstream)
    this.#send()
    return true
  }

  #answerWith({ status, detail, isOfService }: Failure, error: Error): void {
    if (isOfService) this.#request.log.warn({ err: error, service: this.#upstream.url.origin }, detail)
    if (this.#leavesBodyUnread()) this.#reply.header('connection', 'close')
    sendProblem(this.#reply, status, detail)
  }

  /** What the caller still sends would be taken for his next call. */
  #leavesBodyUnread(): boolean {
    return this.#body !== undefined && !this.#request.raw.complete
  }

  readonly #onClose = (): void => {
    if (this.#reply.raw.writableFinished) return
    this.#isGone = true
    this.#abort?.()
  }
}
