import type { ServerResponse } from 'node:http'
import { isOfTheConnection } from './connection-headers.ts'

/** Passes an interim answer on (RFC 9110, section 15.2): a caller of HTTP/1.0 could not read it. */
export function sendInterim(raw: ServerResponse, status: number, received: readonly Buffer[]): void {
  if (raw.req.httpVersion === '1.0' || raw.headersSent) return
  try {
    if (status === 102) raw.writeProcessing()
    else if (status === 103) raw.writeEarlyHints(hintsIn(received))
  } catch {
    // hints that Node does not write: the answer itself is still to come
  }
}

function hintsIn(received: readonly Buffer[]): Record<string, string | string[]> {
  const hints: Record<string, string | string[]> = {}
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!.toString('latin1').toLowerCase()
    if (isOfTheConnection(name) || name === 'content-length' || name === '__proto__') continue
    const value = received[at + 1]!.toString('latin1')
    const earlier = hints[name]
    hints[name] = earlier === undefined ? value : [...(Array.isArray(earlier) ? earlier : [earlier]), value]
  }
  return hints
}
