import type { Call } from 'diana-limiter'
import { httpFramework } from 'diana-limiter/filter'
import { hostName } from 'diana-limiter/schema'
import { settledTarget } from '../../http/normalize-request.ts'

/** A request as a proxy describes it in a message. */
export interface ProxiedRequest {
  readonly method: string
  /** Path and query as the caller sent them. */
  readonly target: string
  readonly host?: string | undefined
  readonly ip?: string | undefined
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  readonly attributes?: Call['attributes']
}

/**
 * Returns the call of such a request, in the one spelling that the gateway judges; a text that says what is wrong with the request
 * if it has none.
 */
export function proxiedCall({ method, target, host, ip, headers, attributes }: ProxiedRequest): Call | string {
  const url = settledTarget(target)
  if (url === undefined) return 'The target of this call cannot be read.'
  if (host !== undefined && host !== '' && hostName(host) === undefined) {
    return 'The Host of this call is not a name or an address.'
  }
  const question = url.indexOf('?')
  return {
    method: method.toUpperCase(),
    path: httpFramework.path({ url, headers: {} } as never),
    query: question < 0 ? undefined : url.slice(question + 1),
    caseInsensitive: true,
    ip,
    host,
    headers,
    attributes,
  }
}
