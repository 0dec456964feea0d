import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isOfTheConnection } from './connection-headers.ts'

/** What would change how a message is framed or routed, and is no trailer (RFC 9110, section 6.5.1). */
const forbidden: readonly string[] = ['content-length', 'host', 'content-encoding', 'content-type', 'content-range']

/** Trailers of a service, by name; what no trailer may say is left out. Names and values in turn, as text or bytes. */
export function trailersIn(received: readonly (string | Buffer)[]): OutgoingHttpHeaders {
  const trailers: Record<string, string[]> = {}
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!.toString('latin1' as never).toLowerCase()
    const value = received[at + 1]!.toString('latin1' as never)
    if (isOfTheConnection(name) || forbidden.includes(name) || name === '__proto__' || !isWritable(name, value))
      continue
    trailers[name] = [...(trailers[name] ?? []), value]
  }
  return trailers
}

/** The trailers that a caller has sent behind its body. */
export function trailersOf({ rawTrailers }: IncomingMessage): OutgoingHttpHeaders {
  return trailersIn(rawTrailers)
}

/** Passes trailers on to a caller of HTTP/2; one of HTTP/1.1 may not expect any. */
export function addTrailers(raw: ServerResponse, received: readonly (string | Buffer)[] | null): void {
  if (received === null || received.length === 0 || raw.req.httpVersionMajor !== 2) return
  raw.addTrailers(trailersIn(received))
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
