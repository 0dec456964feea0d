import { isThenable } from '../common/promises.ts'
import { warnWhile } from '../common/warn-once.ts'
import type { Filter } from './filter.ts'

/** The kinds of failure on a call, and what became of the call. */
const failures = {
  decision: 'Diana failed to decide a call, so it passed without being counted, unless whenFailed is refuse',
  limiter: 'the limiter of a filter cannot be made, so every call is refused with 503',
  skip: 'skip failed, so the call was decided',
  by: 'by failed, so the call was counted by address',
  limit: 'limit or by failed, so the call was refused with 503, unless whenFailed is pass',
  attributes: 'attributes failed, so the call was decided without them',
  cost: 'cost failed, so the call counted as 1',
  headers: 'the rate-limit headers of a call could not be written; its verdict stands',
  peer: 'peer failed, so the call has no address',
  proxies: 'the setting of trusted proxies failed, so the call has the address of its peer',
  onRefused: 'onRefused failed, so the call was refused with the answer of Diana',
  settlement: 'the cost of a call could not be read, so its estimate stays charged',
} as const

export type Failure = keyof typeof failures

/**
 * Reports an error to the application, or to the framework's log, with what became of the call; never throws, also if the application's
 * function is async.
 */
export function report<Request>(
  error: unknown,
  request: Request,
  { options, framework }: Pick<Filter<Request, never>, 'options' | 'framework'>,
  failure: Failure,
): void {
  const failed = (thrown: unknown): void => {
    warnWhile('DIANA_FAILED', `${failures[failure]}: ${textOf(error)}; and onError failed: ${textOf(thrown)}`, failure)
  }
  try {
    const { onError } = options
    const reported: unknown = onError
      ? onError(error, request)
      : framework.reportError(request, error, failures[failure])
    if (isThenable(reported)) Promise.resolve(reported).catch(failed)
  } catch (thrown) {
    failed(thrown)
  }
}

/** Words a failure: anything can be thrown, also what has no text. */
function textOf(failure: unknown): string {
  try {
    return String(failure)
  } catch {
    return 'an error without a text'
  }
}
