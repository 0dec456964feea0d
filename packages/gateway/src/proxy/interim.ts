import type { ServerResponse } from 'node:http'
import { isOfTheConnection, namedByConnection } from './connection-headers.ts'
import { reasonFor } from './reason.ts'

/**
 * Passes an interim answer on as it is (RFC 9110, section 15.2), whatever its status: Node would write only some of them, and
 * only with links that it can read. A caller of HTTP/1.0 could not read it.
 */
export function sendInterim(raw: ServerResponse, status: number, received: readonly Buffer[], text = ''): void {
  const { socket, req, headersSent } = raw
  if (req.httpVersion !== '1.1' || headersSent || !socket?.writable) return
  const reason = reasonFor(status, text)
  socket.write(`HTTP/1.1 ${status} ${reason}\r\n${linesOf(received)}\r\n`, 'latin1')
}

function linesOf(received: readonly Buffer[]): string {
  const fields: [name: string, value: string][] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    fields.push([received[at]!.toString('latin1').toLowerCase(), received[at + 1]!.toString('latin1')])
  }
  const connection = fields.filter(([name]) => name === 'connection').map(([, value]) => value)
  const named = namedByConnection(connection.join())
  return fields
    .filter(([name]) => !isOfTheConnection(name) && name !== 'content-length' && !named?.has(name))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}
