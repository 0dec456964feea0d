import type { Refusal } from '../answers/answer.ts'
import { type CustomAnswer, customRefusal } from '../answers/custom-answer.ts'
import type { Verdict } from '../verdict.ts'
import type { Filter } from './filter.ts'
import { isThenable, report } from './report.ts'

/** The longest time in which the application may word the answer to a refused call; then Diana answers. */
export const MOST_ANSWER_MS = 5000

const unjudged: Refusal = unavailable('This call could not be judged.')
const unready: Refusal = unavailable('The limits of this service are not set up correctly.', ['Retry-After', '60'])

/**
 * Answers a refused request, as the application or else as Diana does; false or a promise of it, since the request does not
 * continue, also if it cannot be answered.
 */
export function refuse<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
): false | Promise<false> {
  const answer = (custom: CustomAnswer | undefined): false => {
    const isAnswered = send(filter, request, reply, () => customRefusal(verdict, Date.now(), custom))
    if (!isAnswered && custom !== undefined) {
      send(filter, request, reply, () => customRefusal(verdict, Date.now(), undefined))
    }
    return false
  }
  const custom = customAnswer(filter, request, verdict)
  return custom instanceof Promise ? custom.then(answer) : answer(custom)
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

/** Returns the answer of the application; undefined if its function fails, or takes too long. */
function customAnswer<Request>(
  filter: Filter<Request, never>,
  request: Request,
  verdict: Verdict,
): CustomAnswer | undefined | Promise<CustomAnswer | undefined> {
  const failed = (error: unknown): undefined => {
    report(error, request, filter, 'onRefused')
    return undefined
  }
  try {
    const answer: unknown = filter.options.onRefused?.(verdict, request)
    if (!isThenable(answer)) return answer as CustomAnswer | undefined
    return inTime(answer as PromiseLike<CustomAnswer | undefined>).catch(failed)
  } catch (error) {
    return failed(error)
  }
}

/** Bounds the time of an answer: a function that never answers would otherwise hold the connection of every refused caller. */
async function inTime<T>(answer: PromiseLike<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const message = `onRefused gave no answer within ${MOST_ANSWER_MS} ms`
    timer = setTimeout(() => reject(new Error(message)), MOST_ANSWER_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

function unavailable(detail: string, ...headers: readonly (readonly [string, string])[]): Refusal {
  return {
    status: 503,
    headers: [...headers, ['Cache-Control', 'no-store'], ['Content-Type', 'application/problem+json']],
    body: JSON.stringify({ type: 'about:blank', title: 'Service Unavailable', status: 503, detail }),
  }
}
