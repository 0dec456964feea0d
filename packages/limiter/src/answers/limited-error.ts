import { DianaError } from '../errors.ts'
import type { Verdict } from '../verdict.ts'
import { type Refusal, refusal } from './answer.ts'

const FIRST_ERROR = 400
const UNAVAILABLE = 503

/**
 * A call of a limited function that its rules refuse, with their verdict; its code is LIMITED. It has what error handlers of Express,
 * Fastify, Koa, Hono and Nest read, so that an error that nothing catches is answered as a refusal.
 */
export class LimitedError extends DianaError {
  readonly verdict: Verdict
  /** The HTTP status of the answer; Koa writes to it. */
  status: number
  readonly statusCode: number
  /** Retry-After, the rate-limit headers and Cache-Control. */
  readonly headers: Readonly<Record<string, string>>
  /** That the message may be shown to the caller. */
  readonly expose = true

  constructor(verdict: Verdict) {
    const after = Number.isFinite(verdict.retryAfterMs) ? `in ${Math.ceil(verdict.retryAfterMs)} ms` : 'later'
    super('LIMITED', `rule "${verdict.rule}" refuses this call (${verdict.reason}): try again ${after}`)
    this.verdict = verdict
    const { status, headers } = this.#refusal()
    this.status = status
    this.statusCode = status
    // error handlers send a body of their own type
    this.headers = Object.fromEntries(headers.filter(([name]) => name !== 'Content-Type'))
  }

  /** Returns the refusal as a filter answers it, as Hono asks for it; for handlers of `Request` and `Response`. */
  getResponse(): Response {
    const { status, headers, body } = this.#refusal()
    return new Response(body, { status, headers: headers as [string, string][] })
  }

  /** Returns the refusal for a handler of errors: an answer below 400 is for callers that a filter refuses, and would be no error. */
  #refusal(): Refusal {
    const answer = refusal(this.verdict, Date.now())
    return answer.status < FIRST_ERROR ? { ...answer, status: UNAVAILABLE } : answer
  }
}
