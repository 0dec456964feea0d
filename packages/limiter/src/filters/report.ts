import { warnOnce } from '../common/warn-once.ts'
import type { FilterOptions } from './filter.ts'
import type { Framework } from './frameworks/framework.ts'

/** Reports an error to the application, or to the framework's log; never throws, also if the application's function is async. */
export function report<Request>(
  error: unknown,
  request: Request,
  { onError }: FilterOptions<Request>,
  framework: Pick<Framework<Request, never>, 'reportError'>,
): void {
  const failed = (failure: unknown): void => warnOnce('DIANA_FAILED', textOf(failure))
  try {
    const reported: unknown = onError ? onError(error, request) : framework.reportError(request, error)
    if (isThenable(reported)) Promise.resolve(reported).catch(failed)
  } catch (failure) {
    failed(failure)
  }
}

/** Whether a value is a promise of any library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return typeof (value as { readonly then?: unknown }).then === 'function'
}

/** Anything can be thrown, also what has no text. */
function textOf(failure: unknown): string {
  try {
    return String(failure)
  } catch {
    return 'an error without a text'
  }
}
