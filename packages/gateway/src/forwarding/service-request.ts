import type { Dispatcher } from 'undici'
import type { CallRequest } from '../http/call.ts'
import type { Route } from '../services/routes/route.ts'
import type { Upstream } from '../services/upstream.ts'
import type { Body } from './answers/body.ts'
import { trailersOf } from './headers/trailers.ts'

export interface ServiceRequestParts {
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Body
}

/** A call as it is sent to an address, in undici's words. */
export function serviceRequest(
  { url, method, raw }: CallRequest,
  route: Route,
  upstream: Upstream,
  { headers, body }: ServiceRequestParts,
): Dispatcher.DispatchOptions {
  const { headersMs, bodyMs } = route.settings.timeouts
  const request = {
    path: route.targetAt(upstream, url),
    method: method as Dispatcher.HttpMethod,
    headers,
    body: (body ?? null) as NonNullable<Dispatcher.DispatchOptions['body']> | null,
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    // undici would close the connection after HEAD, and after bodies of methods that it expects none of
    reset: false,
    // by the Host of the caller, undici would ask for another certificate
    servername: upstream.serverName,
  }
  return (body === undefined ? request : { ...request, trailers: () => trailersOf(raw) }) as Dispatcher.DispatchOptions
}
