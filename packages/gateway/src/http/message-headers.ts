import type { IncomingMessage, ServerResponse } from 'node:http'

/** True if a call says that it has a body. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

const waiting = new WeakSet<IncomingMessage>()

/** Remembers a caller who asks before sending the body. */
export function waitToContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** Asks a caller who waits for it to send the body. */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (waiting.delete(request)) response.writeContinue()
}

/** True if a header is about one connection, not about the message (RFC 9110, section 7.6.1). */
export function isOfTheConnection(name: string): boolean {
  switch (name) {
    case 'connection':
    case 'http2-settings':
    case 'keep-alive':
    case 'proxy-connection':
    case 'te':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
      return true
    default:
      return false
  }
}

/** Headers that are about the message and its way here, whatever `Connection` says of them. */
const needed: readonly string[] = [
  'content-length',
  'expect',
  'forwarded',
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]

/** Returns the headers that `Connection` names besides those that are always of the connection: they too end here. */
export function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  const names = connection.split(',').map(name => name.trim().toLowerCase())
  return new Set(names.filter(name => !needed.includes(name) && !isOfTheConnection(name)))
}
