import { warnOnce } from '../common/warn-once.ts'
import type { FilterOptions } from './filter.ts'
import type { Framework } from './frameworks/framework.ts'

/** Reports an error to the application, or to the framework's log; never throws. */
export function report<Request>(
  error: unknown,
  request: Request,
  { onError }: FilterOptions<Request>,
  framework: Pick<Framework<Request, never>, 'reportError'>,
): void {
  try {
    if (onError) onError(error, request)
    else framework.reportError(request, error)
  } catch (failure) {
    warnOnce('DIANA_FAILED', String(failure))
  }
}
