import {
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import { isSingleHeader } from '../../http/http2/single-headers.ts'
import { isOfTheConnection } from '../../http/message-headers.ts'

/** Headers that decide how a message is framed, routed, authorized, cached or read; none may be a trailer (RFC 9110, section 6.5.1). */
const forbidden: ReadonlySet<string> = new Set(
  (
    'age authorization cache-control content-encoding content-length content-range content-type cookie date expect ' +
    'expires forwarded host if-match if-modified-since if-none-match if-range if-unmodified-since location max-forwards ' +
    'pragma proxy-authenticate proxy-authorization range ratelimit ratelimit-policy retry-after set-cookie vary warning ' +
    'www-authenticate __proto__'
  ).split(' '),
)

/**
 * Trailers by name; what no trailer may say is left out, and of a header that has one value only, the first is taken. Names and
 * values in turn, as text or bytes.
 */
export function trailersIn(received: readonly (string | Buffer)[]): OutgoingHttpHeaders {
  const trailers: Record<string, string[]> = Object.create(null)
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!.toString('latin1' as never).toLowerCase()
    const value = received[at + 1]!.toString('latin1' as never)
    if (isOfTheConnection(name) || isForbidden(name) || !isWritable(name, value)) continue
    const earlier = trailers[name]
    if (earlier === undefined) trailers[name] = [value]
    else if (!isSingleHeader(name)) earlier.push(value)
  }
  return trailers
}

/** Returns the trailers that a caller has sent behind its body. */
export function trailersOf({ rawTrailers }: IncomingMessage): OutgoingHttpHeaders {
  return trailersIn(rawTrailers)
}

/** Passes the trailers of a service on; a caller of HTTP/1.0 gets none, since its answer is not chunked. */
export function addTrailers(raw: ServerResponse, received: readonly (string | Buffer)[] | null): void {
  if (received !== null && received.length > 0) raw.addTrailers(trailersIn(received))
}

function isForbidden(name: string): boolean {
  // services read names with other characters as if they had hyphens
  return forbidden.has(name) || name.startsWith('x-forwarded-') || /[^a-z\d-]/.test(name)
}

function isWritable(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
