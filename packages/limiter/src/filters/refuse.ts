import { type Refusal, refusal } from '../answers/answer.ts'
import { type CustomAnswer, customRefusal } from '../answers/custom-answer.ts'
import { LimitedError } from '../answers/limited-error.ts'
import { isThenable } from '../common/promises.ts'
import { DianaError } from '../errors.ts'
import type { Verdict } from '../verdict.ts'
import type { Filter, RefusedAnswer } from './filter.ts'
import { inTime } from './in-time.ts'
import { report } from './report.ts'

/** The function that a framework gives its handlers to pass a request on, or an error to its handler of errors. */
export type Next = (error?: unknown) => unknown

const unjudged: Refusal = unavailable('This call could not be judged.')
const unready: Refusal = unavailable('The limits of this service are not set up correctly.', ['Retry-After', '60'])

/**
 * Answers a refused request, as the application or else as Diana does; false or a promise of it, since the request does not
 * continue, also if it cannot be answered. With `forwardErrors`, it throws.
 */
export function refuse<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
  next?: Next,
): false | Promise<false> {
  const { onRefused, forwardErrors } = filter.options
  if (forwardErrors === true) {
    writeHeaders(filter, request, reply, verdict)
    throw new LimitedError(verdict)
  }
  if (onRefused === undefined) return answer(filter, request, reply, verdict, undefined)
  writeHeaders(filter, request, reply, verdict)
  const asked = new OwnAnswer(filter, request, reply, verdict, next)
  const given = asked.ask()
  const finish = (own: RefusedAnswer): false => {
    return asked.isTaken() ? false : answer(filter, request, reply, verdict, own)
  }
  return given instanceof Promise ? given.then(finish) : finish(given)
}

/** Writes the headers of other answers, for a function that answers by itself and for a handler of errors. */
function writeHeaders<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
): void {
  try {
    for (const [name, value] of refusal(verdict, Date.now()).headers) {
      if (name !== 'Content-Type' && name !== 'Cache-Control') filter.framework.setHeader(reply, name, value)
    }
  } catch (error) {
    report(error, request, filter, 'headers')
  }
}

function answer<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
  own: RefusedAnswer,
): false {
  const sendOwn = (custom: CustomAnswer | undefined): boolean => {
    return send(filter, request, reply, () => customRefusal(verdict, Date.now(), custom))
  }
  const isAnswered = own instanceof Response ? respond(filter, request, reply, verdict, own) : sendOwn(own ?? undefined)
  if (!isAnswered && own !== undefined) sendOwn(undefined)
  return false
}

function respond<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
  response: Response,
): boolean {
  try {
    if (filter.framework.respond === undefined) {
      throw new DianaError('BAD_CALL', 'onRefused returned a Response: return { status, body, headers } here')
    }
    const lines = refusal(verdict, Date.now()).headers.filter(([name]) => name !== 'Content-Type')
    filter.framework.respond(request, reply, response, lines)
    return true
  } catch (error) {
    report(error, request, filter, 'onRefused')
    return false
  }
}

/** One question to the application how it answers a refused request. */
class OwnAnswer<Request, Reply> {
  readonly #filter: Filter<Request, Reply>
  readonly #request: Request
  readonly #reply: Reply
  readonly #verdict: Verdict
  readonly #next: Next | undefined
  readonly #isSent: () => boolean
  #hasPassedOn = false

  constructor(
    filter: Filter<Request, Reply>,
    request: Request,
    reply: Reply,
    verdict: Verdict,
    next: Next | undefined,
  ) {
    this.#filter = filter
    this.#request = request
    this.#reply = reply
    this.#verdict = verdict
    this.#next = next && this.#following(next)
    const { framework } = filter
    this.#isSent = framework.followAnswer?.(reply) ?? (() => framework.isAnswered(reply))
  }

  /** True if the application has answered by itself, or has passed the request on. */
  isTaken(): boolean {
    return this.#hasPassedOn || this.#isSent()
  }

  /** Returns the answer of the application; undefined if its function fails, or takes too long. */
  ask(): RefusedAnswer | Promise<RefusedAnswer> {
    const reply = this.#reply
    try {
      const given: unknown = this.#filter.options.onRefused?.(this.#verdict, this.#request, reply, this.#next as never)
      // an object that has methods to answer by is no answer
      if (given === reply || given === this.#request) return undefined
      return isThenable(given) ? this.#wait(given as PromiseLike<RefusedAnswer>) : (given as RefusedAnswer)
    } catch (error) {
      return this.#failed(error)
    }
  }

  /**
   * Bounds the time of an answer: a function that never answers would hold the connection of every refused caller; one that has passed
   * the request on may wait.
   */
  async #wait(given: PromiseLike<RefusedAnswer>): Promise<RefusedAnswer> {
    try {
      return await inTime(given, 'onRefused')
    } catch (error) {
      if (!this.#hasPassedOn) return this.#failed(error)
      await given
      return undefined
    }
  }

  #failed(error: unknown): undefined {
    report(error, this.#request, this.#filter, 'onRefused')
    return undefined
  }

  #following(next: Next): Next {
    return error => {
      this.#hasPassedOn = true
      return next(error)
    }
  }
}

/** Answers a request that Diana failed to judge. */
export function refuseUnjudged<Request, Reply>(filter: Filter<Request, Reply>, request: Request, reply: Reply): false {
  send(filter, request, reply, () => unjudged)
  return false
}

/** Answers a request to a filter whose limiter cannot be made: without limits, no request may pass. */
export function refuseUnready<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  error: unknown,
): false {
  report(error, request, filter, 'limiter')
  send(filter, request, reply, () => unready)
  return false
}

/** True if the request was answered; an error is reported. */
function send<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  refusal: () => Refusal,
): boolean {
  try {
    filter.framework.refuse(request, reply, refusal())
    return true
  } catch (error) {
    report(error, request, filter, 'onRefused')
    return false
  }
}

function unavailable(detail: string, ...headers: readonly (readonly [string, string])[]): Refusal {
  return {
    status: 503,
    headers: [...headers, ['Cache-Control', 'no-store'], ['Content-Type', 'application/problem+json']],
    body: JSON.stringify({ type: 'about:blank', title: 'Service Unavailable', status: 503, detail }),
  }
}
