import { normalizeTarget } from '../../http/path.ts'
import type { NodeRequest } from './node.ts'

/** Brings a request's target to the one spelling that is counted and served; false if it has none. */
export function settleTarget(request: NodeRequest): boolean {
  const url = request.url ?? '/'
  // CONNECT names a host and no path
  if (request.method === 'CONNECT') return true
  const target = normalizeTarget(url)
  if (target === undefined) return false
  const { path, query } = target
  if (query === undefined) {
    if (path !== url) request.url = path
  } else if (url.length !== path.length + query.length + 1 || !url.startsWith(path)) {
    request.url = `${path}?${query}`
  }
  return true
}
