import type { Verdict } from '../verdict.ts'
import type { Refusal } from './answers/answer.ts'
import { type CustomAnswer, customRefusal } from './answers/custom-answer.ts'
import type { Filter } from './filter.ts'
import { report } from './report.ts'

/** Answers a refused request, as the application or else as Diana does; resolves to false, since the request does not continue. */
export function refuse<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  verdict: Verdict,
): boolean | Promise<boolean> {
  const answer = (custom: CustomAnswer | undefined): boolean => {
    filter.framework.refuse(request, reply, refusalOf(filter, request, verdict, custom))
    return false
  }
  const custom = customAnswer(filter, request, verdict)
  return custom instanceof Promise ? custom.then(answer) : answer(custom)
}

function refusalOf<Request>(
  filter: Filter<Request, never>,
  request: Request,
  verdict: Verdict,
  custom: CustomAnswer | undefined,
): Refusal {
  try {
    return customRefusal(verdict, Date.now(), custom)
  } catch (error) {
    report(error, request, filter, 'onRefused')
    return customRefusal(verdict, Date.now(), undefined)
  }
}

/** The answer of the application; if its function fails, undefined. */
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
    const answer = filter.options.onRefused?.(verdict, request)
    return answer instanceof Promise ? answer.catch(failed) : answer
  } catch (error) {
    return failed(error)
  }
}

const unready: Refusal = {
  status: 503,
  headers: [
    ['Retry-After', '60'],
    ['Cache-Control', 'no-store'],
    ['Content-Type', 'application/problem+json'],
  ],
  body: JSON.stringify({
    type: 'about:blank',
    title: 'Service Unavailable',
    status: 503,
    detail: 'The limits of this service are not set up correctly.',
  }),
}

/** Answers a request to a filter whose limiter cannot be made: without limits, no request may pass. */
export function refuseUnready<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  error: unknown,
): false {
  report(error, request, filter, 'limiter')
  filter.framework.refuse(request, reply, unready)
  return false
}
