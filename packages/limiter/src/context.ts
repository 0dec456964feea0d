import { AsyncLocalStorage } from 'node:async_hooks'
import { verdictOf } from './filters/admit.ts'
import { current } from './filters/current-request.ts'
import type { Verdict } from './verdict.ts'

const requests = new AsyncLocalStorage<object>()
current.tracker = { enter: identity => requests.enterWith(identity) }

/**
 * Returns the verdict on the request that is being served, anywhere below a filter, without the request; undefined elsewhere. Filters
 * remember their requests from when this module is imported on.
 */
export function currentVerdict(): Verdict | undefined {
  const request = requests.getStore()
  return request === undefined ? undefined : verdictOf(request)
}
