import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSingleHeader } from '../../http/http2/single-headers.ts'
import { isOfTheConnection, namedByConnection } from '../../http/message-headers.ts'
import { isHttp2 } from '../../inbound/http2/http2-request.ts'
import type { Http2Response } from '../../inbound/http2/http2-response.ts'
import type { EarlyHints } from '../../settings/routes/route-settings.ts'
import { reasonFor } from './end-to-end-headers.ts'

/**
 * True if a caller has said that it reads interim answers: by HTTP/2, whose frames distinguish them, as a browser that loads a page, or
 * by an upload that can be resumed. Some clients of HTTP/1.1 take a 103 for the answer (RFC 8297, section 3).
 */
function readsInterims({ httpVersionMajor, headers }: IncomingMessage): boolean {
  return httpVersionMajor >= 2 || headers['sec-fetch-mode'] === 'navigate' || headers['upload-complete'] !== undefined
}

type Field = readonly [name: string, value: string]

/** An interim answer of a service, and who gets it. */
export interface Interim {
  readonly status: number
  readonly received: readonly Buffer[]
  readonly text: string
  readonly to: EarlyHints
}

/**
 * Passes an interim answer on as it is (RFC 9110, section 15.2), whatever its status: Node would write only some of them, and
 * only with links that it can read. A caller of HTTP/1.0 could not read it.
 */
export function sendInterim(raw: ServerResponse, { status, received, text, to }: Interim): void {
  const { req, headersSent } = raw
  if (to === 'never' || (to === 'auto' && !readsInterims(req))) return
  // below are 100 and 101, which are not for the caller, and what is no status
  if (status < 102 || headersSent || raw.destroyed) return
  const fields = fieldsOf(received)
  if (req.httpVersion === '1.1') {
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    if (raw.socket?.writable)
      raw.socket.write(`HTTP/1.1 ${status} ${reasonFor(status, text)}\r\n${lines}\r\n`, 'latin1')
  } else if (isHttp2(req)) {
    const grouped: Record<string, string[]> = Object.create(null)
    for (const [name, value] of fields) {
      const earlier = grouped[name]
      if (earlier === undefined) grouped[name] = [value]
      else if (!isSingleHeader(name)) earlier.push(value)
    }
    ;(raw as unknown as Http2Response).writeInterim({ ':status': status, ...grouped })
  }
}

function fieldsOf(received: readonly Buffer[]): Field[] {
  const fields: Field[] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    fields.push([received[at]!.toString('latin1').toLowerCase(), received[at + 1]!.toString('latin1')])
  }
  const connection = fields.filter(([name]) => name === 'connection').map(([, value]) => value)
  const named = namedByConnection(connection.join())
  return fields.filter(
    ([name]) => !isOfTheConnection(name) && name !== 'content-length' && name !== '__proto__' && !named?.has(name),
  )
}
