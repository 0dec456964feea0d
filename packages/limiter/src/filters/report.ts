import { warnWhile } from '../common/warn-once.ts'
import type { Filter } from './filter.ts'

/** What failed on a call, and what became of the call. */
const failures = {
  decision: 'Diana failed to decide a call, so it passed without being counted',
  limiter: 'the limiter of a filter cannot be made, so every call is refused with 503',
  skip: 'skip failed, so the call was decided',
  attributes: 'attributes failed, so the call was decided without them',
  cost: 'cost failed, so the call counted as 1',
  onRefused: 'onRefused failed, so the call was refused with the answer of Diana',
  settlement: 'the cost of a call could not be read, so its estimate stays charged',
} as const

export type Failure = keyof typeof failures

/** Reports an error to the application, or to the framework's log, with what became of the call; never throws. */
export function report<Request>(
  error: unknown,
  request: Request,
  { options, framework }: Pick<Filter<Request, never>, 'options' | 'framework'>,
  failure: Failure,
): void {
  try {
    if (options.onError) options.onError(error, request)
    else framework.reportError(request, error, failures[failure])
  } catch (thrown) {
    warnWhile('DIANA_FAILED', `${failures[failure]}: ${String(error)}; and onError failed: ${String(thrown)}`, failure)
  }
}
